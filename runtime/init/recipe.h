// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "runtime/data/description.h"
#include "runtime/init/find_data.h"

namespace lockstep::init {

/// The model and training for data of a kind: parts of a job's text, without the braces around them.
struct Recipe {
  std::string model;    ///< "mlp { hidden: [64, 64] }"
  std::string augment;  ///< without the patch; empty: none
  /// Extents of the windows that are cut from volumes; none: whole samples.
  std::optional<Shape> patch = {};
  std::string amp;             ///< empty: fp32
  std::string optimizer;       ///< without clipping
  std::string loss;            ///< empty: the data's default
  std::string metric;          ///< that the best checkpoint has
  std::string normalize = {};  ///< that the weights it starts from were trained with; empty: as is measured
  std::string init_from = {};  ///< the weights to start from, the whole message with its comments; empty: none
  std::int64_t batch = 0;
  std::int64_t epochs = 0;
  std::int64_t patience = 0;  ///< evaluations in a row without a lower loss that end the run; 0: none do
};

/// The names that recipe_for() knows, "mlp, convnet, ...".
std::string known_models();

/// `model`: one of known_models(); empty takes the one that fits the data. Throws UsageError for another name, and
/// where the model learns other data.
Recipe recipe_for(const FoundData& found, const data::Description& data, const std::string& model);

}  // namespace lockstep::init
