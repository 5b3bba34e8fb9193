// SPDX-License-Identifier: Apache-2.0
#include "runtime/ops/embedding.h"

#include <string>

#include "amp/autocast/autocast.h"
#include "runtime/autograd/node.h"
#include "runtime/autograd/record_observer.h"
#include "runtime/base/error.h"
#include "runtime/kernels/embedding.h"
#include "runtime/ops/operation_options.h"
#include "runtime/ops/result.h"

namespace lockstep::ops {

using autograd::BackwardContext;
using autograd::GradTarget;
using autograd::SavedTensor;

namespace {

constexpr std::int64_t kNone = -1;

/// [indices..., last]
Shape rows_shape(const Tensor& indices, std::int64_t last) {
  std::vector<std::int64_t> extents(indices.shape().extents().begin(), indices.shape().extents().end());
  extents.push_back(last);
  return Shape(std::span<const std::int64_t>(extents));
}

Tensor sums_by_index(const Tensor& dy, const Tensor& indices, std::int64_t rows, std::int64_t skipped);

/// weight[indices], zeros for index `skipped`; `without_gradient` says which index gives no gradient.
Tensor rows_by_index(const Tensor& weight, const Tensor& indices, std::int64_t skipped, std::int64_t without_gradient) {
  const Tensor y = Tensor::empty(rows_shape(indices, weight.size(1)), weight.dtype(), weight.device());
  kernels::Embedding::on(weight.device()).embedding(weight, indices, skipped, y);
  autograd::record(
      y, name_of(amp::Op::kEmbedding), {weight},
      {.fused =
           [weight = SavedTensor(weight), indices = SavedTensor(indices), without_gradient](
               const Tensor& dy, const BackwardContext& context) {
             const GradTarget target = context.target(0, weight.peek());
             kernels::Embedding::on(dy.device())
                 .embedding_backward(dy, context.saved(indices), without_gradient, target.accumulate, target.out);
             return std::vector<Tensor>{target.out};
           },
       .recorded =
           [rows = weight.size(0), indices = SavedTensor(indices), without_gradient](const Tensor& dy,
                                                                                     const BackwardContext& context) {
             return std::vector<Tensor>{sums_by_index(dy, context.saved(indices), rows, without_gradient)};
           }});
  autograd::note_options(y, EmbeddingOptions(), indices);
  return y;
}

/// The gradient of rows_by_index as an operation, whose own gradient is rows_by_index again.
Tensor sums_by_index(const Tensor& dy, const Tensor& indices, std::int64_t rows, std::int64_t skipped) {
  const Tensor sums = Tensor::empty({rows, dy.shape().back()}, dy.dtype(), dy.device());
  kernels::Embedding::on(dy.device()).embedding_backward(dy, indices, skipped, false, sums);
  autograd::record(
      sums, "embedding_backward", {dy},
      {.recorded = [indices = SavedTensor(indices), skipped](const Tensor& slope, const BackwardContext& context) {
        return std::vector<Tensor>{rows_by_index(slope, context.saved(indices), skipped, skipped)};
      }});
  return sums;
}

}  // namespace

Tensor embedding(const Tensor& weight_in, const Tensor& indices, std::optional<std::int64_t> padding_index) {
  const Tensor weight = amp::autocast(amp::Op::kEmbedding, weight_in, "the weight");
  require_defined(indices, "embedding", "indices");
  if (weight.shape().rank() != 2)
    throw ShapeError("embedding: the table must be [rows, width], found " + describe(weight));
  const std::int64_t rows = weight.size(0);
  std::int64_t padding = padding_index.value_or(kNone);
  if (padding_index) {
    if (padding < 0) padding += rows;
    if (padding < 0 || padding >= rows) {
      throw UsageError("embedding: padding_index " + std::to_string(*padding_index) + " lies outside the " +
                       std::to_string(rows) + " rows");
    }
  }
  return rows_by_index(weight, indices, kNone, padding);
}

}  // namespace lockstep::ops
