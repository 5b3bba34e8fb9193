// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/batch_norm.h"

#include <array>

#include "runtime/kernels/elementwise.h"
#include "runtime/kernels/pointwise.h"
#include "tests/runtime/kernels/loops/loops_fixture.h"

namespace lockstep::kernels {
namespace {

using namespace testing;

class BatchNormLoops : public KernelTest<BatchNormalization, Elementwise, Pointwise> {
 protected:
  static constexpr std::array<std::int64_t, 9> kChannels{1, 2, 3, 17, 32, 65, 511, 512, 700};
  static constexpr std::array<std::int64_t, 4> kRows{0, 1, 67, 300};
};
INSTANTIATE_TEST_SUITE_P(On, BatchNormLoops, kFastTypes, name_of_on);

TEST_P(BatchNormLoops, StatisticsMatchTheReference) {
  for (const std::int64_t channels : kChannels) {
    for (const std::int64_t rows : kRows) {
      SCOPED_TRACE(std::to_string(rows) + " rows of " + std::to_string(channels));
      const Tensor x = random({rows, channels}, 1, -1, 3);
      expect_matches_reference(
          [&](const Place& on) {
            const Tensor mean = on.empty({channels}, DType::kFloat32), m2 = on.empty({channels}, DType::kFloat32);
            on->batch_norm_statistics(on(x), mean, m2);
            return std::vector{mean, m2};
          },
          bounds_for(DType::kFloat32, 20));
    }
  }
}

TEST_P(BatchNormLoops, MeasuresInOneGoWhatStatisticsAndFinalizeDo) {
  for (const std::int64_t channels : kChannels) {
    for (const std::int64_t rows : kRows) {
      SCOPED_TRACE(std::to_string(rows) + " rows of " + std::to_string(channels));
      const auto on = tested();
      const Tensor x = on(random({rows, channels}, 1, -1, 3)), running = on(random_wide({2, channels}, 2));
      const Tensor packed = on.empty({1, 2 * channels + 1}, DType::kFloat32);
      const Tensor share = packed.reshaped({2 * channels + 1});
      on->batch_norm_statistics(x, share.rows(0, channels), share.rows(channels, 2 * channels));
      on->fill(share.rows(2 * channels, 2 * channels + 1), static_cast<double>(rows));
      for (const Tensor& before : {running, Tensor()}) {
        const auto results = [&] {
          return std::vector{on.empty({channels}, DType::kFloat32), on.empty({channels}, DType::kFloat32),
                             on.empty({}, DType::kFloat32),
                             before.defined() ? on.empty({2, channels}, DType::kFloat32) : Tensor()};
        };
        const std::vector<Tensor> found = results(), expected = results();
        on->batch_norm_measure(x, 1e-5, 0.1, before, found[0], found[1], found[2], found[3]);
        on->batch_norm_finalize(packed, 1e-5, 0.1, before, expected[0], expected[1], expected[2], expected[3]);
        for (std::size_t i = 0; i < found.size(); ++i) EXPECT_EQ(bytes_of(found[i]), bytes_of(expected[i])) << i;
      }
    }
  }
}

TEST_P(BatchNormLoops, ParametersGradientsAreRoundedOrAddedWhereTheyBelong) {
  constexpr std::int64_t kCount = 65;
  const Tensor x = random({67, kCount}, 1), dy = random({67, kCount}, 2);
  const Tensor mean = random_wide({kCount}, 3), inv_std = random_wide({kCount}, 4, 0.5, 2);
  const auto on = tested();
  const Tensor sum_dy = on.empty({kCount}, DType::kFloat32), sum_dy_xmu = on.empty({kCount}, DType::kFloat32);
  for (const DType dtype : {DType::kFloat32, DType::kFloat16, DType::kBFloat16}) {
    const Tensor before = random_tensor({kCount}, dtype, 5);
    for (const bool adds : {false, true}) {
      const Tensor dgamma = on.copy(before), dbeta = on.copy(before);
      on->batch_norm_backward_reduce(on(x), on(mean), {on(dy)}, {}, sum_dy, sum_dy_xmu,
                                     {.inv_std = on(inv_std),
                                      .dgamma = dgamma,
                                      .accumulate_dgamma = adds,
                                      .dbeta = dbeta,
                                      .accumulate_dbeta = adds});
      const Tensor product = on.empty({kCount}, DType::kFloat32);
      on->multiply(sum_dy_xmu, on(inv_std), product);
      const Tensor expected_dgamma = on.copy(before), expected_dbeta = on.copy(before);
      adds ? on->accumulate(product, expected_dgamma) : on->cast(product, expected_dgamma);
      adds ? on->accumulate(sum_dy, expected_dbeta) : on->cast(sum_dy, expected_dbeta);
      EXPECT_EQ(bytes_of(dgamma), bytes_of(expected_dgamma));
      EXPECT_EQ(bytes_of(dbeta), bytes_of(expected_dbeta));
    }
  }
}

TEST_P(BatchNormLoops, AMaskThatMayBeComputedAgainIsThatOfTheOutput) {
  for (const std::int64_t channels : {3, 32, 65, 512}) {
    const Tensor x = random({300, channels}, 1), dy = random({300, channels}, 2);
    const auto on = tested();
    const Tensor mean = on(random_wide({channels}, 3)), inv_std = on(random_wide({channels}, 4, 0.5, 2));
    const Tensor gamma = on(random_wide({channels}, 5)), beta = on(random_wide({channels}, 6));
    const Tensor y = on.empty({300, channels}), rows = on(tensor_of({300}, {}, DType::kFloat32));
    on->batch_norm_apply(on(x), mean, inv_std, gamma, beta, Tensor(), true, y);
    const auto backward = [&](const BatchNormMask& mask) {
      const Tensor sum = on.empty({channels}, DType::kFloat32), product = on.empty({channels}, DType::kFloat32);
      const Tensor dx = on.empty({300, channels});
      on->batch_norm_backward_reduce(on(x), mean, {on(dy)}, mask, sum, product, {});
      on->batch_norm_backward_apply(on(x), mean, inv_std, gamma, on(dy), mask, sum, product, rows, dx);
      return std::vector{sum, product, dx};
    };
    const std::vector<Tensor> found = backward({.y = y, .inv_std = inv_std, .gamma = gamma, .beta = beta});
    const std::vector<Tensor> expected = backward({.y = y});
    // The grid, and with it the order of the sums, may differ with the kernel.
    expect_close(found[0], expected[0], bounds_for(DType::kFloat32, 300));
    expect_close(found[1], expected[1], bounds_for(DType::kFloat32, 300, 4));
    expect_close(found[2], expected[2], bounds(16));
  }
}

TEST_P(BatchNormLoops, StatisticsKeepASmallVarianceFarFromZero) {
  // 1000 +- 0.5, which float16 and bfloat16 hold as a few neighbouring numbers.
  const Tensor x = random({5000, 3}, 1, 996, 1004);
  expect_matches_reference(
      [&](const Place& on) {
        const Tensor mean = on.empty({3}, DType::kFloat32), m2 = on.empty({3}, DType::kFloat32);
        on->batch_norm_statistics(on(x), mean, m2);
        return std::vector{mean, m2};
      },
      // Means of float32 are joined: no digit would be left of a difference of squares.
      {.relative = 0x1p-18, .absolute = 0});
}

TEST_P(BatchNormLoops, ApplyMatchesTheReference) {
  for (const std::int64_t channels : kChannels) {
    for (const std::int64_t rows : {0, 1, 67}) {
      SCOPED_TRACE(std::to_string(rows) + " rows of " + std::to_string(channels));
      const Tensor x = random({rows, channels}, 1), residual = random({rows, channels}, 2);
      const Tensor mean = random_wide({channels}, 3), inv_std = random_wide({channels}, 4, 0.5, 2);
      const Tensor gamma = random_wide({channels}, 5), beta = random_wide({channels}, 6);
      for (const bool relu : {false, true}) {
        expect_matches_reference(
            [&](const Place& on) {
              const Tensor plain = on.empty({rows, channels}), added = on.copy(residual);
              on->batch_norm_apply(on(x), on(mean), on(inv_std), on(gamma), on(beta), Tensor(), relu, plain);
              on->batch_norm_apply(on(x), on(mean), on(inv_std), on(gamma), on(beta), added, relu, added);
              return std::vector{plain, added};
            },
            bounds(8));
      }
    }
  }
}

TEST_P(BatchNormLoops, BackwardMatchesTheReference) {
  for (const std::int64_t channels : kChannels) {
    for (const std::int64_t rows : kRows) {
      SCOPED_TRACE(std::to_string(rows) + " rows of " + std::to_string(channels));
      const Tensor x = random({rows, channels}, 1), dy = random({rows, channels}, 2);
      const Tensor addend = random({rows, channels}, 6), y = random({rows, channels}, 7);
      const Tensor mean = random_wide({channels}, 3), inv_std = random_wide({channels}, 4, 0.5, 2);
      const Tensor gamma = random_wide({channels}, 5);
      for (const bool relu : {false, true}) {
        const Tensor mask = relu ? y : Tensor();
        expect_matches_reference(
            [&](const Place& on) {
              const Tensor sum_dy = on.empty({channels}, DType::kFloat32);
              const Tensor sum_dy_xmu = on.empty({channels}, DType::kFloat32);
              on->batch_norm_backward_reduce(on(x), on(mean), {on(dy)}, {on(mask)}, sum_dy, sum_dy_xmu, {});
              return std::vector{sum_dy, sum_dy_xmu};
            },
            bounds_for(DType::kFloat32, rows, 4));
        expect_matches_reference(
            [&](const Place& on) {
              const Tensor sum_dy = on.empty({channels}, DType::kFloat32);
              const Tensor sum_dy_xmu = on.empty({channels}, DType::kFloat32);
              const BatchNormGradient gradient{on(dy), on(addend), on.empty({rows, channels})};
              on->batch_norm_backward_reduce(on(x), on(mean), gradient, {on(mask)}, sum_dy, sum_dy_xmu, {});
              return std::vector{sum_dy, sum_dy_xmu, gradient.masked};
            },
            bounds_for(DType::kFloat32, rows, 8));
        const Tensor sums = random_wide({channels}, 8), products = random_wide({channels}, 9);
        for (const Tensor& count : {Tensor(), tensor_of({5}, {}, DType::kFloat32)}) {
          expect_matches_reference(
              [&](const Place& on) {
                const Tensor dx = on.empty({rows, channels});
                on->batch_norm_backward_apply(on(x), on(mean), on(inv_std), on(gamma), on(dy), {on(mask)}, on(sums),
                                              on(products), on(count), dx);
                return std::vector{dx};
              },
              bounds(16));
        }
      }
    }
  }
}

/// In a pass of its own the gradients are added, then masked, then reduced; in one pass it is the same to the bit.
TEST_P(BatchNormLoops, AGradientOfTwoIsTheirRoundedSum) {
  constexpr std::int64_t kRowCount = 300;
  for (const std::int64_t channels : kChannels) {
    const Shape shape{kRowCount, channels};
    const auto on = tested();
    const Tensor x = on(random(shape, 1)), y = on(random(shape, 2));
    const Tensor dy = random(shape, 3), addend = random(shape, 4, -0.01, 0.01);
    const Tensor mean = on(random_wide({channels}, 5)), sum = on.empty(shape);
    on->add(on(dy), on(addend), sum);
    for (const bool relu : {false, true}) {
      const BatchNormMask mask{.y = relu ? y : Tensor()};
      const auto reduce = [&](const BatchNormGradient& gradient) {
        const Tensor sum_dy = on.empty({channels}, DType::kFloat32), products = on.empty({channels}, DType::kFloat32);
        on->batch_norm_backward_reduce(x, mean, gradient, mask, sum_dy, products, {});
        return std::vector{sum_dy, products};
      };
      const std::vector<Tensor> expected = reduce({sum});
      const Tensor masked = on.copy(sum);
      if (relu) on->activate_backward(Activation::kRelu, y, sum, masked);
      const BatchNormGradient alone{sum, {}, on.empty(shape)};
      const BatchNormGradient apart{on(dy), on(addend), on.empty(shape)};
      const Tensor first = on.copy(dy), second = on.copy(addend);
      for (const BatchNormGradient& gradient :
           {alone, apart, BatchNormGradient{first, on(addend), first}, BatchNormGradient{on(dy), second, second}}) {
        const std::vector<Tensor> found = reduce(gradient);
        EXPECT_EQ(bytes_of(gradient.masked), bytes_of(masked)) << channels << (relu ? " with relu" : "");
        for (std::size_t i = 0; i < 2; ++i) {
          // On a GPU the grid, and with it the order of the sums, may differ with the kernel.
          expect_close(found[i], expected[i], device() == kCpu ? Bounds{} : bounds_for(DType::kFloat32, kRowCount, 4));
        }
      }
    }
  }
}

TEST_P(BatchNormLoops, BackwardOfConstantStatisticsNeedsNoSums) {
  const Tensor x = random({4, 3}, 1), dy = random({4, 3}, 2), one = tensor_of({1, 1, 1}, {3}, DType::kFloat32);
  const auto on = tested();
  const Tensor dx = on.empty({4, 3});
  on->batch_norm_backward_apply(on(x), on(one), on(one), on(one), on(dy), {}, Tensor(), Tensor(), Tensor(), dx);
  expect_close(dx, dy, {});
}

TEST_P(BatchNormLoops, NaNStaysVisible) {
  std::vector<double> values(64, 1.0);
  values[33] = kNaN;
  const Tensor x = tensor_of(values, {32, 2}, dtype()), one = tensor_of({1, 1}, {2}, DType::kFloat32);
  const auto on = tested();
  const Tensor y = on.empty({32, 2}), mean = on.empty({2}, DType::kFloat32), m2 = on.empty({2}, DType::kFloat32);
  on->batch_norm_apply(on(x), on(one), on(one), on(one), on(one), Tensor(), true, y);
  EXPECT_TRUE(std::isnan(y.item(33)));
  on->batch_norm_statistics(on(x), mean, m2);
  EXPECT_TRUE(std::isnan(mean.item(1)) && std::isnan(m2.item(1)));
  EXPECT_EQ(mean.item(0), 1);
}

TEST_P(BatchNormLoops, SharesAreJoinedAsByTheReference) {
  constexpr std::int64_t kCount = 5, kShares = 4;
  std::vector<double> values = values_of(random_wide({kShares, 2 * kCount + 1}, 1, 0.5, 8));
  const auto rows_at = [](std::int64_t share) { return static_cast<std::size_t>((share + 1) * (2 * kCount + 1) - 1); };
  for (std::int64_t share = 0; share < kShares; ++share) values[rows_at(share)] = static_cast<double>(share * 3);
  const Tensor packed = tensor_of(values, {kShares, 2 * kCount + 1}, wide());
  const Tensor nothing = Tensor::zeros(packed.shape(), packed.dtype());
  const Tensor before = random_wide({2, kCount}, 2, 0, 2);
  for (const Tensor& shares : {packed, nothing}) {
    for (const Tensor& running : {before, Tensor()}) {
      expect_matches_reference(
          [&](const Place& on) {
            const Tensor mean = on.empty({kCount}, wide()), inv_std = on.empty({kCount}, wide()),
                         count = on.empty({}, wide()),
                         next = running.defined() ? on.empty({2, kCount}, wide()) : Tensor();
            on->batch_norm_finalize(on(shares), 1e-5, 0.1, on(running), mean, inv_std, count, next);
            std::vector outputs{mean, inv_std, count};
            if (running.defined()) outputs.push_back(next);
            return outputs;
          },
          // In double and in the same order; a GPU may fuse a product with a sum.
          device() == kCpu ? Bounds{} : Bounds{.relative = 1e-6});
    }
  }
}

TEST_P(BatchNormLoops, ThreadsChangeNothing) {
  const Tensor x = random({18001, 24}, 1), dy = random({18001, 24}, 2);
  const Tensor mean = random_wide({24}, 3), inv_std = random_wide({24}, 4), gamma = random_wide({24}, 5),
               rows = tensor_of({18001}, {}, DType::kFloat32);
  expect_same_bits_on_any_number_of_threads([&, on = tested()] {
    const Tensor m = on.empty({24}, DType::kFloat32), m2 = on.empty({24}, DType::kFloat32);
    const Tensor sum = on.empty({24}, DType::kFloat32), product = on.empty({24}, DType::kFloat32);
    const Tensor y = on.empty({18001, 24}), dx = on.empty({18001, 24});
    on->batch_norm_statistics(on(x), m, m2);
    on->batch_norm_apply(on(x), on(mean), on(inv_std), on(gamma), on(mean), Tensor(), true, y);
    const Tensor masked = on.empty({18001, 24});
    on->batch_norm_backward_reduce(on(x), on(mean), {on(dy), on(x), masked}, {y}, sum, product, {});
    on->batch_norm_backward_apply(on(x), on(mean), on(inv_std), on(gamma), masked, {}, sum, product, on(rows), dx);
    return std::vector{m, m2, sum, product, y, masked, dx};
  });
}

}  // namespace
}  // namespace lockstep::kernels
