// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/description.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "runtime/base/error.h"

namespace lockstep::data {

namespace {

/// More classes than that without a sample, and more than there are below, are no gap but a damaged label above it.
constexpr std::size_t kMostSkipped = 4;

/// The most entries of a list that a description names.
constexpr std::size_t kNamed = 8;

std::string plural(std::int64_t count, const std::string& what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

void require(bool fits, const std::string& what, const std::string& found, const std::string& expected) {
  if (!fits) throw FieldError("data.eval", what + " " + found + ", but those of data.train " + expected);
}

void require_answers_alike(const Description& eval, const Description& train) {
  require(eval.more_inputs == train.more_inputs, "its samples are", eval.inputs_text(), train.inputs_text());
  require((eval.vocabulary > 0) == (train.vocabulary > 0) && eval.vocabulary <= train.vocabulary, "its vocabulary is",
          std::to_string(eval.vocabulary), std::to_string(train.vocabulary));
  require((eval.classes > 0) == (train.classes > 0) && eval.classes <= train.classes, "its classes are",
          std::to_string(eval.classes), std::to_string(train.classes));
}

}  // namespace

Description describe(const Dataset& dataset) {
  return {.samples = dataset.size(),
          .sample_shape = dataset.sample_shape(),
          .vocabulary = dataset.vocabulary(),
          .more_inputs = dataset.more_inputs(),
          .classes = dataset.classes(),
          .target_shape = dataset.target_shape(),
          .targets_per_sample = dataset.targets_per_sample(),
          .weighted = dataset.weighted(),
          .target_summary = dataset.target_summary()};
}

std::vector<InputSpec> Description::inputs() const {
  std::vector<InputSpec> all = more_inputs;
  all.insert(all.begin(), {sample_shape, vocabulary});
  return all;
}

std::string Description::inputs_text() const {
  std::string text = sample_shape.str();
  for (const InputSpec& input : more_inputs) text += " and " + input.str();
  return text;
}

Description as_trained(Description some, const Description& train) {
  require_answers_alike(some, train);
  some.classes = train.classes;
  some.vocabulary = train.vocabulary;
  some.target_summary = train.target_summary;
  if (!some.target_summary.common_class) some.target_summary.common_class = most_common(train.labels);
  return some;
}

void require_alike(const Description& eval, const Description& train) {
  require(eval.sample_shape == train.sample_shape, "its samples are", eval.sample_shape.str(),
          train.sample_shape.str());
  require_answers_alike(eval, train);
  require(eval.target_shape == train.target_shape, "its targets are", eval.target_shape.str(),
          train.target_shape.str());
}

std::vector<std::string> strange_labels(const Description& description, bool counted) {
  if (description.labels.empty()) return {};
  std::vector<std::int64_t> samples(static_cast<std::size_t>(description.classes));
  for (const std::int64_t label : description.labels) ++samples[static_cast<std::size_t>(label)];
  std::vector<std::size_t> empty;
  for (std::size_t c = 0; c < samples.size(); ++c) {
    if (samples[c] == 0) empty.push_back(c);
  }
  if (empty.empty()) return {};

  const auto highest = static_cast<std::size_t>(*std::ranges::max_element(description.labels));
  std::size_t next = 0;
  for (std::size_t c = 0; c < highest; ++c) next = samples[c] > 0 ? c : next;
  if (counted && highest - next - 1 > std::max(next + 1, kMostSkipped)) {
    const auto first = std::ranges::max_element(description.labels) - description.labels.begin();
    return {
        fmt::format("label {} ({}, the first at index {}) is far above the others, which end at {}, and makes {} "
                    "classes; if the file is damaged, mend it; otherwise give the number of classes",
                    highest, plural(samples[highest], "sample"), first, next, description.classes)};
  }
  std::string list = fmt::format("{}", fmt::join(std::span(empty).first(std::min(empty.size(), kNamed)), ", "));
  if (empty.size() > kNamed) list += fmt::format(" and {} more", empty.size() - kNamed);
  const bool one = empty.size() == 1;
  return {fmt::format("{} {} of {} {} no sample", one ? "class" : "classes", list, description.classes,
                      one ? "has" : "have")};
}

}  // namespace lockstep::data
