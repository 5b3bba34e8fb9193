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

}  // namespace lockstep::kernels::cuda
