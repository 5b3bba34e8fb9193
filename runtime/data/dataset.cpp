// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/dataset.h"

#include <algorithm>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/data/data_digest.h"
#include "runtime/data/drawn_sample.h"
#include "runtime/data/formats/content_hash.h"

namespace lockstep::data {

namespace {

// A sample may take long to make.
constexpr std::uint64_t kMostDrawn = 32;
constexpr std::int64_t kMostElements = std::int64_t{1} << 20;

}  // namespace

void write_zeros(const Sample& sample) {
  for (const std::span<float> numbers : {sample.values, sample.target, sample.weight, sample.other_weight}) {
    std::ranges::fill(numbers, 0.0f);
  }
  for (const std::span<std::int64_t> numbers : {sample.tokens, sample.labels, sample.other_label}) {
    std::ranges::fill(numbers, 0);
  }
  for (const InputRow& input : sample.more_inputs) {
    std::ranges::fill(input.values, 0.0f);
    std::ranges::fill(input.tokens, 0);
  }
}

std::vector<InputSpec> Dataset::inputs() const {
  std::vector<InputSpec> all = more_inputs();
  all.insert(all.begin(), {sample_shape(), vocabulary()});
  return all;
}

void Dataset::add_to_digest(DataHashes& hashes) const {
  std::int64_t elements = 0;
  for (const InputSpec& input : inputs()) elements += input.shape.numel();
  const std::int64_t affordable = kMostElements / std::max<std::int64_t>(elements, 1);
  const auto most = std::clamp<std::uint64_t>(static_cast<std::uint64_t>(affordable), 2, kMostDrawn);
  DrawnSample drawn(*this);
  for (const std::uint64_t index : spread(static_cast<std::uint64_t>(size()), most)) {
    try {
      get({.index = static_cast<std::int64_t>(index)}, drawn.sample());
      drawn.add_inputs(hashes.content);
      drawn.add_targets(hashes.labels);
    } catch (const StorageError&) {
      hashes.content.update("unreadable");
    }
  }
}

void Dataset::add_content(std::int64_t index, Hash128& hash) const {
  DrawnSample drawn(*this);
  try {
    get({.index = index}, drawn.sample());
    drawn.add_inputs(hash);
  } catch (const StorageError&) {
    hash.update("unreadable");
  }
}

}  // namespace lockstep::data
