// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/convolution.h"

#include <algorithm>
#include <optional>

#include "runtime/kernels/cpu/conv_plan.h"
#include "runtime/kernels/cpu/families.h"
#include "runtime/kernels/cpu/threads.h"
#include "runtime/kernels/cpu/widen.h"
#include "runtime/kernels/geometry/operand_checks.h"
#include "runtime/kernels/reductions.h"
#include "runtime/kernels/reference/families.h"

namespace lockstep::kernels::cpu {

namespace {

/// The reference runs what the library has no primitive for: float64, and convolutions of nothing.
bool runs_on_reference(const Tensor& x, const Tensor& weight, const Tensor& y) {
  return x.dtype() == DType::kFloat64 || x.numel() == 0 || weight.numel() == 0 || y.numel() == 0;
}

/// Images in a chunk: all of them unless some pass widens its tensors. Winograd's algorithm copies them several times
/// over anyway, and needs many for its products.
std::int64_t chunk_images(ConvAlgorithm algorithm, const Tensor& x, const Tensor& weight, const Tensor& y,
                          bool widens) {
  const std::int64_t images = x.size(0);
  if (!widens) return images;
  constexpr std::int64_t kFloatBytes = sizeof(float);
  const auto chunk = algorithm == ConvAlgorithm::kWinograd ? chunk_summed_rows : chunk_rows;
  return chunk(images, (x.numel() + y.numel()) / images * kFloatBytes, weight.numel() * kFloatBytes);
}

/// Multiply-adds of a pass.
std::int64_t products(const Tensor& weight, const Tensor& y) { return y.numel() * (weight.numel() / weight.size(0)); }

/// One tensor in the dtypes that passes ask for, converted at most once.
class Operand {
 public:
  explicit Operand(const Tensor& tensor) : tensor_(tensor) {}

  const Tensor& as(DType dtype) {
    if (tensor_.dtype() == dtype) return tensor_;
    if (!converted_.defined()) converted_ = as_dtype(tensor_, dtype);
    return converted_;
  }

 private:
  Tensor tensor_;
  Tensor converted_;
};

void conv_forward(const ConvGeometry& geometry, const Tensor& x, const Tensor& weight, const Tensor& bias,
                  const Tensor& y) {
  checks::conv_forward(geometry, x, weight, bias, y);
  if (y.numel() == 0) return;  // no images, as of a rank without samples: the weights are not even read
  if (runs_on_reference(x, weight, y)) return reference::kConvolution.conv_forward(geometry, x, weight, bias, y);
  const ThreadsFor threads(products(weight, y));
  const DType dtype = conv_dtype(ConvPass::kForward, geometry, x.shape(), y.shape(), x.dtype());
  const Tensor kernel = as_dtype(weight, dtype);
  const Tensor shift = as_dtype(bias, dtype);
  const std::int64_t images = x.size(0);
  const ConvAlgorithm algorithm =
      conv_algorithm(ConvPass::kForward, geometry, x.shape(), weight.shape(), y.shape(), dtype);
  const std::int64_t step = chunk_images(algorithm, x, weight, y, dtype != x.dtype());
  for (std::int64_t begin = 0; begin < images; begin += step) {
    const std::int64_t end = std::min(images, begin + step);
    const Result result(y.detach_rows(begin, end), dtype);
    onednn_forward(algorithm, geometry, as_dtype(x.detach_rows(begin, end), dtype), kernel, shift, result.buffer());
    result.store(false);
  }
}

void conv_backward(const ConvGeometry& geometry, const Tensor& x, const Tensor& weight, const Tensor& dy,
                   const Tensor& dx, const Tensor& dweight, const Tensor& dbias, bool accumulate) {
  checks::conv_backward(geometry, x, weight, dy, dx, dweight, dbias);
  if (runs_on_reference(x, weight, dy)) {
    return reference::kConvolution.conv_backward(geometry, x, weight, dy, dx, dweight, dbias, accumulate);
  }
  const ThreadsFor threads(products(weight, dy));
  if (dbias.defined()) kReductions.sum_rows(dy, accumulate, dbias);
  if (!dx.defined() && !dweight.defined()) return;

  const auto dtype_for = [&](ConvPass pass) { return conv_dtype(pass, geometry, x.shape(), dy.shape(), x.dtype()); };
  const DType data_dtype = dtype_for(ConvPass::kData);
  const DType weights_dtype = dtype_for(ConvPass::kWeights);
  const auto algorithm_for = [&](ConvPass pass, DType dtype) {
    return conv_algorithm(pass, geometry, x.shape(), weight.shape(), dy.shape(), dtype);
  };
  const ConvAlgorithm data_algorithm = algorithm_for(ConvPass::kData, data_dtype);
  const ConvAlgorithm weights_algorithm = algorithm_for(ConvPass::kWeights, weights_dtype);
  const bool widens = (dx.defined() && data_dtype != x.dtype()) || (dweight.defined() && weights_dtype != x.dtype());
  const Tensor kernel = dx.defined() ? as_dtype(weight, data_dtype) : Tensor();
  std::optional<Result> gradient;
  if (dweight.defined()) gradient.emplace(dweight, DType::kFloat32);

  const std::int64_t images = x.size(0);
  const std::int64_t step = chunk_images(weights_algorithm, x, weight, dy, widens);
  for (std::int64_t begin = 0; begin < images; begin += step) {
    const std::int64_t end = std::min(images, begin + step);
    Operand slope(dy.detach_rows(begin, end));
    if (dx.defined()) {
      const Result result(dx.detach_rows(begin, end), data_dtype);
      onednn_backward_data(data_algorithm, geometry, slope.as(data_dtype), kernel, result.buffer());
      result.store(false);
    }
    if (gradient) {
      const bool add = begin > 0 || (accumulate && gradient->in_place());
      onednn_backward_weights(weights_algorithm, geometry, as_dtype(x.detach_rows(begin, end), weights_dtype),
                              slope.as(weights_dtype), add, gradient->buffer());
    }
  }
  if (gradient) gradient->store(accumulate);
}

}  // namespace

const Convolution kConvolution{.conv_forward = conv_forward, .conv_backward = conv_backward};

}  // namespace lockstep::kernels::cpu
