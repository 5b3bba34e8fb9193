// SPDX-License-Identifier: Apache-2.0
#include "runtime/autograd/saved_tensor.h"

#include <string>
#include <utility>

#include "runtime/autograd/meta.h"
#include "runtime/base/error.h"

namespace lockstep::autograd {

SavedTensor::SavedTensor(const Tensor& tensor) : SavedTensor(tensor, tensor.defined() ? tensor.detach() : Tensor()) {}

SavedTensor SavedTensor::in_graph(const Tensor& input) { return {input, input}; }

SavedTensor::SavedTensor(const Tensor& tensor, Tensor kept) : tensor_(std::move(kept)) {
  if (!tensor_.defined()) return;
  version_ = tensor_.version();
  // A leaf's meta holds no graph, so that nothing comes to own itself.
  const std::shared_ptr<Meta>& meta = tensor.autograd_meta();
  if (meta && !meta->producer && !meta->name.empty()) parameter_ = meta;
}

const Tensor& SavedTensor::take(std::string_view operation) const {
  if (!tensor_.defined() || tensor_.version() == version_) return tensor_;
  const std::string what = parameter_ ? "parameter " + parameter_->name : "a tensor";
  throw UsageError(what + " (" + describe(tensor_) + ") was written between the forward and the backward pass of '" +
                       std::string(operation) + "', whose gradient needs the value before",
                   "Write it, or call optimizer.step(), after backward(); run the forward pass again; or write to a "
                   "copy.");
}

}  // namespace lockstep::autograd
