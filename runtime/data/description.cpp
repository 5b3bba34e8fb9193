// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/description.h"

#include <algorithm>

#include "runtime/tensor/error.h"

namespace lockstep::data {

namespace {

/// More classes than that without a sample, and more than there are below, are no gap but a damaged label above it.
constexpr std::size_t kMostSkipped = 4;

/// Of a longer list the first ones are named.
constexpr std::size_t kNamed = 8;

std::string plural(std::int64_t count, const std::string& what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

}  // namespace

Description describe(const Dataset& dataset) {
  return {dataset.size(), dataset.sample_shape(), dataset.classes(), dataset.target_shape(), {}};
}

void require_alike(const Description& eval, const Description& train) {
  const auto require = [](bool fits, const std::string& what, const std::string& found, const std::string& expected) {
    if (!fits) throw FieldError("data.eval", what + " " + found + ", but those of data.train " + expected);
  };
  require(eval.sample_shape == train.sample_shape, "its samples are", eval.sample_shape.str(),
          train.sample_shape.str());
  require((eval.classes > 0) == (train.classes > 0) && eval.classes <= train.classes, "its classes are",
          std::to_string(eval.classes), std::to_string(train.classes));
  require(eval.target_shape == train.target_shape, "its targets are", eval.target_shape.str(),
          train.target_shape.str());
}

std::vector<std::string> strange_labels(const Description& description, bool counted) {
  if (description.labels.empty()) return {};
  std::vector<std::int64_t> samples(static_cast<std::size_t>(description.classes));
  for (const std::uint8_t label : description.labels) ++samples[label];
  std::vector<std::size_t> empty;
  for (std::size_t c = 0; c < samples.size(); ++c) {
    if (samples[c] == 0) empty.push_back(c);
  }
  if (empty.empty()) return {};

  const std::size_t highest = *std::ranges::max_element(description.labels);
  std::size_t next = 0;
  for (std::size_t c = 0; c < highest; ++c) next = samples[c] > 0 ? c : next;
  if (counted && highest - next - 1 > std::max(next + 1, kMostSkipped)) {
    const auto first = std::ranges::find(description.labels, highest) - description.labels.begin();
    return {"label " + std::to_string(highest) + " (" + plural(samples[highest], "sample") + ", the first at index " +
            std::to_string(first) + ") is far above the others, which end at " + std::to_string(next) + ", and makes " +
            std::to_string(description.classes) +
            " classes; if the file is damaged, mend it; otherwise give the number of classes"};
  }
  std::string list;
  for (std::size_t i = 0; i < std::min(empty.size(), kNamed); ++i) {
    list += (i == 0 ? "" : ", ") + std::to_string(empty[i]);
  }
  if (empty.size() > kNamed) list += " and " + std::to_string(empty.size() - kNamed) + " more";
  return {(empty.size() == 1 ? "class " : "classes ") + list + " of " + std::to_string(description.classes) +
          (empty.size() == 1 ? " has" : " have") + " no sample"};
}

}  // namespace lockstep::data
