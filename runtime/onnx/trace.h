// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <any>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "runtime/nn/module.h"
#include "runtime/tensor/tensor.h"

namespace lockstep::onnx {

constexpr int kNone = -1;

/// A tensor of a forward pass.
struct Value {
  Shape shape;
  DType dtype = DType::kFloat32;
  int producer = kNone;   ///< the operation that makes it of the model's inputs; kNone: an input itself, or a constant
  Tensor constant = {};   ///< what does not depend on the model's inputs; undefined otherwise
  std::string name = {};  ///< of a parameter
  unsigned of_batch = 0;  ///< bit d: extent d is a multiple of the batch's samples; from trace_batches()
};

/// An operation that computes with the model's inputs.
struct Operation {
  std::string name;              ///< as the policy table has it
  std::string layer;             ///< path of the module that it runs in
  std::vector<int> inputs = {};  ///< values; kNone where one is left out
  std::vector<int> results = {};
  std::any options = {};  ///< what it notes: runtime/ops/operation_options.h
};

/// A forward pass written down: its values, and the operations that compute them.
struct Trace {
  std::vector<Value> values;
  std::vector<Operation> operations;  ///< in their order
  std::vector<int> inputs;
  int output = kNone;
};

/// Runs the model in evaluation mode, without gradients, and notes what leads from its inputs to its output. Operations
/// on constants alone are constants; `expand` is none, as its shape may be the batch's. Tensors that the pass computes
/// are not kept.
Trace trace(nn::Module& model, std::span<const Tensor> inputs);

constexpr std::int64_t kTracedBatch = 2;  ///< samples of the batch that trace_batches() returns the trace of

/// The trace of a batch of kTracedBatch samples, compared with that of a larger one: which extents are the batch's, and
/// that nothing else differs. `batch_of` makes the inputs of so many samples; two batches should hold other numbers.
/// Throws UsageError for a model that computes something with other tensors than it records.
Trace trace_batches(nn::Module& model, const std::function<std::vector<Tensor>(std::int64_t samples)>& batch_of);

}  // namespace lockstep::onnx
