// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "runtime/kernels/cpu/cpu_backend.h"
#include "runtime/kernels/cpu/isa.h"
#include "runtime/kernels/cpu/primitive_cache.h"
#include "runtime/kernels/cpu/widen.h"
#include "runtime/kernels/geometry/checks.h"

namespace lockstep::kernels {

namespace {

using cpu::Primitive;
using cpu::PrimitiveKey;
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
  return {dims, cpu::data_type(tensor.dtype()), strides};
}

memory::desc describe_bias(const Tensor& bias, int rank) {
  if (!bias.defined()) return {};
  memory::dims dims(static_cast<std::size_t>(rank), 1);
  dims.back() = bias.numel();
  return {dims, cpu::data_type(bias.dtype()), memory::dims(dims.size(), 1)};
}

/// op(a) op(b) (+ bias, + out when `add`), in dtypes that oneDNN has primitives for.
struct Product {
  bool transpose_a;
  bool transpose_b;

  void run(const Tensor& a, const Tensor& b, const Tensor& bias, bool add, const Tensor& out) const {
    thread_local cpu::PlanCache<Primitive> plans("matmul");
    const auto key = PrimitiveKey().add(transpose_a).add(transpose_b).add(add).add(a).add(b).add(bias).add(out);
    Primitive& primitive = plans.get(key, [&] {
      const memory::desc left = describe_matrix(a, transpose_a);
      const memory::desc right = describe_matrix(b, transpose_b);
      const memory::desc shift = describe_bias(bias, a.shape().rank());
      const memory::desc result = describe_matrix(out, false);
      const dnnl::primitive_attr attributes = add ? cpu::adding() : cpu::user_scratchpad();
      const dnnl::matmul::primitive_desc descriptor({left, right, shift, result}, attributes, cpu::engine());
      return Primitive::make<dnnl::matmul>(
          descriptor,
          {{DNNL_ARG_SRC, left}, {DNNL_ARG_WEIGHTS, right}, {DNNL_ARG_BIAS, shift}, {DNNL_ARG_DST, result}});
    });
    primitive.run({a.data(), b.data(), bias.defined() ? bias.data() : nullptr, out.data()});
  }
};

std::int64_t float_bytes(std::int64_t elements) { return elements * static_cast<std::int64_t>(sizeof(float)); }

}  // namespace

void CpuBackend::matmul(const Tensor& a, bool transpose_a, const Tensor& b, bool transpose_b, const Tensor& bias,
                        bool accumulate, const Tensor& out) {
  const auto [batch, m, n, k] = checks::matmul(a, transpose_a, b, transpose_b, bias, out);
  if (a.dtype() == DType::kFloat64 || out.numel() == 0 || k == 0) {
    return reference_backend().matmul(a, transpose_a, b, transpose_b, bias, accumulate, out);
  }
  const Product product{transpose_a, transpose_b};
  const bool native = a.dtype() == DType::kBFloat16 && cpu::has_native_bfloat16();
  if (native || a.dtype() == DType::kFloat32) {
    const bool direct = native && out.dtype() == DType::kBFloat16;
    const cpu::Result result(*this, out, direct ? DType::kBFloat16 : DType::kFloat32);
    product.run(a, b, bias, accumulate && result.in_place(), result.buffer());
    return result.store(accumulate);
  }

  const Tensor shift = cpu::as_dtype(*this, bias, DType::kFloat32);
  const auto wide = [this](const Tensor& tensor) { return cpu::as_dtype(*this, tensor, DType::kFloat32); };
  if (a.shape().rank() == 2 && transpose_a) {
    // Chunks of the summed dimension: rows of a, and of b unless that is transposed too, which no layer asks for.
    const cpu::Result result(*this, out, DType::kFloat32);
    const std::int64_t step = transpose_b ? k : cpu::chunk_rows(k, float_bytes(m + n), float_bytes(m * n));
    for (std::int64_t begin = 0; begin < k; begin += step) {
      const std::int64_t end = std::min(k, begin + step);
      const bool first = begin == 0;
      product.run(wide(a.rows(begin, end)), wide(transpose_b ? b : b.rows(begin, end)), first ? shift : Tensor(),
                  !first || (accumulate && result.in_place()), result.buffer());
    }
    return result.store(accumulate);
  }

  // Chunks of the result's first dimension: matrices of a batch, or rows of a matrix that meet all of b.
  const bool batched = a.shape().rank() == 3;
  const Tensor whole_b = batched ? Tensor() : wide(b);
  const std::int64_t count = out.size(0);
  const std::int64_t row = batched ? m * k + k * n + m * n : k + n;
  const std::int64_t step = cpu::chunk_rows(count, float_bytes(row), batched ? 0 : float_bytes(k * n));
  for (std::int64_t begin = 0; begin < count; begin += step) {
    const std::int64_t end = std::min(count, begin + step);
    const cpu::Result result(*this, out.rows(begin, end), DType::kFloat32);
    product.run(wide(a.rows(begin, end)), batched ? wide(b.rows(begin, end)) : whole_b, shift,
                accumulate && result.in_place(), result.buffer());
    result.store(accumulate);
  }
}

}  // namespace lockstep::kernels
