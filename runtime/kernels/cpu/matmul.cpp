// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/matmul.h"

#include <algorithm>

#include "runtime/kernels/cpu/families.h"
#include "runtime/kernels/cpu/isa.h"
#include "runtime/kernels/cpu/loops/loops.h"
#include "runtime/kernels/cpu/matmul_loops.h"
#include "runtime/kernels/cpu/onednn/api.h"
#include "runtime/kernels/cpu/parallel.h"
#include "runtime/kernels/cpu/primitive_cache.h"
#include "runtime/kernels/cpu/threads.h"
#include "runtime/kernels/cpu/widen.h"
#include "runtime/kernels/geometry/operand_checks.h"
#include "runtime/kernels/reductions.h"
#include "runtime/kernels/reference/families.h"

namespace lockstep::kernels::cpu {

namespace {

using dnnl::memory;

/// Rank 2 or 3 with the last two dimensions transposed by strides, where asked for.
memory::desc describe_matrix(const Tensor& tensor, bool transpose) {
  const std::span<const std::int64_t> extents = tensor.shape().extents();
  memory::dims dims(extents.begin(), extents.end());
  const std::size_t rank = dims.size();
  memory::dims strides(rank, 1);
  for (std::size_t d = rank - 1; d > 0; --d) strides[d - 1] = strides[d] * dims[d];
  if (transpose) {
    std::swap(dims[rank - 2], dims[rank - 1]);
    std::swap(strides[rank - 2], strides[rank - 1]);
  }
  return {dims, data_type(tensor.dtype()), strides};
}

memory::desc describe_bias(const Tensor& bias, int rank) {
  if (!bias.defined()) return {};
  memory::dims dims(static_cast<std::size_t>(rank), 1);
  dims.back() = bias.numel();
  return {dims, data_type(bias.dtype()), memory::dims(dims.size(), 1)};
}

/// op(a) op(b) (+ bias, + out when `add`), in dtypes that oneDNN has primitives for.
struct Product {
  bool transpose_a;
  bool transpose_b;

  void run(const Tensor& a, const Tensor& b, const Tensor& bias, bool add, const Tensor& out) const {
    thread_local PrimitiveCache<Primitive> plans("matmul");
    const auto key = PrimitiveKey().add(transpose_a).add(transpose_b).add(add).add(a).add(b).add(bias).add(out);
    Primitive& primitive = plans.get(key, [&]() -> Primitive {
      const memory::desc left = describe_matrix(a, transpose_a);
      const memory::desc right = describe_matrix(b, transpose_b);
      const memory::desc shift = describe_bias(bias, a.shape().rank());
      const memory::desc result = describe_matrix(out, false);
      const auto descriptor = onednn::matmul(left, right, shift, result, add ? adding() : user_scratchpad());
      if (is_plain(descriptor.impl_info_str())) return {};
      return Primitive::make<dnnl::matmul>(
          descriptor,
          {{DNNL_ARG_SRC, left}, {DNNL_ARG_WEIGHTS, right}, {DNNL_ARG_BIAS, shift}, {DNNL_ARG_DST, result}});
    });
    if (!primitive) return matmul_by_loops(a, transpose_a, b, transpose_b, bias, add, out);
    primitive.run({a.data(), b.data(), bias.defined() ? bias.data() : nullptr, out.data()});
  }
};

std::int64_t float_bytes(std::int64_t elements) { return elements * static_cast<std::int64_t>(sizeof(float)); }

/// Rows [begin, end) of the first dimension.
Tensor rows_of(const Tensor& tensor, std::int64_t begin, std::int64_t end) {
  return tensor.defined() ? tensor.detach_rows(begin, end) : tensor;
}

/// Where the primitive puts a product, or some of its rows, with the bias. finish() applies the rest of the epilogue
/// and stores the result in `out`, while the buffer is still in the cache.
class ProductBuffer {
 public:
  ProductBuffer(const Epilogue& epilogue, DType dtype, const Tensor& out, std::int64_t begin, std::int64_t end)
      : epilogue_(epilogue),
        out_(out.detach_rows(begin, end)),
        derivative_at_(rows_of(epilogue.derivative_at, begin, end)),
        result_(epilogue.preactivation.defined() ? epilogue.preactivation.detach_rows(begin, end) : out_, dtype) {}
  ProductBuffer(const Epilogue& epilogue, DType dtype, const Tensor& out)
      : ProductBuffer(epilogue, dtype, out, 0, out.size(0)) {}

  const Tensor& buffer() const { return result_.buffer(); }
  /// Whether the primitive must add to the buffer, where finish() cannot.
  bool adds(bool accumulate) const { return accumulate && result_.in_place(); }

  void finish(bool accumulate) const {
    if (epilogue_.activation == Activation::kNone && epilogue_.derivative == Activation::kNone) {
      return result_.store(accumulate);
    }
    if (epilogue_.preactivation.defined()) result_.store(false);
    const Input product = input(buffer());
    parallel_elements(out_.numel(), [&](std::int64_t begin, std::int64_t n) {
      const Output to = output(out_).from(begin);
      if (epilogue_.derivative == Activation::kNone) {
        loops().unary(unary_of(epilogue_.activation), product.from(begin), to, n);
      } else {
        loops().unary_backward(unary_of(epilogue_.derivative), input(derivative_at_).from(begin), product.from(begin),
                               to, n);
      }
    });
  }

 private:
  const Epilogue& epilogue_;
  Tensor out_;
  Tensor derivative_at_;
  Result result_;
};

/// Whether a 16-bit product may be rounded before the epilogue: relu and its derivative select, which commutes.
bool commutes_with_rounding(const Epilogue& epilogue) {
  const auto selects = [](Activation kind) { return kind == Activation::kNone || kind == Activation::kRelu; };
  return selects(epilogue.activation) && selects(epilogue.derivative);
}

void matmul(const Tensor& a, bool transpose_a, const Tensor& b, bool transpose_b, const Epilogue& epilogue,
            bool accumulate, const Tensor& out) {
  const auto [batch, m, n, k] = checks::matmul(a, transpose_a, b, transpose_b, epilogue, accumulate, out);
  // No rows, as of a rank without samples: the weights are not even read.
  if (out.numel() == 0 && !epilogue.bias_gradient.defined()) return;
  if (a.dtype() == DType::kFloat64 || out.numel() == 0 || k == 0) {
    return reference::kMatrixProducts.matmul(a, transpose_a, b, transpose_b, epilogue, accumulate, out);
  }
  const ThreadsFor threads(batch * m * n * k);
  if (epilogue.bias_gradient.defined()) {
    kReductions.sum_rows(a, epilogue.accumulate_bias_gradient, epilogue.bias_gradient);
  }
  const Product product{transpose_a, transpose_b};
  const bool native = a.dtype() == DType::kBFloat16 && has_native_bfloat16();
  if (a.dtype() == DType::kFloat32 || (native && commutes_with_rounding(epilogue))) {
    const ProductBuffer result(epilogue, out.dtype(), out);
    product.run(a, b, epilogue.bias, result.adds(accumulate), result.buffer());
    return result.finish(accumulate);
  }

  const DType operand = native ? DType::kBFloat16 : DType::kFloat32;
  const auto wide = [operand](const Tensor& tensor) { return as_dtype(tensor, operand); };
  const Tensor bias = wide(epilogue.bias);
  if (a.shape().rank() == 2 && transpose_a) {
    // Chunks of the summed dimension: rows of a, and of b unless that is transposed too, which no layer asks for.
    const ProductBuffer result(epilogue, DType::kFloat32, out);
    const std::int64_t step = transpose_b ? k : chunk_summed_rows(k, float_bytes(m + n), float_bytes(m * n));
    for (std::int64_t begin = 0; begin < k; begin += step) {
      const std::int64_t end = std::min(k, begin + step);
      const bool first = begin == 0;
      product.run(wide(a.detach_rows(begin, end)), wide(transpose_b ? b : b.detach_rows(begin, end)),
                  first ? bias : Tensor(), !first || result.adds(accumulate), result.buffer());
    }
    return result.finish(accumulate);
  }

  // Chunks of the result's first dimension: matrices of a batch, or rows of a matrix that meet all of b.
  const bool batched = a.shape().rank() == 3;
  const Tensor whole_b = batched ? Tensor() : wide(b);
  const std::int64_t count = out.size(0);
  const std::int64_t row = batched ? m * k + k * n + m * n : k + n;
  const std::int64_t step = chunk_rows(count, float_bytes(row), batched ? 0 : float_bytes(k * n));
  for (std::int64_t begin = 0; begin < count; begin += step) {
    const std::int64_t end = std::min(count, begin + step);
    const ProductBuffer result(epilogue, DType::kFloat32, out, begin, end);
    product.run(wide(a.detach_rows(begin, end)), batched ? wide(b.detach_rows(begin, end)) : whole_b, bias,
                result.adds(accumulate), result.buffer());
    result.finish(accumulate);
  }
}

}  // namespace

const MatrixProducts kMatrixProducts{.matmul = matmul};

}  // namespace lockstep::kernels::cpu
