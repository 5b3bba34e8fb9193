// SPDX-License-Identifier: Apache-2.0
#include <array>

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
    {.begin = 131, .end = 1799, .lr_scale = 0.5f, .weight_decay = 0, .parameter = 1},
};

template <class T>
class ArenaLoops : public KernelTest<T> {
 protected:
  /// Runs `steps` steps and returns everything that they may change. State starts with what must not be read: NaN.
  template <class Place, class Step>
  static std::vector<Tensor> run(const Place& on, DType master_precision, float found_inf, float clip_value,
                                 Step step) {
    ArenaSlice slice;
    slice.master = on.copy(random_tensor({kLength}, DType::kFloat32, 1));
    slice.grad = on(KernelTest<T>::random({kLength}, 2, -64, 64));
    slice.copy = on.zeros({kLength});
    slice.base = kBase;
    slice.segments = kSegments;
    slice.master_precision = master_precision;
    const auto inverse_scale = on.value(1.0f / 64), clip = on.value(0.75f), learning_rate = on.value(0.1f);
    const auto rejected = on.value(found_inf);
    const auto applied = on.value(std::array<std::int64_t, 2>{});
    const StepScalars scalars{.inverse_scale = inverse_scale.data(),
                              .clip = clip.data(),
                              .found_inf = rejected.data(),
                              .learning_rate = learning_rate.data(),
                              .steps = applied.data()->data(),
                              .clip_value = clip_value};
    const Tensor first = on.zeros({kLength}, DType::kFloat32), second = on.zeros({kLength}, DType::kFloat32);
    for (std::int64_t number = 1; number <= 3; ++number) {
      applied.write({number - 1, number + 4});
      step(*on.operator->(), slice, scalars, first, second);
    }
    return {slice.master, slice.copy, first, second};
  }

  /// Of what is stored after three steps.
  static Bounds stepped() { return {.relative = epsilon_of(KernelTest<T>::kDType), .absolute = 2e-6}; }
};
TYPED_TEST_SUITE(ArenaLoops, FastTypes, OnName);

TYPED_TEST(ArenaLoops, SgdMatchesTheReference) {
  for (const SgdRule& options : {SgdRule{}, SgdRule{.momentum = 0.9f}, SgdRule{.momentum = 0.9f, .dampening = 0.1f},
                                 SgdRule{.momentum = 0.9f, .nesterov = true}}) {
    for (const float clip_value : {0.0f, 0.3f}) {
      this->expect_matches_reference(
          [&](const auto& on) {
            return this->run(on, DType::kFloat32, 0, clip_value,
                             [&](const Backend& backend, const ArenaSlice& slice, const StepScalars& scalars,
                                 const Tensor& state, const Tensor&) {
                               backend.sgd_step(slice, options, scalars, options.momentum != 0 ? state : Tensor());
                             });
          },
          this->stepped());
    }
  }
}

TYPED_TEST(ArenaLoops, FirstMomentumIsTheGradientWhateverLayThere) {
  const auto on = this->tested();
  ArenaSlice slice;
  slice.master = on.zeros({8}, DType::kFloat32);
  slice.grad = on(tensor_of({1, 2, 3, 4, 5, 6, 7, 8}, {8}, this->kDType));
  const std::vector<ArenaSegment> segments{{.begin = 0, .end = 8}};
  slice.segments = segments;
  const auto one = on.value(1.0f);
  const auto steps = on.value(std::int64_t{0});
  const Tensor momentum = on.copy(tensor_of(std::vector(8, kNaN), {8}, DType::kFloat32));
  on->sgd_step(slice, {.momentum = 0.9f, .dampening = 0.5f},
               {.inverse_scale = one.data(), .learning_rate = one.data(), .steps = steps.data()}, momentum);
  expect_close(momentum, slice.grad, {});
  expect_close(slice.master, {-1, -2, -3, -4, -5, -6, -7, -8}, {});
}

TYPED_TEST(ArenaLoops, AdamMatchesTheReference) {
  for (const bool decoupled : {false, true}) {
    this->expect_matches_reference(
        [&](const auto& on) {
          return this->run(
              on, DType::kFloat32, 0, 0,
              [&](const Backend& backend, const ArenaSlice& slice, const StepScalars& scalars, const Tensor& m,
                  const Tensor& v) { backend.adam_step(slice, {.decoupled = decoupled}, scalars, m, v, {}); });
        },
        this->stepped());
  }
}

TYPED_TEST(ArenaLoops, ASegmentWithoutAGradientChangesNoBit) {
  const auto run = [&](bool adam) {
    return this->run(
        this->tested(), DType::kFloat16, 0, 0,
        [&](const Backend& backend, const ArenaSlice& slice, StepScalars scalars, const Tensor& m, const Tensor& v) {
          const DeviceValue<std::array<float, 2>> has({0.0f, 1.0f}, this->kDevice);
          scalars.has_gradient = has.data()->data();
          if (adam) return backend.adam_step(slice, {}, scalars, m, v, {});
          backend.sgd_step(slice, {.momentum = 0.9f}, scalars, m);
        });
  };
  const auto untouched = this->run(this->tested(), DType::kFloat32, 0, 0, [](auto&&...) {});
  for (const bool adam : {false, true}) {
    const auto stepped = run(adam);
    for (std::size_t i = 0; i < stepped.size(); ++i) {
      // kSegments[0] belongs to the first parameter, kSegments[2] to the second.
      EXPECT_TRUE(bytes_of(stepped[i].rows(3, 10)) == bytes_of(untouched[i].rows(3, 10))) << i;
      const bool state_of_adam_alone = i == 3 && !adam;
      EXPECT_EQ(bytes_of(stepped[i].rows(31, 1699)) == bytes_of(untouched[i].rows(31, 1699)), state_of_adam_alone) << i;
    }
  }
}

TYPED_TEST(ArenaLoops, RoundsTheMasterWhereThereIsNoFloat32One) {
  for (const DType precision : {DType::kFloat16, DType::kBFloat16}) {
    this->expect_matches_reference(
        [&](const auto& on) {
          return this->run(
              on, precision, 0, 0,
              [](const Backend& backend, const ArenaSlice& slice, const StepScalars& scalars, const Tensor& state,
                 const Tensor&) { backend.sgd_step(slice, {.momentum = 0.9f}, scalars, state); });
        },
        {.relative = 4 * epsilon_of(precision), .absolute = 4 * epsilon_of(precision)});
  }
}

TYPED_TEST(ArenaLoops, SkippedStepChangesNoBit) {
  const auto untouched = this->run(this->tested(), DType::kFloat32, 1, 0, [](auto&&...) {});
  const auto skipped = this->run(this->tested(), DType::kFloat16, 1, 0,
                                 [](const Backend& backend, const ArenaSlice& slice, const StepScalars& scalars,
                                    const Tensor& m, const Tensor& v) {
                                   backend.sgd_step(slice, {.momentum = 0.9f}, scalars, m);
                                   backend.adam_step(slice, {}, scalars, m, v, {});
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
          [&](const auto& on) {
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

TYPED_TEST(ArenaLoops, RescalesIntoAnyDtypeAndFlagsWhatOverflowsThere) {
  for (const DType to : {DType::kFloat32, DType::kFloat16, DType::kBFloat16}) {
    // As a factor of 1/8 leaves it: far beyond float16, just beyond it, just not.
    for (const double large : {0.0, 8 * 1e6, 8 * 65536.0, 8 * 65408.0, kInfinity, -kInfinity, kNaN}) {
      for (const std::int64_t at : {3, 31, 500, 1698}) {
        std::vector<double> values = values_of(this->random({kLength}, 1, -1000, 1000));
        values[static_cast<std::size_t>(at)] = large;
        const Tensor in = tensor_of(values, {kLength}, this->kDType);
        this->expect_matches_reference(
            [&](const auto& on) {
              const Tensor out = on.zeros({kLength}, to), unscaled = on.zeros({kLength}, to);
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

TYPED_TEST(ArenaLoops, RescalesInPlaceAndLimitsEveryElement) {
  std::vector<double> values = values_of(this->random({kLength}, 1, -4, 4));
  values[600] = kInfinity;
  values[700] = -kInfinity;
  values[800] = kNaN;
  const Tensor in = tensor_of(values, {kLength}, this->kDType);
  this->expect_matches_reference(
      [&](const auto& on) {
        const Tensor grad = on.copy(in), flags = on.empty({3}, DType::kFloat32);
        on->rescale(grad, on.value(0.5f).data(), 0.75f, kBase, kSegments, grad, flags);
        return std::vector{grad, flags};
      },
      {});
}

TYPED_TEST(ArenaLoops, FlagsNothingOutsideTheSegments) {
  std::vector<double> values(kLength, 1.0);
  for (const std::size_t at : {0u, 2u, 10u, 30u, 1699u}) values[at] = kNaN;
  const auto on = this->tested();
  const Tensor flags = on.empty({3}, DType::kFloat32);
  on->check_finite(on(tensor_of(values, {kLength}, this->kDType)), kBase, kSegments, flags, Tensor());
  expect_close(flags, {0, 0, 0}, {});
}

TYPED_TEST(ArenaLoops, ThreadsChangeNothing) {
  const Tensor grad = this->random({450001}, 1);
  const std::vector<ArenaSegment> segments{{.begin = 0, .end = 450001}};
  expect_same_bits_on_any_number_of_threads([&, on = this->tested()] {
    const auto one = on.value(1.0f);
    const auto steps = on.value(std::int64_t{1});
    const Tensor flags = on.empty({1}, DType::kFloat32), sums = on.empty({1}, DType::kFloat64);
    on->check_finite(on(grad), 0, segments, flags, sums);
    ArenaSlice slice;
    slice.master = on.copy(random_tensor({450001}, DType::kFloat32, 3));
    slice.grad = on(grad);
    slice.segments = segments;
    const Tensor m = on.zeros({450001}, DType::kFloat32), v = on.zeros({450001}, DType::kFloat32);
    on->adam_step(slice, {}, {.inverse_scale = one.data(), .learning_rate = one.data(), .steps = steps.data()}, m, v,
                  {});
    return std::vector{flags, sums, slice.master, m, v};
  });
}

}  // namespace
}  // namespace lockstep::kernels
