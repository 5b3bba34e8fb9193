// SPDX-License-Identifier: Apache-2.0
#include "runtime/autograd/cast.h"

#include "runtime/autograd/node.h"
#include "runtime/kernels/assign.h"

namespace lockstep::autograd {

Tensor cast(const Tensor& tensor, DType dtype) {
  require_defined(tensor, "cast", "the input");
  if (tensor.dtype() == dtype) return tensor;
  const std::shared_ptr<Meta>& meta = tensor.autograd_meta();
  if (meta && meta->compute_copy.defined() && meta->compute_copy.dtype() == dtype) {
    renew_compute_copy(tensor);
    // The copy takes the leaf's place in the graph: gradients flow to the leaf's slot, whatever their dtype.
    const Tensor copy = meta->compute_copy.detach();
    copy.set_autograd_meta(meta);
    return copy;
  }
  const Tensor out = Tensor::empty(tensor.shape(), dtype, tensor.device());
  kernels::cast(tensor, out);
  record(out, "cast", {tensor}, OnLosses::kAdds,
         {.recorded = [from = tensor.dtype()](const Tensor& grad, const BackwardContext&) {
           return std::vector<Tensor>{cast(grad, from)};
         }});
  return out;
}

void renew_compute_copy(const Tensor& leaf) {
  Meta& meta = meta_of(leaf);
  if (leaf.version() == meta.copied_version) return;
  kernels::cast(leaf, meta.compute_copy);
  meta.copied_version = leaf.version();
}

}  // namespace lockstep::autograd
