// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/cuda/conv_problem.h"

#include "runtime/kernels/cuda/tf32.h"

namespace lockstep::kernels::cuda {

ConvProblem::ConvProblem(ConvPass which, const ConvGeometry& geometry, const Shape& x, const Shape& weight,
                         const Shape& y, DType operand, DType written, bool with_bias)
    : pass(which),
      spatial(geometry.spatial_rank == 1 ? 2 : geometry.spatial_rank),
      images(x.front()),
      channels(x.back()),
      outputs(weight.front()),
      groups(geometry.groups),
      in{1, 1, 1},
      kernel{1, 1, 1},
      out{1, 1, 1},
      stride{1, 1, 1},
      padding{0, 0, 0},
      dilation{1, 1, 1},
      dtype(operand),
      result(written),
      bias(with_bias),
      tf32(operand == DType::kFloat32 && cuda::tf32()) {
  auto to = static_cast<std::size_t>(spatial - geometry.spatial_rank);
  for (int d = 0; d < geometry.spatial_rank; ++d, ++to) {
    const auto from = static_cast<std::size_t>(d);
    in[to] = x[d + 1];
    kernel[to] = weight[d + 1];
    out[to] = y[d + 1];
    stride[to] = geometry.stride[from];
    padding[to] = geometry.padding[from];
    dilation[to] = geometry.dilation[from];
  }
}

namespace {

std::string joined(const ConvProblem& problem, const std::array<std::int64_t, ConvProblem::kMaxSpatial>& all) {
  std::string text = std::to_string(all.front());
  for (int d = 1; d < problem.spatial; ++d) text.append("x").append(std::to_string(all[static_cast<std::size_t>(d)]));
  return text;
}

const char* name_of(ConvPass pass) {
  switch (pass) {
    case ConvPass::kForward:
      return "forward";
    case ConvPass::kData:
      return "data";
    case ConvPass::kWeights:
      return "weights";
  }
  return "";
}

}  // namespace

std::string key_of(const ConvProblem& p) {
  return std::string("conv ") + name_of(p.pass) + " n" + std::to_string(p.images) + " c" + std::to_string(p.channels) +
         " o" + std::to_string(p.outputs) + " g" + std::to_string(p.groups) + " in " + joined(p, p.in) + " kernel " +
         joined(p, p.kernel) + " out " + joined(p, p.out) + " stride " + joined(p, p.stride) + " padding " +
         joined(p, p.padding) + " dilation " + joined(p, p.dilation) + " " + std::string(lockstep::name_of(p.dtype)) +
         " to " + std::string(lockstep::name_of(p.result)) + (p.bias ? " bias" : "") + (p.tf32 ? " tf32" : "");
}

}  // namespace lockstep::kernels::cuda
