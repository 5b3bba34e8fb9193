// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/reductions.h"

#include "tests/runtime/kernels/loops/loops_fixture.h"

namespace lockstep::kernels {
namespace {

using namespace testing;

class ReductionLoops : public KernelTest<Reductions> {};
INSTANTIATE_TEST_SUITE_P(On, ReductionLoops, kFastTypes, name_of_on);

TEST_P(ReductionLoops, SumMatchesTheReference) {
  for (const std::int64_t n : {0, 1, 7, 511, 70001}) {
    const Tensor x = random({n}, 1);
    expect_matches_reference(
        [&](const Place& on) {
          const Tensor wide = on.empty({}, DType::kFloat32), same = on.empty({});
          on->sum(on(x), 0.25, wide);
          on->sum(on(x), 0.25, same);
          return std::vector{wide, same};
        },
        bounds(100));
  }
}

TEST_P(ReductionLoops, SumRowsMatchesTheReference) {
  for (const std::int64_t channels : {1, 2, 3, 10, 17, 32, 65, 255, 256, 513, 1030}) {
    SCOPED_TRACE(channels);
    for (const std::int64_t rows : {0, 1, 3, 300}) {
      const Tensor x = random({rows, channels}, 1), start = random_tensor({channels}, DType::kFloat32, 2);
      expect_matches_reference(
          [&](const Place& on) {
            const Tensor sums = on.empty({channels}), added = on.copy(start);
            on->sum_rows(on(x), false, sums);
            on->sum_rows(on(x), true, added);
            return std::vector{sums, added};
          },
          bounds(100));
    }
  }
}

TEST_P(ReductionLoops, ThreadsChangeNothing) {
  const Tensor x = random({20011, 11}, 1);
  expect_same_bits_on_any_number_of_threads([&, on = tested()] {
    const Tensor sum = on.empty({}, DType::kFloat32), sums = on.empty({11}, DType::kFloat32);
    on->sum(on(x), 1, sum);
    on->sum_rows(on(x), false, sums);
    return std::vector{sum, sums};
  });
}

}  // namespace
}  // namespace lockstep::kernels
