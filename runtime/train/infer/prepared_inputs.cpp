// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/infer/prepared_inputs.h"

#include "runtime/data/normalize.h"

namespace lockstep::train {

PreparedInputs prepared_inputs(const data::DataOptions& data, std::span<const std::string> paths) {
  PreparedInputs prepared{.inputs = data::open_inputs(data, paths), .readable = {}};
  data::DatasetPtr samples = prepared.inputs;
  if (data.normalize != data::NormalizeOptions()) {
    samples = std::make_shared<data::Normalize>(samples, data.normalize);
  }
  prepared.readable = std::make_shared<data::ReadableInputs>(samples);
  return prepared;
}

}  // namespace lockstep::train
