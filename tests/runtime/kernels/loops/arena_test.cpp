// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/arena.h"

#include <array>

#include "tests/runtime/kernels/loops/arena_fixture.h"

namespace lockstep::kernels {
namespace {

using namespace testing;

class ArenaLoops : public KernelTest<ArenaSteps> {
 protected:
  using Step = FunctionRef<void(const ArenaSteps& arena_steps, const ArenaSlice& slice, const StepScalars& scalars,
                                const Tensor& first, const Tensor& second)>;

  /// Runs `steps` steps and returns everything that they may change. State starts with what must not be read: NaN.
  static std::vector<Tensor> run(const Place& on, DType master_precision, float found_inf, float clip_value,
                                 Step step) {
    ArenaSlice slice;
    slice.master = on.copy(random_tensor({kArenaLength}, DType::kFloat32, 1));
    slice.grad = on(random({kArenaLength}, 2, -64, 64));
    slice.copy = on.zeros({kArenaLength});
    slice.base = kBase;
    slice.segments = kSegments;
    slice.master_precision = master_precision;
    const auto inverse_scale = on.value(1.0f / 64), clip = on.value(0.75f), learning_rate = on.value(0.1f);
    const auto rejected = on.value(found_inf);
    const auto applied = on.value(std::array<std::int64_t, 3>{});
    const StepScalars scalars{.inverse_scale = inverse_scale.data(),
                              .clip = clip.data(),
                              .found_inf = rejected.data(),
                              .learning_rate = learning_rate.data(),
                              .steps = applied.data()->data(),
                              .clip_value = clip_value};
    const Tensor first = on.zeros({kArenaLength}, DType::kFloat32), second = on.zeros({kArenaLength}, DType::kFloat32);
    for (std::int64_t number = 1; number <= 3; ++number) {
      applied.write({number - 1, number + 4, number});
      step(*on.operator->(), slice, scalars, first, second);
    }
    return {slice.master, slice.copy, first, second};
  }

  /// Of what is stored after three steps.
  static Bounds stepped() { return {.relative = epsilon_of(dtype()), .absolute = 2e-6}; }
};
INSTANTIATE_TEST_SUITE_P(On, ArenaLoops, kFastTypes, name_of_on);

TEST_P(ArenaLoops, SgdMatchesTheReference) {
  for (const SgdRule& options : {SgdRule{}, SgdRule{.momentum = 0.9f}, SgdRule{.momentum = 0.9f, .dampening = 0.1f},
                                 SgdRule{.momentum = 0.9f, .nesterov = true}}) {
    for (const float clip_value : {0.0f, 0.3f}) {
      expect_matches_reference(
          [&](const Place& on) {
            return run(on, DType::kFloat32, 0, clip_value,
                       [&](const ArenaSteps& arena_steps, const ArenaSlice& slice, const StepScalars& scalars,
                           const Tensor& state, const Tensor&) {
                         arena_steps.element_step(slice, options, scalars,
                                                  options.momentum != 0 ? std::vector{state} : std::vector<Tensor>());
                       });
          },
          stepped());
    }
  }
}

TEST_P(ArenaLoops, FirstMomentumIsTheGradientWhateverLayThere) {
  const auto on = tested();
  ArenaSlice slice;
  slice.master = on.zeros({8}, DType::kFloat32);
  slice.grad = on(tensor_of({1, 2, 3, 4, 5, 6, 7, 8}, {8}, dtype()));
  const std::vector<ArenaSegment> segments{{.begin = 0, .end = 8}};
  slice.segments = segments;
  const auto one = on.value(1.0f);
  const auto steps = on.value(std::int64_t{0});
  const Tensor momentum = on.copy(tensor_of(std::vector(8, kNaN), {8}, DType::kFloat32));
  on->element_step(slice, SgdRule{.momentum = 0.9f, .dampening = 0.5f},
                   {.inverse_scale = one.data(), .learning_rate = one.data(), .steps = steps.data()}, {momentum});
  expect_close(momentum, slice.grad, {});
  expect_close(slice.master, {-1, -2, -3, -4, -5, -6, -7, -8}, {});
}

TEST_P(ArenaLoops, AdamMatchesTheReference) {
  for (const bool decoupled : {false, true}) {
    expect_matches_reference(
        [&](const Place& on) {
          return run(on, DType::kFloat32, 0, 0,
                     [&](const ArenaSteps& arena_steps, const ArenaSlice& slice, const StepScalars& scalars,
                         const Tensor& m, const Tensor& v) {
                       arena_steps.element_step(slice, AdamRule{.decoupled = decoupled}, scalars, {m, v});
                     });
        },
        stepped());
  }
}

TEST_P(ArenaLoops, AmsgradAndAdagradMatchTheReference) {
  for (const bool decoupled : {false, true}) {
    expect_matches_reference(
        [&](const Place& on) {
          const Tensor largest = on.zeros({kArenaLength}, DType::kFloat32);
          bool first = true;
          std::vector<Tensor> all =
              run(on, DType::kFloat32, 0, 0,
                  [&](const ArenaSteps& arena_steps, ArenaSlice slice, const StepScalars& scalars, const Tensor& m,
                      const Tensor& v) {
                    // Smaller ones, so that the largest second moment is an earlier one.
                    if (!first) slice.grad = on.zeros({kArenaLength});
                    first = false;
                    arena_steps.element_step(slice, AdamRule{.beta2 = 0.5, .decoupled = decoupled, .amsgrad = true},
                                             scalars, {m, v, largest});
                  });
          all.push_back(largest);
          return all;
        },
        stepped());
    expect_matches_reference(
        [&](const Place& on) {
          return run(on, DType::kFloat32, 0, 0.3f,
                     [&](const ArenaSteps& arena_steps, const ArenaSlice& slice, const StepScalars& scalars,
                         const Tensor& sum, const Tensor&) {
                       arena_steps.element_step(slice, AdagradRule{.lr_decay = 0.5, .decoupled = decoupled}, scalars,
                                                {sum});
                     });
        },
        stepped());
  }
}

/// LARC's rule and LARS's.
const LayerRateRule kLayerRules[] = {
    {.trust_coefficient = 0.02, .epsilon = 1e-8, .clip = true, .decay_without_norm = false},
    {.trust_coefficient = 0.5, .epsilon = 0, .clip = false, .decay_without_norm = true}};

TEST_P(ArenaLoops, LayerRatesMatchTheReferenceAndStepsTakeThem) {
  for (const LayerRateRule& rule : kLayerRules) {
    for (const float clip_value : {0.0f, 0.3f}) {
      expect_matches_reference(
          [&](const Place& on) {
            const Tensor rates = on.zeros({3, 2}, DType::kFloat32);
            std::vector<Tensor> all =
                run(on, DType::kFloat32, 0, clip_value,
                    [&](const ArenaSteps& arena_steps, const ArenaSlice& slice, StepScalars scalars,
                        const Tensor& first, const Tensor& second) {
                      arena_steps.layer_rates(slice, rule, scalars, rates);
                      scalars.layer_rates = static_cast<const LayerRate*>(rates.data());
                      const SgdRule sgd{.momentum = 0.9f, .rate_in_momentum = rule.decay_without_norm};
                      arena_steps.element_step(slice, sgd, scalars, {first});
                      arena_steps.element_step(slice, AdagradRule{.decoupled = true}, scalars, {second});
                    });
            all.push_back(rates);
            return all;
          },
          stepped());
    }
  }
}

TEST_P(ArenaLoops, ALayerThatDoesNotAdaptHasTheStepOfItsRule) {
  const auto step = [&](bool with_rates, DType dtype) {
    std::vector<ArenaSegment> segments = kSegments;
    for (ArenaSegment& segment : segments) segment.adapts = 0;
    const auto on = tested();
    const Tensor rates = on.zeros({3, 2}, DType::kFloat32);
    return run(
        on, dtype, 0, 0,
        [&](const ArenaSteps& arena_steps, ArenaSlice slice, StepScalars scalars, const Tensor& m, const Tensor& v) {
          slice.segments = segments;
          if (with_rates) {
            arena_steps.layer_rates(slice, kLayerRules[0], scalars, rates);
            scalars.layer_rates = static_cast<const LayerRate*>(rates.data());
          }
          arena_steps.element_step(slice, AdamRule{.decoupled = true}, scalars, {m, v});
        });
  };
  const auto plain = step(false, DType::kFloat32), rated = step(true, DType::kFloat32);
  for (std::size_t i = 0; i < plain.size(); ++i) EXPECT_TRUE(bytes_of(plain[i]) == bytes_of(rated[i])) << i;
}

TEST_P(ArenaLoops, WithoutANormTheRateIsOne) {
  for (const LayerRateRule& rule : kLayerRules) {
    for (const double weight : {0.0, 2.0}) {
      const auto on = tested();
      const std::vector<ArenaSegment> segments{{.begin = 0, .end = 8, .weight_decay = 0.5f}};
      const ArenaSlice slice{.master = on(tensor_of(std::vector(8, weight), {8}, DType::kFloat32)),
                             .grad = on(tensor_of(std::vector(8, 2.0 - weight), {8}, dtype())),
                             .segments = segments};
      const auto one = on.value(1.0f);
      const Tensor rates = on.zeros({1, 2}, DType::kFloat32);
      on->layer_rates(slice, rule, {.inverse_scale = one.data(), .learning_rate = one.data()}, rates);
      expect_close(rates, {1, rule.decay_without_norm ? 0.5 : 0}, {});
    }
  }
}

TEST_P(ArenaLoops, LambMatchesTheReference) {
  for (const LambRule& rule :
       {LambRule{}, LambRule{.decoupled = false, .bias_correction = false, .grad_averaging = false}}) {
    for (const std::int32_t adapts : {0, 1}) {
      std::vector<ArenaSegment> segments = kSegments;
      segments[0].adapts = adapts;
      expect_matches_reference(
          [&](const Place& on) {
            return run(on, DType::kFloat32, 0, 0,
                       [&](const ArenaSteps& arena_steps, ArenaSlice slice, const StepScalars& scalars, const Tensor& m,
                           const Tensor& v) {
                         slice.segments = segments;
                         arena_steps.lamb_step(slice, rule, scalars, m, v);
                       });
          },
          stepped());
    }
  }
}

TEST_P(ArenaLoops, NovogradMatchesTheReference) {
  for (const NovogradRule& rule :
       {NovogradRule{}, NovogradRule{.grad_averaging = false, .reg_inside_moment = true},
        NovogradRule{.bias_correction = false, .max_norm = true}, NovogradRule{.init_zero = true}}) {
    for (const float clip_value : {0.0f, 0.3f}) {
      expect_matches_reference(
          [&](const Place& on) {
            // What the first step must not read.
            const Tensor norms = on.copy(tensor_of({kNaN, 3, 5}, {3}, DType::kFloat32));
            std::vector<Tensor> all =
                run(on, DType::kFloat32, 0, clip_value,
                    [&](const ArenaSteps& arena_steps, const ArenaSlice& slice, const StepScalars& scalars,
                        const Tensor& m, const Tensor&) { arena_steps.novograd_step(slice, rule, scalars, m, norms); });
            all.push_back(norms);
            return all;
          },
          stepped());
    }
  }
}

TEST_P(ArenaLoops, RmspropMatchesTheReference) {
  for (const float momentum : {0.0f, 0.9f}) {
    for (const bool centered : {false, true}) {
      const RmspropRule rule{.alpha = 0.9, .momentum = momentum, .centered = centered};
      expect_matches_reference(
          [&](const Place& on) {
            const Tensor third = on.zeros({kArenaLength}, DType::kFloat32);
            return run(on, DType::kFloat32, 0, 0,
                       [&](const ArenaSteps& arena_steps, const ArenaSlice& slice, const StepScalars& scalars,
                           const Tensor& a, const Tensor& b) {
                         std::vector<Tensor> states{a, b, third};
                         states.resize(static_cast<std::size_t>(rule.states()));
                         arena_steps.element_step(slice, rule, scalars, states);
                       });
          },
          // A standard deviation is the difference of two numbers that are nearly the same.
          {.relative = epsilon_of(dtype()) + (centered ? 1e-3 : 0.0), .absolute = centered ? 1e-4 : 2e-6});
    }
  }
}

TEST_P(ArenaLoops, LionMatchesTheReference) {
  expect_matches_reference(
      [&](const Place& on) {
        return run(
            on, DType::kFloat32, 0, 0.3f,
            [&](const ArenaSteps& arena_steps, const ArenaSlice& slice, const StepScalars& scalars, const Tensor& m,
                const Tensor&) { arena_steps.element_step(slice, LionRule{.beta1 = 0.5}, scalars, {m}); });
      },
      stepped());
}

/// A step of each kind with the tensors that run() has, and a third one of as many elements.
using AnyStep = void (*)(const ArenaSteps& arena_steps, const ArenaSlice& slice, const StepScalars& scalars,
                         const Tensor& a, const Tensor& b, const Tensor& c);
const AnyStep kEveryStep[] = {
    [](const ArenaSteps& arena_steps, const ArenaSlice& slice, const StepScalars& scalars, const Tensor& a,
       const Tensor&, const Tensor&) { arena_steps.element_step(slice, SgdRule{.momentum = 0.9f}, scalars, {a}); },
    [](const ArenaSteps& arena_steps, const ArenaSlice& slice, const StepScalars& scalars, const Tensor& a,
       const Tensor& b, const Tensor&) {
      arena_steps.element_step(slice, AdamRule{}, scalars, {a, b});
    },
    [](const ArenaSteps& arena_steps, const ArenaSlice& slice, const StepScalars& scalars, const Tensor& a,
       const Tensor& b, const Tensor& c) {
      arena_steps.element_step(slice, AdamRule{.amsgrad = true}, scalars, {a, b, c});
    },
    [](const ArenaSteps& arena_steps, const ArenaSlice& slice, const StepScalars& scalars, const Tensor& a,
       const Tensor&, const Tensor&) { arena_steps.element_step(slice, AdagradRule{}, scalars, {a}); },
    [](const ArenaSteps& arena_steps, const ArenaSlice& slice, const StepScalars& scalars, const Tensor& a,
       const Tensor& b, const Tensor& c) {
      arena_steps.element_step(slice, RmspropRule{.momentum = 0.9f, .centered = true}, scalars, {a, b, c});
    },
    [](const ArenaSteps& arena_steps, const ArenaSlice& slice, const StepScalars& scalars, const Tensor& a,
       const Tensor&, const Tensor&) { arena_steps.element_step(slice, LionRule{}, scalars, {a}); },
    [](const ArenaSteps& arena_steps, const ArenaSlice& slice, const StepScalars& scalars, const Tensor& a,
       const Tensor& b, const Tensor&) { arena_steps.lamb_step(slice, {}, scalars, a, b); },
    [](const ArenaSteps& arena_steps, const ArenaSlice& slice, const StepScalars& scalars, const Tensor& a,
       const Tensor&, const Tensor& c) { arena_steps.novograd_step(slice, {}, scalars, a, c); },
    [](const ArenaSteps& arena_steps, const ArenaSlice& slice, const StepScalars& scalars, const Tensor& a,
       const Tensor&, const Tensor& c) {
      arena_steps.layer_rates(slice, kLayerRules[1], scalars, c);
      StepScalars with_rates = scalars;
      with_rates.layer_rates = static_cast<const LayerRate*>(c.data());
      arena_steps.element_step(slice, SgdRule{.momentum = 0.9f}, with_rates, {a});
    }};

TEST_P(ArenaLoops, ASegmentWithoutAGradientChangesNoBit) {
  const auto on = tested();
  const auto untouched = run(on, DType::kFloat32, 0, 0, [](auto&&...) {});
  for (const AnyStep step : kEveryStep) {
    const Tensor third = on.zeros({kArenaLength}, DType::kFloat32);
    const auto stepped = run(on, DType::kFloat16, 0, 0,
                             [&](const ArenaSteps& arena_steps, const ArenaSlice& slice, StepScalars scalars,
                                 const Tensor& m, const Tensor& v) {
                               const DeviceValue<std::array<float, 3>> has({0.0f, 1.0f, 1.0f}, device());
                               scalars.has_gradient = has.data()->data();
                               step(arena_steps, slice, scalars, m, v, third);
                             });
    for (std::size_t i = 0; i < stepped.size(); ++i) {
      // kSegments[0] belongs to the first parameter, kSegments[2] to the second.
      EXPECT_TRUE(bytes_of(stepped[i].rows(3, 10)) == bytes_of(untouched[i].rows(3, 10))) << i;
    }
    EXPECT_FALSE(bytes_of(stepped[0].rows(31, 1699)) == bytes_of(untouched[0].rows(31, 1699)));
    EXPECT_FALSE(bytes_of(stepped[2].rows(31, 1699)) == bytes_of(untouched[2].rows(31, 1699)));
    EXPECT_EQ(third.to(kCpu).item(0), 0) << "the first parameter's norm or rate";
  }
}

TEST_P(ArenaLoops, RoundsTheMasterWhereThereIsNoFloat32One) {
  for (const DType precision : {DType::kFloat16, DType::kBFloat16}) {
    expect_matches_reference(
        [&](const Place& on) {
          return run(on, precision, 0, 0,
                     [](const ArenaSteps& arena_steps, const ArenaSlice& slice, const StepScalars& scalars,
                        const Tensor& state, const Tensor&) {
                       arena_steps.element_step(slice, SgdRule{.momentum = 0.9f}, scalars, {state});
                     });
        },
        {.relative = 4 * epsilon_of(precision), .absolute = 4 * epsilon_of(precision)});
  }
}

TEST_P(ArenaLoops, SkippedStepChangesNoBit) {
  const auto untouched = run(tested(), DType::kFloat32, 1, 0, [](auto&&...) {});
  const auto on = tested();
  const Tensor third = on.zeros({kArenaLength}, DType::kFloat32);
  const auto skipped = run(on, DType::kFloat16, 1, 0,
                           [&](const ArenaSteps& arena_steps, const ArenaSlice& slice, const StepScalars& scalars,
                               const Tensor& m, const Tensor& v) {
                             for (const AnyStep step : kEveryStep) step(arena_steps, slice, scalars, m, v, third);
                           });
  for (std::size_t i = 0; i < skipped.size(); ++i) EXPECT_TRUE(bytes_of(skipped[i]) == bytes_of(untouched[i])) << i;
  EXPECT_TRUE(bytes_of(third) == bytes_of(on.zeros({kArenaLength}, DType::kFloat32)));
}

TEST_P(ArenaLoops, ThreadsChangeNothing) {
  const Tensor grad = random({450001}, 1);
  const std::vector<ArenaSegment> segments{{.begin = 0, .end = 450001}};
  expect_same_bits_on_any_number_of_threads([&, on = tested()] {
    const auto one = on.value(1.0f);
    const auto steps = on.value(std::int64_t{1});
    const Tensor flags = on.empty({1}, DType::kFloat32), sums = on.empty({1}, DType::kFloat64);
    on->check_finite(on(grad), 0, segments, flags, sums);
    ArenaSlice slice;
    slice.master = on.copy(random_tensor({450001}, DType::kFloat32, 3));
    slice.grad = on(grad);
    slice.segments = segments;
    const StepScalars scalars{.inverse_scale = one.data(), .learning_rate = one.data(), .steps = steps.data()};
    std::vector<Tensor> all{flags, sums};
    for (const AnyStep step : kEveryStep) {
      const Tensor m = on.zeros({450001}, DType::kFloat32), v = on.zeros({450001}, DType::kFloat32);
      const Tensor third = on.zeros({450001}, DType::kFloat32);
      step(*on.operator->(), slice, scalars, m, v, third);
      for (const Tensor& tensor : {slice.master, m, v, third}) all.push_back(on.copy(tensor.to(kCpu)));
    }
    return all;
  });
}

}  // namespace
}  // namespace lockstep::kernels
