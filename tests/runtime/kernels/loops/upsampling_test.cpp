// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/upsampling.h"

#include "runtime/kernels/geometry/spatial.h"
#include "tests/runtime/kernels/loops/loops_fixture.h"

namespace lockstep::kernels {
namespace {

using namespace testing;

using UpsamplingLoops = KernelTest<Upsampling>;
INSTANTIATE_TEST_SUITE_P(On, UpsamplingLoops, kFastTypes, name_of_on);

struct Case {
  UpsampleGeometry geometry;
  Shape x;
  Shape y;
};

std::vector<Case> cases() {
  std::vector<Case> all;
  const std::pair<Shape, Shape> images[] = {
      {{2, 5, 3}, {2, 10, 3}},             // twice
      {{2, 5, 3}, {2, 12, 3}},             // by no whole number
      {{2, 5, 16}, {2, 3, 16}},            // fewer pixels
      {{1, 1, 2}, {1, 4, 2}},              // of one pixel
      {{2, 4, 1}, {2, 1, 1}},              // to one pixel
      {{2, 3, 4, 5}, {2, 6, 4, 5}},        // along one dimension
      {{2, 3, 4, 17}, {2, 5, 9, 17}},      //
      {{2, 3, 4, 2}, {2, 2, 9, 2}},        //
      {{0, 3, 4, 2}, {0, 6, 8, 2}},        // without samples
      {{1, 2, 3, 2, 8}, {1, 4, 6, 4, 8}},  //
      {{2, 2, 3, 4, 3}, {2, 5, 3, 7, 3}},  //
      {{1, 20, 30, 64}, {1, 40, 60, 64}},  //
  };
  for (const auto& [x, y] : images) {
    const int rank = x.rank() - 2;
    all.push_back({{.mode = UpsampleMode::kNearest, .spatial_rank = rank}, x, y});
    all.push_back({{.mode = UpsampleMode::kLinear, .spatial_rank = rank}, x, y});
    all.push_back({{.mode = UpsampleMode::kLinear, .spatial_rank = rank, .align_corners = true}, x, y});
  }
  all.push_back({{.mode = UpsampleMode::kNearest, .spatial_rank = 1, .scale_factor = {2.3}}, {2, 5, 3}, {2, 11, 3}});
  all.push_back({{.mode = UpsampleMode::kLinear, .spatial_rank = 1, .scale_factor = {2.3}}, {2, 5, 3}, {2, 11, 3}});
  return all;
}

TEST_P(UpsamplingLoops, MatchTheReference) {
  for (const Case& at : cases()) {
    SCOPED_TRACE(at.x.str() + " to " + at.y.str());
    const Tensor x = random(at.x, 1), dy = random(at.y, 2);
    expect_matches_reference(
        [&](const Place& on) {
          const Tensor y = on.empty(at.y), dx = on.empty(at.x);
          on->upsample(at.geometry, on(x), y);
          on->upsample_backward(at.geometry, on(dy), dx);
          return std::vector{y, dx};
        },
        bounds(30));
  }
}

TEST_P(UpsamplingLoops, ThreadsChangeNothing) {
  const UpsampleGeometry geometry{.mode = UpsampleMode::kLinear, .spatial_rank = 2};
  const Tensor x = random({1, 64, 64, 40}, 1), dy = random({1, 100, 150, 40}, 2);
  expect_same_bits_on_any_number_of_threads([&, on = tested()] {
    const Tensor y = on.empty({1, 100, 150, 40}), dx = on.empty({1, 64, 64, 40});
    on->upsample(geometry, on(x), y);
    on->upsample_backward(geometry, on(dy), dx);
    return std::vector{y, dx};
  });
}

TEST(UpsamplingKernel, RefusesWhatDoesNotFit) {
  const Upsampling& on = Upsampling::on(kCpu);
  const auto zeros = [](const Shape& shape) { return Tensor::zeros(shape, DType::kFloat32); };
  const UpsampleGeometry plane{.spatial_rank = 2};
  EXPECT_THROW(on.upsample(plane, zeros({1, 2, 3}), zeros({1, 4, 6})), ShapeError) << "no plane";
  EXPECT_THROW(on.upsample(plane, zeros({1, 2, 3, 4}), zeros({1, 4, 6, 3})), ShapeError) << "other channels";
  EXPECT_THROW(on.upsample(plane, zeros({1, 2, 0, 4}), zeros({1, 4, 6, 4})), ShapeError) << "no pixel";
  EXPECT_THROW(on.upsample({.spatial_rank = 4}, zeros({1, 2, 2, 2, 2, 4}), zeros({1, 2, 2, 2, 2, 4})), ShapeError);
  EXPECT_EQ(upsample_output_shape({2, 3, 5, 4}, {.spatial_rank = 2, .scale_factor = {2, 1.5}}), (Shape{2, 6, 7, 4}));
  EXPECT_THROW(upsample_output_shape({2, 3, 4}, {.spatial_rank = 1, .scale_factor = {0.2}}), ShapeError);
  EXPECT_THROW(upsample_output_shape({2, 3, 4}, {.spatial_rank = 1}), ShapeError) << "no factor";
}

}  // namespace
}  // namespace lockstep::kernels
