// SPDX-License-Identifier: Apache-2.0
// Products and convolutions without oneDNN, on every processor; only where it has plain loops are they what is called.
#include <fmt/format.h>

#include "runtime/kernels/convolution.h"
#include "runtime/kernels/cpu/conv_loops.h"
#include "runtime/kernels/cpu/matmul_loops.h"
#include "runtime/kernels/matmul.h"
#include "tests/runtime/kernels/dnn/conv_case.h"
#include "tests/runtime/kernels/kernel_fixture.h"

namespace lockstep::kernels {
namespace {

using testing::Bounds;
using testing::bounds_for;
using testing::ConvCase;
using testing::expect_close;
using testing::random_tensor;
using testing::reference_of;
using testing::tensor_of;
using testing::values_of;

class ByLoops : public ::testing::Test {
 protected:
  static Tensor random(const Shape& shape, std::uint32_t seed) { return random_tensor(shape, DType::kFloat32, seed); }
  static Bounds bounds(std::int64_t terms) { return bounds_for(DType::kFloat32, terms); }
  static Tensor made(const Shape& shape) { return Tensor::empty(shape, DType::kFloat32); }
  static Tensor copy(const Tensor& tensor) { return tensor_of(values_of(tensor), tensor.shape(), tensor.dtype()); }
};

struct BlockedProduct {
  std::int64_t batch, rows, columns, terms;
};

TEST_F(ByLoops, ProductsMatchReference) {
  // Within a block, past one in each direction, and of vectors.
  for (const BlockedProduct& c : {BlockedProduct{1, 1, 1, 1},
                                  {1, 7, 17, 3},
                                  {1, 97, 65, 257},
                                  {3, 5, 16, 300},
                                  {1, 200, 10, 64},
                                  {1, 6, 130, 1}}) {
    for (const int transposed : {0, 1, 2, 3}) {
      SCOPED_TRACE(
          fmt::format("{} x {}x{} of {} terms, transposed {}", c.batch, c.rows, c.columns, c.terms, transposed));
      const bool of_a = (transposed & 1) != 0, of_b = (transposed & 2) != 0;
      const Tensor a = random(of_a ? Shape{c.batch, c.terms, c.rows} : Shape{c.batch, c.rows, c.terms}, 1);
      const Tensor b = random(of_b ? Shape{c.batch, c.columns, c.terms} : Shape{c.batch, c.terms, c.columns}, 2);
      for (const Tensor& bias : {Tensor(), random({c.columns}, 3)}) {
        for (const bool add : {false, true}) {
          const Tensor before = random({c.batch, c.rows, c.columns}, 4);
          const Tensor expected = copy(before), found = copy(before);
          reference_of<MatrixProducts>().matmul(a, of_a, b, of_b, bias, add, expected);
          cpu::matmul_by_loops(a, of_a, b, of_b, bias, add, found);
          expect_close(found, expected, bounds(c.terms + 2));
        }
      }
    }
  }
}

TEST_F(ByLoops, ConvolutionsMatchReference) {
  for (const ConvCase& c : {
           ConvCase{"three channels", {.padding = {1, 1}}, {2, 10, 9, 3}, {16, 3, 3, 3}},
           {"past a block", {.padding = {1, 1}}, {2, 8, 9, 33}, {70, 3, 3, 33}},
           {"stride 2", {.stride = {2, 2}, .padding = {1, 1}}, {3, 8, 8, 32}, {64, 3, 3, 32}},
           {"differing dimensions",
            {.stride = {1, 2}, .padding = {0, 2}, .dilation = {3, 1}},
            {2, 9, 8, 4},
            {6, 2, 5, 4}},
           {"groups", {.padding = {1, 1}, .groups = 2}, {2, 6, 6, 10}, {12, 3, 3, 5}},
           {"depthwise", {.padding = {1, 1}, .groups = 16}, {2, 7, 7, 16}, {16, 3, 3, 1}},
           {"1d", {.spatial_rank = 1, .stride = {2}, .padding = {2}}, {2, 21, 8}, {6, 5, 8}},
           {"3d", {.spatial_rank = 3, .padding = {1, 0, 1}}, {1, 5, 6, 4, 16}, {8, 3, 3, 3, 16}},
       }) {
    SCOPED_TRACE(c.name);
    const Shape out = conv_output_shape(c.x, c.weight, c.geometry);
    const Tensor x = random(c.x, 1), weight = random(c.weight, 2), dy = random(out, 3);
    for (const Tensor& bias : {Tensor(), random({c.weight.front()}, 4)}) {
      const Tensor expected = made(out), found = made(out);
      reference_of<Convolution>().conv_forward(c.geometry, x, weight, bias, expected);
      cpu::conv_forward_by_loops(c.geometry, x, weight, bias, found);
      expect_close(found, expected, bounds(c.weight.numel() / c.weight.front() + 1));
    }
    for (const bool add : {false, true}) {
      const Tensor before = random(c.weight, 5), expected_dx = made(c.x), dx = made(c.x);
      const Tensor expected = copy(before), found = copy(before);
      reference_of<Convolution>().conv_backward(c.geometry, x, weight, dy, expected_dx, expected, {}, add);
      cpu::conv_backward_data_by_loops(c.geometry, dy, weight, dx);
      cpu::conv_backward_weights_by_loops(c.geometry, x, dy, add, found);
      expect_close(dx, expected_dx, bounds(c.weight.numel() / c.weight.back()));
      expect_close(found, expected, bounds(out.rows() + 1));
    }
  }
}

}  // namespace
}  // namespace lockstep::kernels
