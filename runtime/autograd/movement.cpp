// SPDX-License-Identifier: Apache-2.0
#include "runtime/autograd/movement.h"

#include <string>

#include "runtime/autograd/grad_mode.h"
#include "runtime/autograd/node.h"
#include "runtime/autograd/record_observer.h"
#include "runtime/base/error.h"

namespace lockstep::autograd {

namespace {

/// Whether anyone asks; most calls of these are on numbers without a graph.
bool is_asked_for(const Tensor& from) { return record_observer() != nullptr || is_recorded(from); }

/// The gradient of rows(): x where they were taken from, in zeros of `shape`.
Tensor put_rows(const Tensor& x, const Shape& shape, std::int64_t begin) {
  const Tensor y = Tensor::zeros(shape, x.dtype(), x.device());
  y.detach_rows(begin, begin + x.size(0)).copy_from(x.detach());
  record(y, "put_rows", {x}, OnLosses::kAdds,
         {.recorded = [begin, count = x.size(0)](const Tensor& dy, const BackwardContext&) {
           return std::vector<Tensor>{dy.rows(begin, begin + count)};
         }});
  return y;
}

}  // namespace

void record_to(const Tensor& result, const Tensor& from) {
  if (!is_asked_for(from)) return;
  record(result, "to", {from}, OnLosses::kAdds,
         {.recorded = [device = from.device()](const Tensor& dy, const BackwardContext&) {
           return std::vector<Tensor>{dy.to(device)};
         }});
}

void record_reshape(const Tensor& result, const Tensor& from) {
  if (!is_asked_for(from)) return;
  record(result, "reshape", {from}, OnLosses::kAdds,
         {.recorded = [shape = from.shape()](const Tensor& dy, const BackwardContext&) {
           return std::vector<Tensor>{dy.reshaped(shape)};
         }});
}

void record_rows(const Tensor& result, const Tensor& from, std::int64_t begin) {
  if (!is_asked_for(from)) return;
  record(result, "slice", {from}, OnLosses::kAdds,
         {.recorded = [shape = from.shape(), begin](const Tensor& dy, const BackwardContext&) {
           return std::vector<Tensor>{put_rows(dy, shape, begin)};
         }});
  note_options(result, SliceOptions{.dim = 0, .begin = begin});
}

void record_copy(const Tensor& result, const Tensor& from) {
  if (!is_asked_for(from)) return;
  record(result, "copy", {from}, OnLosses::kAdds,
         {.recorded = [device = from.device()](const Tensor& dy, const BackwardContext&) {
           return std::vector<Tensor>{dy.to(device)};
         }});
}

void require_writable(const Tensor& tensor, std::string_view operation) {
  const std::shared_ptr<Meta>& meta = tensor.autograd_meta();
  if (!meta || !meta->producer || !grad_enabled()) return;
  throw UsageError(std::string(operation) + " would write to " + describe(tensor) + ", the result of '" +
                       std::string(meta->producer->name()) + "': its gradient would be that of the elements before",
                   "Write to its detach(), where that is meant, or to a new tensor.");
}

void require_copyable(const Tensor& result, const Tensor& from) {
  require_writable(result, "copy_from");
  if (!is_recorded(from) || !is_floating(from.dtype())) return;
  const auto refuse = [&](const char* why) {
    throw UsageError("copy_from would write " + describe(from) + ", which requires a gradient, to " + why,
                     "Copy its detach(), where no gradient is to flow; or copy to a new tensor.");
  };
  if (result.requires_grad()) refuse("a leaf that requires one too: its own gradient would end here");
  if (result.is_shared())
    refuse("memory that other tensors show, or that a backward pass needs: they would not have it");
}

}  // namespace lockstep::autograd
