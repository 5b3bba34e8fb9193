// SPDX-License-Identifier: Apache-2.0
#include "tests/runtime/kernels/loops/loops_fixture.h"

namespace lockstep::kernels {
namespace {

using namespace testing;

template <class T>
class BatchNormLoops : public KernelTest<T> {
 protected:
  static constexpr std::int64_t kChannels[] = {1, 2, 3, 17, 32, 65, 511, 512, 700};
  static constexpr std::int64_t kRows[] = {0, 1, 67, 300};
};
TYPED_TEST_SUITE(BatchNormLoops, FastTypes, OnName);

TYPED_TEST(BatchNormLoops, StatisticsMatchTheReference) {
  for (const std::int64_t channels : this->kChannels) {
    for (const std::int64_t rows : this->kRows) {
      SCOPED_TRACE(std::to_string(rows) + " rows of " + std::to_string(channels));
      const Tensor x = this->random({rows, channels}, 1, -1, 3);
      this->expect_matches_reference(
          [&](const auto& on) {
            const Tensor mean = on.empty({channels}, DType::kFloat32), m2 = on.empty({channels}, DType::kFloat32);
            on->batch_norm_statistics(on(x), mean, m2);
            return std::vector{mean, m2};
          },
          bounds_for(DType::kFloat32, 20));
    }
  }
}

TYPED_TEST(BatchNormLoops, StatisticsKeepASmallVarianceFarFromZero) {
  // 1000 +- 0.5, which float16 and bfloat16 hold as a few neighbouring numbers.
  const Tensor x = this->random({5000, 3}, 1, 996, 1004);
  this->expect_matches_reference(
      [&](const auto& on) {
        const Tensor mean = on.empty({3}, DType::kFloat32), m2 = on.empty({3}, DType::kFloat32);
        on->batch_norm_statistics(on(x), mean, m2);
        return std::vector{mean, m2};
      },
      bounds_for(DType::kFloat32, 1));
}

TYPED_TEST(BatchNormLoops, ApplyMatchesTheReference) {
  for (const std::int64_t channels : this->kChannels) {
    for (const std::int64_t rows : {0, 1, 67}) {
      SCOPED_TRACE(std::to_string(rows) + " rows of " + std::to_string(channels));
      const Tensor x = this->random({rows, channels}, 1), residual = this->random({rows, channels}, 2);
      const Tensor mean = this->random_wide({channels}, 3), inv_std = this->random_wide({channels}, 4, 0.5, 2);
      const Tensor gamma = this->random_wide({channels}, 5), beta = this->random_wide({channels}, 6);
      for (const bool relu : {false, true}) {
        this->expect_matches_reference(
            [&](const auto& on) {
              const Tensor plain = on.empty({rows, channels}), added = on.copy(residual);
              on->batch_norm_apply(on(x), on(mean), on(inv_std), on(gamma), on(beta), Tensor(), relu, plain);
              on->batch_norm_apply(on(x), on(mean), on(inv_std), on(gamma), on(beta), added, relu, added);
              return std::vector{plain, added};
            },
            this->bounds(8));
      }
    }
  }
}

TYPED_TEST(BatchNormLoops, BackwardMatchesTheReference) {
  for (const std::int64_t channels : this->kChannels) {
    for (const std::int64_t rows : this->kRows) {
      SCOPED_TRACE(std::to_string(rows) + " rows of " + std::to_string(channels));
      const Tensor x = this->random({rows, channels}, 1), dy = this->random({rows, channels}, 2);
      const Tensor y = this->random({rows, channels}, 7);
      const Tensor mean = this->random_wide({channels}, 3), inv_std = this->random_wide({channels}, 4, 0.5, 2);
      const Tensor gamma = this->random_wide({channels}, 5);
      for (const bool relu : {false, true}) {
        const Tensor mask = relu ? y : Tensor();
        this->expect_matches_reference(
            [&](const auto& on) {
              const Tensor sum_dy = on.empty({channels}, DType::kFloat32);
              const Tensor sum_dy_xmu = on.empty({channels}, DType::kFloat32);
              on->batch_norm_backward_reduce(on(x), on(mean), on(dy), on(mask), relu, sum_dy, sum_dy_xmu);
              return std::vector{sum_dy, sum_dy_xmu};
            },
            bounds_for(DType::kFloat32, rows, 4));
        const Tensor sums = this->random_wide({channels}, 8), products = this->random_wide({channels}, 9);
        for (const Tensor& count : {Tensor(), tensor_of({5}, {}, DType::kFloat32)}) {
          this->expect_matches_reference(
              [&](const auto& on) {
                const Tensor dx = on.empty({rows, channels}), dresidual = on.copy(dy);
                on->batch_norm_backward_apply(on(x), on(mean), on(inv_std), on(gamma), dresidual, on(mask), relu,
                                              on(sums), on(products), on(count), dx, dresidual);
                return std::vector{dx, dresidual};
              },
              this->bounds(16));
        }
      }
    }
  }
}

TYPED_TEST(BatchNormLoops, BackwardOfConstantStatisticsNeedsNoSums) {
  const Tensor x = this->random({4, 3}, 1), dy = this->random({4, 3}, 2),
               one = tensor_of({1, 1, 1}, {3}, DType::kFloat32);
  const auto on = this->tested();
  const Tensor dx = on.empty({4, 3});
  on->batch_norm_backward_apply(on(x), on(one), on(one), on(one), on(dy), Tensor(), false, Tensor(), Tensor(), Tensor(),
                                dx, Tensor());
  expect_close(dx, dy, {});
}

TYPED_TEST(BatchNormLoops, NaNStaysVisible) {
  std::vector<double> values(64, 1.0);
  values[33] = kNaN;
  const Tensor x = tensor_of(values, {32, 2}, this->kDType), one = tensor_of({1, 1}, {2}, DType::kFloat32);
  const auto on = this->tested();
  const Tensor y = on.empty({32, 2}), mean = on.empty({2}, DType::kFloat32), m2 = on.empty({2}, DType::kFloat32);
  on->batch_norm_apply(on(x), on(one), on(one), on(one), on(one), Tensor(), true, y);
  EXPECT_TRUE(std::isnan(y.item(33)));
  on->batch_norm_statistics(on(x), mean, m2);
  EXPECT_TRUE(std::isnan(mean.item(1)) && std::isnan(m2.item(1)));
  EXPECT_EQ(mean.item(0), 1);
}

TYPED_TEST(BatchNormLoops, SharesAreJoinedAsByTheReference) {
  constexpr std::int64_t kCount = 5, kShares = 4;
  std::vector<double> values = values_of(this->random_wide({kShares, 2 * kCount + 1}, 1, 0.5, 8));
  const auto rows_at = [](std::int64_t share) { return static_cast<std::size_t>((share + 1) * (2 * kCount + 1) - 1); };
  for (std::int64_t share = 0; share < kShares; ++share) values[rows_at(share)] = static_cast<double>(share * 3);
  const Tensor packed = tensor_of(values, {kShares, 2 * kCount + 1}, this->kWide);
  const Tensor nothing = Tensor::zeros(packed.shape(), packed.dtype());
  const Tensor before = this->random_wide({2, kCount}, 2, 0, 2);
  for (const Tensor& shares : {packed, nothing}) {
    for (const Tensor& running : {before, Tensor()}) {
      this->expect_matches_reference(
          [&](const auto& on) {
            const Tensor mean = on.empty({kCount}, this->kWide), inv_std = on.empty({kCount}, this->kWide),
                         count = on.empty({}, this->kWide),
                         next = running.defined() ? on.empty({2, kCount}, this->kWide) : Tensor();
            on->batch_norm_finalize(on(shares), 1e-5, 0.1, on(running), mean, inv_std, count, next);
            std::vector outputs{mean, inv_std, count};
            if (running.defined()) outputs.push_back(next);
            return outputs;
          },
          // In double and in the same order; a GPU may fuse a product with a sum.
          this->kDevice == kCpu ? Bounds{} : Bounds{.relative = 1e-6});
    }
  }
}

TYPED_TEST(BatchNormLoops, ThreadsChangeNothing) {
  const Tensor x = this->random({18001, 24}, 1), dy = this->random({18001, 24}, 2);
  const Tensor mean = this->random_wide({24}, 3), inv_std = this->random_wide({24}, 4),
               gamma = this->random_wide({24}, 5), rows = tensor_of({18001}, {}, DType::kFloat32);
  expect_same_bits_on_any_number_of_threads([&, on = this->tested()] {
    const Tensor m = on.empty({24}, DType::kFloat32), m2 = on.empty({24}, DType::kFloat32);
    const Tensor sum = on.empty({24}, DType::kFloat32), product = on.empty({24}, DType::kFloat32);
    const Tensor y = on.empty({18001, 24}), dx = on.empty({18001, 24});
    on->batch_norm_statistics(on(x), m, m2);
    on->batch_norm_apply(on(x), on(mean), on(inv_std), on(gamma), on(mean), Tensor(), true, y);
    on->batch_norm_backward_reduce(on(x), on(mean), on(dy), y, true, sum, product);
    on->batch_norm_backward_apply(on(x), on(mean), on(inv_std), on(gamma), on(dy), y, true, sum, product, on(rows), dx,
                                  Tensor());
    return std::vector{m, m2, sum, product, y, dx};
  });
}

}  // namespace
}  // namespace lockstep::kernels
