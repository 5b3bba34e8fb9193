// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "model_zoo/build.h"

namespace lockstep::model_zoo {

/// An option that says how many or how wide, as a job names it.
struct Count {
  std::string path;  ///< "model.gpt.layers", "model.mlp.hidden[0]"; the model's kind where it has no counts
  std::int64_t value = 0;
};

/// The count that is largest beside what is usual: where to look if the model is too large.
Count largest_count(const ModelOptions& options);

}  // namespace lockstep::model_zoo
