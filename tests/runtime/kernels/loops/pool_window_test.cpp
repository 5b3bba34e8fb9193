// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/functors/pool_window.h"

#include "tests/runtime/kernels/loops/loops_fixture.h"

namespace lockstep::kernels {
namespace {

/// Every axis of up to 7 inputs, windows of up to 4, strides of up to 5 and the paddings that pooling takes.
template <class Visit>
void for_each_axis(Visit visit) {
  for (std::int64_t in = 1; in <= 7; ++in) {
    for (std::int64_t window = 1; window <= 4; ++window) {
      for (std::int64_t stride = 1; stride <= 5; ++stride) {
        for (std::int64_t padding = 0; 2 * padding <= window; ++padding) {
          if (window > in + 2 * padding) continue;
          visit(PoolAxis{in, kernels::output_extent(in, window, stride, padding, 1), window, stride, padding});
        }
      }
    }
  }
}

bool covers(const PoolAxis& axis, std::int64_t output, std::int64_t input) {
  const std::int64_t place = input + axis.padding - output * axis.stride;
  return place >= 0 && place < axis.window;
}

TEST(PoolAxis, NamesTheInputsUnderEachWindowAndTheWindowsOverEachInput) {
  for_each_axis([](const PoolAxis& axis) {
    for (std::int64_t output = 0; output < axis.out; ++output) {
      EXPECT_GT(axis.inputs_of(output).size(), 0);
      for (std::int64_t input = 0; input < axis.in; ++input) {
        const PoolRange inputs = axis.inputs_of(output);
        const PoolRange outputs = axis.outputs_of(input);
        EXPECT_EQ(inputs.begin <= input && input < inputs.end, covers(axis, output, input));
        EXPECT_EQ(outputs.begin <= output && output < outputs.end, covers(axis, output, input));
      }
    }
  });
}

TEST(PoolWindow, PutsMissingDimensionsFirst) {
  kernels::PoolGeometry geometry{.kind = kernels::PoolKind::kAverage, .window = {3, 2, 1}, .padding = {1, 0, 0}};
  const Shape x{2, 5, 6, 4};
  const PoolWindow window(geometry, x, kernels::pool_output_shape(x, geometry));
  EXPECT_EQ(window.axes[0].in, 1);
  EXPECT_EQ(window.axes[1].in, 5);
  EXPECT_EQ(window.axes[2].in, 6);
  EXPECT_EQ(window.in_pixels(), 30);
  EXPECT_EQ(window.out_pixels(), 25);
  EXPECT_EQ(window.divisor(0, 0, 0), 6.0f);
}

TEST(PoolWindow, LeavesPaddingOutOfTheDivisorWhereAskedTo) {
  const kernels::PoolGeometry geometry{
      .kind = kernels::PoolKind::kAverage, .window = {3, 2, 1}, .padding = {1, 0, 0}, .count_include_pad = false};
  const Shape x{2, 5, 6, 4};
  const PoolWindow window(geometry, x, kernels::pool_output_shape(x, geometry));
  EXPECT_EQ(window.divisor(0, 0, 0), 4.0f);
  EXPECT_EQ(window.divisor(0, 2, 0), 6.0f);
}

}  // namespace
}  // namespace lockstep::kernels
