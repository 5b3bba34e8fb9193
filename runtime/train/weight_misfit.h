// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "runtime/nn/state_dict.h"

namespace lockstep::train {

/// A tensor that weights and a model do not have alike.
struct MisfitRow {
  std::string name;
  std::string found;     ///< its shape there; empty: the weights lack it
  std::string expected;  ///< its shape in the model; empty: the model lacks it
};

/// How weights do not fit into tensors, by name.
class WeightMisfit {
 public:
  /// `into`: the tensors that are to be filled. `all`: those of the whole model, which patterns are searched in.
  WeightMisfit(const nn::StateDict& into, const nn::StateDict& found, const nn::StateDict& all);

  bool empty() const { return rows_.empty(); }
  const std::vector<MisfitRow>& rows() const { return rows_; }
  /// A table: name, shape in the file, shape in the model.
  std::string table() const;
  /// What makes init_from leave out what does not fit: `except: "^classifier"`, or `match: "."` where the weights hold
  /// more than the model. Empty where nothing of the model fits, and where all does.
  std::string choice() const;

 private:
  std::vector<MisfitRow> rows_;
  std::vector<std::string> all_;
};

}  // namespace lockstep::train
