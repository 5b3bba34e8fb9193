// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/infer/prepared_inputs.h"

#include <utility>

#include "runtime/base/error.h"
#include "runtime/data/normalize.h"

namespace lockstep::train {

PreparedInputs prepared_inputs(const data::DataOptions& data, std::span<const std::string> paths) {
  return prepared(data, data::open_inputs(data, paths));
}

PreparedInputs prepared(const data::DataOptions& data, std::shared_ptr<const data::Inputs> inputs) {
  if (inputs->size() == 0) throw UsageError("--input: there is nothing to predict: no file holds a sample");
  data::DatasetPtr samples = inputs;
  if (data.normalize != data::NormalizeOptions()) {
    samples = std::make_shared<data::Normalize>(samples, data.normalize);
  }
  return {.inputs = std::move(inputs), .readable = std::make_shared<data::ReadableInputs>(samples)};
}

}  // namespace lockstep::train
