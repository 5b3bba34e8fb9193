// SPDX-License-Identifier: Apache-2.0
// In place of cuDNN (cudnn_plans.h) and of cuBLASLt, which here multiplies on the host.
#include <cstdint>
#include <type_traits>

#include "runtime/kernels/backend.h"
#include "runtime/kernels/cpu/backend.h"
#include "runtime/kernels/cuda/cudnn_plans.h"
#include "runtime/kernels/cuda/matmul_plans.h"
#include "runtime/tensor/gpu.h"
#include "tests/support/emulated_gpu/emulation.h"

namespace lockstep::kernels::cuda {

bool run_on_host(const ConvProblem&, const ConvData&) { return false; }

namespace {

Tensor matrix(const void* data, DType dtype, const Shape& shape) {
  const std::size_t bytes = static_cast<std::size_t>(shape.numel()) * size_of(dtype);
  return Tensor::view(Storage(const_cast<void*>(data), bytes, kCpu, nullptr), 0, shape, dtype);
}

Shape shape_of(std::int64_t batch, std::int64_t rows, std::int64_t columns) {
  return batch == 1 ? Shape{rows, columns} : Shape{batch, rows, columns};
}

}  // namespace

struct MatmulPlans::State {};
MatmulPlans::MatmulPlans(Device device) : device_(device) {}
MatmulPlans::~MatmulPlans() = default;

bool MatmulPlans::run(const MatmulProblem& p, const MatmulData& data) {
  gpu::emulation::append(gpu::current_stream(device_), [=] {
    const Tensor a =
        matrix(data.a, p.operand, p.transpose_a ? shape_of(p.batch, p.k, p.m) : shape_of(p.batch, p.m, p.k));
    const Tensor b =
        matrix(data.b, p.operand, p.transpose_b ? shape_of(p.batch, p.n, p.k) : shape_of(p.batch, p.k, p.n));
    const Tensor out = matrix(data.out, p.result, shape_of(p.batch, p.m, p.n));
    // In float32 to the end, as cuBLASLt: out rounds once.
    const Tensor product = Tensor::zeros(out.shape(), DType::kFloat32, kCpu);
    const Backend& cpu = cpu_backend();
    if (data.accumulate) cpu.cast(out, product);
    Epilogue epilogue;
    const Tensor sums = Tensor::zeros({p.m}, DType::kFloat32, kCpu);
    if (p.bias_gradient) epilogue.bias_gradient = sums;
    cpu.matmul(a, p.transpose_a, b, p.transpose_b, epilogue, data.accumulate, product);
    if (p.bias) {
      const Tensor bias = Tensor::zeros({p.n}, DType::kFloat32, kCpu);
      cpu.cast(matrix(data.bias, p.result, Shape{p.n}), bias);
      cpu.binary(Binary::kAdd, product, bias, product);
    }
    cpu.cast(product, out);
    if (p.bias_gradient) cpu.cast(sums, matrix(data.bias_gradient, p.result, Shape{p.m}));
  });
  return true;
}

bool run_on_host(const AttentionProblem& p, const AttentionData& data) {
  gpu::emulation::append(gpu::current_stream(gpu::emulation::device()), [=] {
    const auto place = [&](const void* address, std::int64_t count, std::int64_t length, const HeadSteps& steps) {
      if (steps.row == p.channels) return Heads(matrix(address, p.dtype, Shape{p.batch, count, length, p.channels}));
      return Heads(matrix(address, p.dtype, Shape{p.batch, length, steps.row}), 0, count, p.channels);
    };
    const Heads q = place(data.q, p.heads, p.queries, p.steps.q), k = place(data.k, p.kv_heads, p.keys, p.steps.k),
                v = place(data.v, p.kv_heads, p.keys, p.steps.v),
                out = place(data.out, p.heads, p.queries, p.steps.out);
    const AttentionScores scores{.scale = p.scale, .causal = p.causal};
    const Tensor norms = Tensor::zeros({p.batch, p.heads, p.queries, 2}, DType::kFloat32, kCpu);
    auto* const halves = static_cast<float*>(norms.data());
    auto* const stats = static_cast<float*>(data.stats);
    if (p.pass == AttentionPass::kForward) {
      cpu_backend().attention(q, k, v, scores, out, norms);
      for (std::int64_t i = 0; i < norms.numel() / 2; ++i) stats[i] = halves[2 * i] + halves[2 * i + 1];
      return;
    }
    for (std::int64_t i = 0; i < norms.numel() / 2; ++i) halves[2 * i] = stats[i];
    cpu_backend().attention_backward(q, k, v, scores, out, norms, place(data.dout, p.heads, p.queries, p.steps.out),
                                     place(data.dq, p.heads, p.queries, p.steps.q),
                                     place(data.dk, p.kv_heads, p.keys, p.steps.k),
                                     place(data.dv, p.kv_heads, p.keys, p.steps.v));
  });
  return true;
}

}  // namespace lockstep::kernels::cuda
