// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/dataset.h"

#include <algorithm>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/data/data_digest.h"
#include "runtime/data/formats/content_hash.h"

namespace lockstep::data {

namespace {

// A sample may take long to make.
constexpr std::uint64_t kMostDrawn = 32;
constexpr std::int64_t kMostElements = std::int64_t{1} << 20;

std::size_t count(bool has, std::int64_t elements) { return has ? static_cast<std::size_t>(elements) : 0; }

/// Memory for one sample.
struct Drawn {
  explicit Drawn(const Dataset& set)
      : more(set.more_inputs().size()),
        values(count(set.vocabulary() == 0, set.sample_shape().numel())),
        tokens(count(set.vocabulary() > 0, set.sample_shape().numel())),
        target(count(set.classes() == 0, set.target_shape().numel())),
        labels(count(set.classes() > 0, set.target_shape().numel())),
        weight(count(set.weighted() || set.mixed(), 1)),
        other_label(count(set.mixed(), 1)),
        other_weight(count(set.mixed(), 1)) {
    const std::vector<InputSpec> specs = set.more_inputs();
    for (std::size_t i = 0; i < specs.size(); ++i) {
      more[i].values.resize(count(specs[i].vocabulary == 0, specs[i].shape.numel()));
      more[i].tokens.resize(count(specs[i].vocabulary > 0, specs[i].shape.numel()));
      rows.push_back({more[i].values, more[i].tokens});
    }
  }
  Drawn(const Drawn&) = delete;
  Drawn& operator=(const Drawn&) = delete;

  Sample sample() { return {values, tokens, target, labels, weight, other_label, other_weight, rows}; }

  static void add(const auto& numbers, Hash128& hash) { hash.update(std::as_bytes(std::span(numbers))); }

  void add_inputs(Hash128& hash) const {
    add(values, hash);
    add(tokens, hash);
    for (const Input& input : more) {
      add(input.values, hash);
      add(input.tokens, hash);
    }
  }

  void add_to(DataHashes& hashes) const {
    add_inputs(hashes.content);
    add(target, hashes.labels);
    add(labels, hashes.labels);
    add(weight, hashes.labels);
    add(other_label, hashes.labels);
    add(other_weight, hashes.labels);
  }

  struct Input {
    std::vector<float> values;
    std::vector<std::int64_t> tokens;
  };

  std::vector<Input> more;
  std::vector<InputRow> rows;  ///< of `more`
  std::vector<float> values;
  std::vector<std::int64_t> tokens;
  std::vector<float> target;
  std::vector<std::int64_t> labels;
  std::vector<float> weight;
  std::vector<std::int64_t> other_label;
  std::vector<float> other_weight;
};

}  // namespace

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
  Drawn drawn(*this);
  for (const std::uint64_t index : spread(static_cast<std::uint64_t>(size()), most)) {
    try {
      get({.index = static_cast<std::int64_t>(index)}, drawn.sample());
      drawn.add_to(hashes);
    } catch (const StorageError&) {
      hashes.content.update("unreadable");
    }
  }
}

void Dataset::add_content(std::int64_t index, Hash128& hash) const {
  Drawn drawn(*this);
  try {
    get({.index = index}, drawn.sample());
    drawn.add_inputs(hash);
  } catch (const StorageError&) {
    hash.update("unreadable");
  }
}

}  // namespace lockstep::data
