// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/data/dataset.h"

namespace lockstep::data {

/// Memory for one sample of a data set, which get() writes into sample().
struct DrawnSample {
  explicit DrawnSample(const Dataset& set);
  DrawnSample(const DrawnSample&) = delete;
  DrawnSample& operator=(const DrawnSample&) = delete;

  Sample sample() { return {values, tokens, target, labels, weight, other_label, other_weight, rows}; }

  /// Adds what was written, all inputs or all else.
  void add_inputs(Hash128& hash) const;
  void add_targets(Hash128& hash) const;

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

}  // namespace lockstep::data
