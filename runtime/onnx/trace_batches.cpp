// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "runtime/base/error.h"
#include "runtime/onnx/trace.h"

namespace lockstep::onnx {

namespace {

[[noreturn]] void refuse(const std::string& operation) {
  throw UsageError(operation +
                   " does not run in the same way for every batch, or computes with a tensor that no operation "
                   "has recorded: the model has no graph to export");
}

bool are_same(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() && a.dtype() == b.dtype() && std::memcmp(a.data(), b.data(), a.bytes()) == 0;
}

/// Which extents of `value` differ in `other`, the same value of another batch.
unsigned differences(const Value& value, const Value& other, const std::string& operation) {
  if (value.shape.rank() != other.shape.rank() || value.dtype != other.dtype) refuse(operation);
  if (value.constant.defined() != other.constant.defined()) refuse(operation);
  if (value.constant.defined() && !are_same(value.constant, other.constant)) refuse(operation);
  unsigned of_batch = 0;
  for (int d = 0; d < value.shape.rank(); ++d) {
    if (value.shape[d] != other.shape[d]) of_batch |= 1u << d;
  }
  return of_batch;
}

std::string described(const Operation& operation) {
  return operation.layer.empty() ? operation.name : operation.layer + ": " + operation.name;
}

}  // namespace

Trace trace_batches(nn::Module& model, const std::function<std::vector<Tensor>(std::int64_t samples)>& batch_of) {
  const Trace other = trace(model, batch_of(kTracedBatch + 1));
  Trace one = trace(model, batch_of(kTracedBatch));
  if (one.operations.size() != other.operations.size() || one.values.size() != other.values.size()) refuse("the model");
  const auto compare = [&](const std::vector<int>& values, const std::string& where) {
    for (const int value : values) {
      if (value == kNone) continue;
      Value& found = one.values[static_cast<std::size_t>(value)];
      found.of_batch = differences(found, other.values[static_cast<std::size_t>(value)], where);
    }
  };
  compare(one.inputs, "the model");
  for (std::size_t i = 0; i < one.operations.size(); ++i) {
    const Operation &a = one.operations[i], &b = other.operations[i];
    if (a.name != b.name || a.inputs != b.inputs || a.results != b.results) refuse(described(a));
    compare(a.inputs, described(a));
    compare(a.results, described(a));
  }
  return one;
}

}  // namespace lockstep::onnx
