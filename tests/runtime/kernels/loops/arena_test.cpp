// SPDX-License-Identifier: Apache-2.0
#include "tests/runtime/kernels/loops/loops_fixture.h"

namespace lockstep::kernels {
namespace {

using namespace testing;

constexpr std::int64_t kBase = 100;
constexpr std::int64_t kLength = 1700;
/// With a gap, an empty segment and borders in the middle of vectors.
const std::vector<ArenaSegment> kSegments{
    {.begin = 103, .end = 110, .lr_scale = 1, .weight_decay = 0.1f},
    {.begin = 110, .end = 110, .lr_scale = 1, .weight_decay = 0},
    {.begin = 131, .end = 1799, .lr_scale = 0.5f, .weight_decay = 0},
};

template <class T>
class ArenaLoops : public KernelTest<T> {
 protected:
  /// Runs `steps` steps and returns everything that they may change. State starts with what must not be read: NaN.
  template <class Step>
  std::vector<Tensor> run(Backend& tested, DType master_precision, float found_inf, float clip_value, Step step) {
    ArenaSlice slice;
    slice.master = random_tensor({kLength}, DType::kFloat32, 1);
    slice.grad = this->random({kLength}, 2, -64, 64);
    slice.copy = Tensor::zeros({kLength}, this->kDType);
    slice.base = kBase;
    slice.segments = kSegments;
    slice.master_precision = master_precision;
    const float inverse_scale = 1.0f / 64, clip = 0.75f, learning_rate = 0.1f;
    std::int64_t applied = 0;
    const StepScalars scalars{.inverse_scale = &inverse_scale,
                              .clip = &clip,
                              .found_inf = &found_inf,
                              .learning_rate = &learning_rate,
                              .step = &applied,
                              .clip_value = clip_value};
    const Tensor first = Tensor::zeros({kLength}, DType::kFloat32), second = Tensor::zeros({kLength}, DType::kFloat32);
    for (applied = 1; applied <= 3; ++applied) step(tested, slice, scalars, first, second);
    return {slice.master, slice.copy, first, second};
  }

  Bounds bounds() const { return {.relative = epsilon_of(this->kDType), .absolute = 2e-6}; }
};
TYPED_TEST_SUITE(ArenaLoops, LoopTypes, OnName);

TYPED_TEST(ArenaLoops, SgdMatchesTheReference) {
  for (const SgdOptions& options :
       {SgdOptions{}, SgdOptions{.momentum = 0.9f}, SgdOptions{.momentum = 0.9f, .dampening = 0.1f},
        SgdOptions{.momentum = 0.9f, .nesterov = true}}) {
    for (const float clip_value : {0.0f, 0.3f}) {
      this->expect_matches_reference(
          [&](Backend& tested) {
            return this->run(
                tested, DType::kFloat32, 0, clip_value,
                [&](Backend& on, const ArenaSlice& slice, const StepScalars& scalars, const Tensor& state,
                    const Tensor&) { on.sgd_step(slice, options, scalars, options.momentum != 0 ? state : Tensor()); });
          },
          this->bounds());
    }
  }
}

TYPED_TEST(ArenaLoops, FirstMomentumIsTheGradientWhateverLayThere) {
  ArenaSlice slice;
  slice.master = Tensor::zeros({8}, DType::kFloat32);
  slice.grad = tensor_of({1, 2, 3, 4, 5, 6, 7, 8}, {8}, this->kDType);
  const std::vector<ArenaSegment> segments{{.begin = 0, .end = 8}};
  slice.segments = segments;
  const float one = 1;
  const std::int64_t step = 1;
  const Tensor momentum = tensor_of(std::vector(8, kNaN), {8}, DType::kFloat32);
  backend(kCpu).sgd_step(slice, {.momentum = 0.9f, .dampening = 0.5f},
                         {.inverse_scale = &one, .learning_rate = &one, .step = &step}, momentum);
  expect_close(momentum, slice.grad, {});
  expect_close(slice.master, {-1, -2, -3, -4, -5, -6, -7, -8}, {});
}

TYPED_TEST(ArenaLoops, AdamMatchesTheReference) {
  for (const bool decoupled : {false, true}) {
    this->expect_matches_reference(
        [&](Backend& tested) {
          return this->run(tested, DType::kFloat32, 0, 0,
                           [&](Backend& on, const ArenaSlice& slice, const StepScalars& scalars, const Tensor& m,
                               const Tensor& v) { on.adam_step(slice, {.decoupled = decoupled}, scalars, m, v); });
        },
        this->bounds());
  }
}

TYPED_TEST(ArenaLoops, RoundsTheMasterWhereThereIsNoFloat32One) {
  for (const DType precision : {DType::kFloat16, DType::kBFloat16}) {
    this->expect_matches_reference(
        [&](Backend& tested) {
          return this->run(tested, precision, 0, 0,
                           [](Backend& on, const ArenaSlice& slice, const StepScalars& scalars, const Tensor& state,
                              const Tensor&) { on.sgd_step(slice, {.momentum = 0.9f}, scalars, state); });
        },
        {.relative = 4 * epsilon_of(precision), .absolute = 4 * epsilon_of(precision)});
  }
}

TYPED_TEST(ArenaLoops, SkippedStepChangesNoBit) {
  const auto untouched = this->run(backend(kCpu), DType::kFloat32, 1, 0, [](auto&&...) {});
  const auto skipped =
      this->run(backend(kCpu), DType::kFloat16, 1, 0,
                [](Backend& on, const ArenaSlice& slice, const StepScalars& scalars, const Tensor& m, const Tensor& v) {
                  on.sgd_step(slice, {.momentum = 0.9f}, scalars, m);
                  on.adam_step(slice, {}, scalars, m, v);
                });
  for (std::size_t i = 0; i < skipped.size(); ++i) EXPECT_TRUE(bytes_of(skipped[i]) == bytes_of(untouched[i])) << i;
}

TYPED_TEST(ArenaLoops, CheckFiniteFlagsTheSegmentThatHoldsInfinityOrNaN) {
  for (const double bad : {0.0, kInfinity, -kInfinity, kNaN}) {
    for (const std::int64_t at : {3, 31, 500, 1698}) {
      Tensor grad = this->random({kLength}, 1, -1000, 1000);
      std::vector<double> values = values_of(grad);
      values[static_cast<std::size_t>(at)] = bad;
      grad = tensor_of(values, {kLength}, this->kDType);
      this->expect_matches_reference(
          [&](Backend& tested) {
            const Tensor flags = this->empty({3}, DType::kFloat32), alone = this->empty({3}, DType::kFloat32);
            const Tensor sums = this->empty({3}, DType::kFloat64);
            tested.check_finite(grad, kBase, kSegments, flags, sums);
            tested.check_finite(grad, kBase, kSegments, alone, Tensor());
            return std::vector{flags, alone, sums};
          },
          {.relative = 1e-12});
    }
  }
}

TYPED_TEST(ArenaLoops, FlagsNothingOutsideTheSegments) {
  std::vector<double> values(kLength, 1.0);
  for (const std::size_t at : {0u, 2u, 10u, 30u, 1699u}) values[at] = kNaN;
  const Tensor flags = this->empty({3}, DType::kFloat32);
  backend(kCpu).check_finite(tensor_of(values, {kLength}, this->kDType), kBase, kSegments, flags, Tensor());
  expect_close(flags, {0, 0, 0}, {});
}

TYPED_TEST(ArenaLoops, ThreadsChangeNothing) {
  const Tensor grad = this->random({200001}, 1);
  const std::vector<ArenaSegment> segments{{.begin = 0, .end = 200001}};
  const float one = 1;
  const std::int64_t step = 2;
  expect_same_bits_on_any_number_of_threads([&] {
    const Tensor flags = this->empty({1}, DType::kFloat32), sums = this->empty({1}, DType::kFloat64);
    backend(kCpu).check_finite(grad, 0, segments, flags, sums);
    ArenaSlice slice;
    slice.master = random_tensor({200001}, DType::kFloat32, 3);
    slice.grad = grad;
    slice.segments = segments;
    const Tensor m = Tensor::zeros({200001}, DType::kFloat32), v = Tensor::zeros({200001}, DType::kFloat32);
    backend(kCpu).adam_step(slice, {}, {.inverse_scale = &one, .learning_rate = &one, .step = &step}, m, v);
    return std::vector{flags, sums, slice.master, m, v};
  });
}

}  // namespace
}  // namespace lockstep::kernels
