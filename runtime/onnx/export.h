// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/nn/module.h"
#include "runtime/tensor/input_spec.h"

namespace lockstep::onnx {

struct ExportOptions {
  Shape sample_shape = {};                  ///< of one sample, channels last; or [T] tokens
  std::int64_t vocabulary = 0;              ///< samples are tokens below it; 0: they are numbers
  std::string name = {};                    ///< of the graph
  std::vector<InputSpec> more_inputs = {};  ///< beside the first
};

/// The inference graph of a float32 model on the CPU as a file of ONNX's format, opset 17. Its "input" is a batch of
/// any size, the dimension "batch", of samples: images and volumes channels first, [batch, C, spatial...], everything
/// else as it is here. So is its "output", the logits or values, where it has as many dimensions as the input. Extents
/// but the batch's are fixed. A model of several inputs has an "input_2" and so on beside "input", of the same batch.
///
/// The graph is what the model's operations record while it runs in evaluation mode on two batches of made samples
/// (trace.h): a constant is what both have in common. Throws UsageError for an operation that no node stands for, and
/// for weights of 2 GiB or more, which the format's one file cannot hold.
std::string exported(nn::Module& model, const ExportOptions& options);

}  // namespace lockstep::onnx
