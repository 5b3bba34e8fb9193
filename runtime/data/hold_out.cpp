// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/hold_out.h"

#include <fmt/format.h>

#include <algorithm>
#include <future>
#include <span>

#include "runtime/base/cores.h"
#include "runtime/base/error.h"
#include "runtime/base/hash.h"
#include "runtime/data/data_digest.h"

namespace lockstep::data {

namespace {

constexpr std::int64_t kMostThreads = 16;
/// Fewer samples are not worth a thread.
constexpr std::int64_t kLeastOfThread = 256;
/// The most classes that a warning names.
constexpr std::size_t kNamedClasses = 8;

std::vector<std::uint64_t> content_of_all(const Dataset& all) {
  std::vector<std::uint64_t> content(static_cast<std::size_t>(all.size()));
  const std::int64_t fitting = (all.size() + kLeastOfThread - 1) / kLeastOfThread;
  const std::int64_t threads =
      std::clamp<std::int64_t>(std::min<std::int64_t>(usable_cores(), fitting), 1, kMostThreads);
  const auto look = [&](std::int64_t thread) {
    for (std::int64_t i = all.size() * thread / threads; i < all.size() * (thread + 1) / threads; ++i) {
      Hash128 hash;
      all.add_content(i, hash);
      content[static_cast<std::size_t>(i)] = hash.high64();
    }
  };
  std::vector<std::future<void>> others;
  for (std::int64_t thread = 1; thread < threads; ++thread) {
    others.push_back(std::async(std::launch::async, look, thread));
  }
  look(0);
  for (std::future<void>& other : others) other.get();
  return content;
}

/// Whether the hash, as a number in [0, 1), is below the share.
bool is_held_out(std::uint64_t content, double share) { return static_cast<double>(content >> 11) * 0x1p-53 < share; }

}  // namespace

const std::vector<std::uint64_t>& SampleContents::of(const Dataset& all) {
  if (hashes_.empty()) hashes_ = content_of_all(all);
  return hashes_;
}

SideSamples samples_of(const Dataset& all, const HoldOutOptions& options, Side side, SampleContents& contents) {
  const std::vector<std::uint64_t>& content = contents.of(all);
  SideSamples samples;
  for (std::size_t i = 0; i < content.size(); ++i) {
    if (is_held_out(content[i], options.eval_share) != (side == Side::kHeldOut)) continue;
    samples.indices.push_back(static_cast<std::int64_t>(i));
    samples.content.push_back(content[i]);
  }
  const std::size_t held = side == Side::kHeldOut ? samples.indices.size() : content.size() - samples.indices.size();
  if (held > 0 && held < content.size()) return samples;
  throw FieldError("data.eval_share",
                   fmt::format("{} holds out {} of the {} samples of data.train", options.eval_share,
                               held == 0 ? "none" : "all", content.size()),
                   held == 0 ? "Raise the share, or name data to evaluate on in data.eval."
                             : "Lower the share. Samples of equal content are held out together.");
}

Description described(Description all, const SideSamples& samples) {
  all.samples = std::ssize(samples.indices);
  if (all.labels.empty()) return all;
  std::vector<std::int64_t> labels;
  for (const std::int64_t index : samples.indices) labels.push_back(all.labels[static_cast<std::size_t>(index)]);
  all.labels = std::move(labels);
  return all;
}

std::string classes_without_evaluation(const Description& held_out, const std::vector<std::string>& names) {
  if (held_out.labels.empty()) return {};
  std::vector<bool> has_sample(static_cast<std::size_t>(held_out.classes));
  for (const std::int64_t label : held_out.labels) has_sample[static_cast<std::size_t>(label)] = true;
  std::vector<std::string> missing;
  for (std::size_t c = 0; c < has_sample.size(); ++c) {
    if (!has_sample[c])
      missing.push_back(c < names.size() ? fmt::format("{} (\"{}\")", c, names[c]) : std::to_string(c));
  }
  if (missing.empty()) return {};
  std::string list =
      fmt::format("{}", fmt::join(std::span(missing).first(std::min(missing.size(), kNamedClasses)), ", "));
  if (missing.size() > kNamedClasses) list += fmt::format(" and {} more", missing.size() - kNamedClasses);
  const bool one = missing.size() == 1;
  return fmt::format("{} {} {} no sample held out: no evaluation says how well {} learned", one ? "class" : "classes",
                     list, one ? "has" : "have", one ? "it is" : "they are");
}

void Subset::add_to_digest(DataHashes& hashes) const {
  DataHashes of_all;
  base()->add_to_digest(of_all);
  hashes.labels.update(of_all.labels.hex());
  hashes.content.update(std::as_bytes(std::span(samples_.content)));
}

}  // namespace lockstep::data
