// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/arena.h"
#include "tests/runtime/kernels/loops/arena_fixture.h"

namespace lockstep::kernels {
namespace {

using namespace testing;

/// Passes over gradients that look for infinity and NaN.
class GradientChecks : public KernelTest<ArenaSteps> {};
INSTANTIATE_TEST_SUITE_P(On, GradientChecks, kFastTypes, name_of_on);

TEST_P(GradientChecks, CheckFiniteFlagsTheSegmentThatHoldsInfinityOrNaN) {
  for (const double bad : {0.0, kInfinity, -kInfinity, kNaN}) {
    for (const std::int64_t at : {3, 31, 500, 1698}) {
      Tensor grad = random({kArenaLength}, 1, -1000, 1000);
      std::vector<double> values = values_of(grad);
      values[static_cast<std::size_t>(at)] = bad;
      grad = tensor_of(values, {kArenaLength}, dtype());
      expect_matches_reference(
          [&](const Place& on) {
            const Tensor flags = on.empty({3}, DType::kFloat32), alone = on.empty({3}, DType::kFloat32);
            const Tensor sums = on.empty({3}, DType::kFloat64);
            on->check_finite(on(grad), kBase, kSegments, flags, sums);
            on->check_finite(on(grad), kBase, kSegments, alone, Tensor());
            return std::vector{flags, alone, sums};
          },
          {.relative = 1e-12});
    }
  }
}

TEST_P(GradientChecks, RescalesIntoAnyDtypeAndFlagsWhatOverflowsThere) {
  for (const DType to : {DType::kFloat32, DType::kFloat16, DType::kBFloat16}) {
    // As a factor of 1/8 leaves it: far beyond float16, just beyond it, just not.
    for (const double large : {0.0, 8 * 1e6, 8 * 65536.0, 8 * 65408.0, kInfinity, -kInfinity, kNaN}) {
      for (const std::int64_t at : {3, 31, 500, 1698}) {
        std::vector<double> values = values_of(random({kArenaLength}, 1, -1000, 1000));
        values[static_cast<std::size_t>(at)] = large;
        const Tensor in = tensor_of(values, {kArenaLength}, dtype());
        expect_matches_reference(
            [&](const Place& on) {
              const Tensor out = on.zeros({kArenaLength}, to), unscaled = on.zeros({kArenaLength}, to);
              const Tensor flags = on.empty({3}, DType::kFloat32), plain = on.empty({3}, DType::kFloat32);
              on->rescale(on(in), on.value(0.125f).data(), 0, kBase, kSegments, out, flags);
              on->rescale(on(in), nullptr, 0, kBase, kSegments, unscaled, plain);
              return std::vector{out, flags, unscaled, plain};
            },
            {});
      }
    }
  }
}

TEST_P(GradientChecks, RescalesInPlaceAndLimitsEveryElement) {
  std::vector<double> values = values_of(random({kArenaLength}, 1, -4, 4));
  values[600] = kInfinity;
  values[700] = -kInfinity;
  values[800] = kNaN;
  const Tensor in = tensor_of(values, {kArenaLength}, dtype());
  expect_matches_reference(
      [&](const Place& on) {
        const Tensor grad = on.copy(in), flags = on.empty({3}, DType::kFloat32);
        on->rescale(grad, on.value(0.5f).data(), 0.75f, kBase, kSegments, grad, flags);
        return std::vector{grad, flags};
      },
      {});
}

TEST_P(GradientChecks, FlagsNothingOutsideTheSegments) {
  std::vector<double> values(kArenaLength, 1.0);
  for (const std::size_t at : {0u, 2u, 10u, 30u, 1699u}) values[at] = kNaN;
  const auto on = tested();
  const Tensor flags = on.empty({3}, DType::kFloat32);
  on->check_finite(on(tensor_of(values, {kArenaLength}, dtype())), kBase, kSegments, flags, Tensor());
  expect_close(flags, {0, 0, 0}, {});
}

}  // namespace
}  // namespace lockstep::kernels
