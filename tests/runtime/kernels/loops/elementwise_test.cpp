// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/elementwise.h"

#include "runtime/kernels/pointwise.h"
#include "tests/runtime/kernels/loops/loops_fixture.h"

namespace lockstep::kernels {
namespace {

using namespace testing;

class ElementwiseLoops : public KernelTest<Elementwise, Pointwise> {};
INSTANTIATE_TEST_SUITE_P(On, ElementwiseLoops, kFastTypes, name_of_on);

TEST_P(ElementwiseLoops, BinaryOperationsMatchTheReference) {
  for (const std::int64_t n : kLengths) {
    const Tensor a = random({n}, 1), b = random({n}, 2);
    expect_matches_reference(
        [&](const Place& on) {
          const Tensor sum = on.empty({n}), product = on.empty({n});
          on->add(on(a), on(b), sum);
          on->multiply(on(a), on(b), product);
          return std::vector{sum, product};
        },
        bounds());
  }
}

TEST_P(ElementwiseLoops, BroadcastsOverRowsOfAnyNumberOfChannels) {
  for (const std::int64_t channels : {1, 2, 3, 10, 17, 32, 65, 100, 511, 600}) {
    SCOPED_TRACE(channels);
    for (const std::int64_t rows : {0, 1, 5, 67}) {
      const Tensor a = random({rows, channels}, 1), b = random({channels}, 2);
      expect_matches_reference(
          [&](const Place& on) {
            const Tensor sum = on.empty({rows, channels}), product = on.empty({rows, channels});
            on->add(on(a), on(b), sum);
            on->multiply(on(a), on(b), product);
            return std::vector{sum, product};
          },
          bounds());
    }
  }
}

TEST_P(ElementwiseLoops, OutputsMayBeInputs) {
  const Tensor a = random({9, 70}, 1), b = random({9, 70}, 2);
  expect_matches_reference(
      [&](const Place& on) {
        const Tensor sum = on.copy(a), scaled = on.copy(a), active = on.copy(a), gradient = on.copy(b);
        on->add(sum, on(b), sum);
        on->scale(scaled, 0.37, nullptr, scaled);
        on->activate(Activation::kGelu, active, active);
        on->activate_backward(Activation::kRelu, on(a), gradient, gradient);
        return std::vector{sum, scaled, active, gradient};
      },
      bounds());
}

TEST_P(ElementwiseLoops, ScalesByBothFactors) {
  const Tensor x = random({1300}, 1);
  expect_matches_reference(
      [&](const Place& on) {
        const Tensor once = on.empty({1300}), twice = on.empty({1300});
        on->scale(on(x), 3, nullptr, once);
        on->scale(on(x), 3, on.value(0.125f).data(), twice);
        return std::vector{once, twice};
      },
      bounds());
}

TEST_P(ElementwiseLoops, ActivationsMatchTheReference) {
  for (const Activation activation : {Activation::kNone, Activation::kRelu, Activation::kGelu, Activation::kGeluTanh,
                                      Activation::kTanh, Activation::kSigmoid}) {
    const Tensor x = random({3000}, 1, -8, 8), dy = random({3000}, 2);
    expect_matches_reference(
        [&](const Place& on) {
          const Tensor y = on.empty({3000}), dx = on.empty({3000});
          on->activate(activation, on(x), y);
          on->activate_backward(activation, on(x), on(dy), dx);
          return std::vector{y, dx};
        },
        bounds(8));
  }
}

TEST_P(ElementwiseLoops, NaNAndInfinityPassThrough) {
  // In every place of a vector, and behind the last whole one.
  std::vector<double> values(37, 0.5);
  for (const std::size_t at : {0u, 5u, 20u, 36u}) values[at] = kNaN;
  for (const std::size_t at : {1u, 21u, 35u}) values[at] = kInfinity;
  for (const std::size_t at : {2u, 22u, 34u}) values[at] = -kInfinity;
  const Tensor x = tensor_of(values, {37}, dtype()), half = tensor_of(std::vector(37, 0.5), {37}, dtype());
  expect_matches_reference(
      [&](const Place& on) {
        const Tensor sum = on.empty({37}), relu = on.empty({37}), gelu = on.empty({37}), gelu_tanh = on.empty({37}),
                     tanh = on.empty({37}), sigmoid = on.empty({37}), wide = on.empty({37}, DType::kFloat32);
        on->add(on(x), on(half), sum);
        on->activate(Activation::kRelu, on(x), relu);
        on->activate(Activation::kGelu, on(x), gelu);
        on->activate(Activation::kGeluTanh, on(x), gelu_tanh);
        on->activate(Activation::kTanh, on(x), tanh);
        on->activate(Activation::kSigmoid, on(x), sigmoid);
        on->cast(on(x), wide);
        return std::vector{sum, relu, gelu, gelu_tanh, tanh, sigmoid, wide};
      },
      bounds());
}

TEST_P(ElementwiseLoops, CastsBetweenAllFloatingTypesAsTheReferenceDoes) {
  std::vector<double> values{0.0,   -0.0,  1e-8, 6e-8, -6.1e-5,   0.1,        65504,
                             65519, 65520, -1e6, 1e38, kInfinity, -kInfinity, kNaN};
  for (int i = 0; i < 700; ++i) values.push_back(std::ldexp(1 + i * 0x1.234p-10, i % 40 - 26));
  const auto n = static_cast<std::int64_t>(values.size());
  const Tensor x = tensor_of(values, {n}, dtype());
  for (const DType to : {DType::kFloat32, DType::kFloat16, DType::kBFloat16, DType::kFloat64}) {
    SCOPED_TRACE(name_of(to));
    expect_matches_reference(
        [&](const Place& on) {
          const Tensor out = on.empty({n}, to);
          on->cast(on(x), out);
          return std::vector{out};
        },
        {});
  }
}

TEST_P(ElementwiseLoops, AccumulatesIntoOtherTypes) {
  for (const DType to : {DType::kFloat32, DType::kFloat16, DType::kBFloat16}) {
    const Tensor in = random({1300}, 1), start = random_tensor({1300}, to, 2);
    expect_matches_reference(
        [&](const Place& on) {
          const Tensor out = on.copy(start);
          on->accumulate(on(in), out);
          return std::vector{out};
        },
        bounds_for(to));
  }
}

TEST_P(ElementwiseLoops, FillsWithTheRoundedValue) {
  for (const double value : {0.0, 0.1, -3.0, 1e30, kInfinity, kNaN}) {
    expect_matches_reference(
        [&](const Place& on) {
          const Tensor out = on.empty({70});
          on->fill(out, value);
          return std::vector{out};
        },
        {});
  }
}

TEST_P(ElementwiseLoops, DropoutMatchesTheReferenceFromAnyElementOn) {
  for (const std::int64_t first : {0, 1, 2, 3, 4, 1001}) {
    for (const double p : {0.0, 0.3, 0.5, 1.0}) {
      const Tensor x = random({1301}, 1);
      expect_matches_reference(
          [&](const Place& on) {
            const Tensor y = on.empty({1301});
            on->dropout(on(x), p, {.seed = 5, .step = 7, .layer = 3, .call = 2}, first, y);
            return std::vector{y};
          },
          bounds());
    }
  }
}

TEST_P(ElementwiseLoops, ThreadsChangeNothing) {
  const Tensor x = random({450001}, 1, -3, 3), b = random({13}, 2);
  expect_same_bits_on_any_number_of_threads([&, on = tested()] {
    const Tensor y = on.empty({450001}), dropped = on.empty({450001}), sum = on.empty({34000, 13});
    on->activate(Activation::kGelu, on(x), y);
    on->dropout(on(x), 0.4, {.seed = 5}, 3, dropped);
    on->add(on(x).rows(1, 442001).reshaped({34000, 13}), on(b), sum);
    return std::vector{y, dropped, sum};
  });
}

TEST(CpuBackend, SaysWhichTensorDoesNotFit) {
  const Tensor a = Tensor::zeros({2, 3}, DType::kFloat32);
  EXPECT_THROW(Elementwise::on(kCpu).add(a, Tensor::zeros({2}, DType::kFloat32), a), ShapeError);
  EXPECT_THROW(Pointwise::on(kCpu).activate(Activation::kRelu, a, Tensor::zeros({3, 2}, DType::kFloat32)), ShapeError);
  EXPECT_THROW(Pointwise::on(kCpu).dropout(a, 1.5, {}, 0, a), UsageError);
}

}  // namespace
}  // namespace lockstep::kernels
