// SPDX-License-Identifier: Apache-2.0
#include "tests/runtime/kernels/loops/loops_fixture.h"

namespace lockstep::kernels {
namespace {

using namespace testing;

template <class T>
class ReductionLoops : public KernelTest<T> {};
TYPED_TEST_SUITE(ReductionLoops, LoopTypes, OnName);

TYPED_TEST(ReductionLoops, SumMatchesTheReference) {
  for (const std::int64_t n : {0, 1, 7, 511, 70001}) {
    const Tensor x = this->random({n}, 1);
    this->expect_matches_reference(
        [&](Backend& tested) {
          const Tensor wide = this->empty({}, DType::kFloat32), same = this->empty({});
          tested.sum(x, 0.25, wide);
          tested.sum(x, 0.25, same);
          return std::vector{wide, same};
        },
        bounds_for(this->kDType, 100));
  }
}

TYPED_TEST(ReductionLoops, SumRowsMatchesTheReference) {
  for (const std::int64_t channels : {1, 2, 3, 10, 17, 32, 65, 255, 256, 513, 1030}) {
    SCOPED_TRACE(channels);
    for (const std::int64_t rows : {0, 1, 3, 300}) {
      const Tensor x = this->random({rows, channels}, 1), start = random_tensor({channels}, DType::kFloat32, 2);
      this->expect_matches_reference(
          [&](Backend& tested) {
            const Tensor sums = this->empty({channels}), added = clone(start);
            tested.sum_rows(x, false, sums);
            tested.sum_rows(x, true, added);
            return std::vector{sums, added};
          },
          bounds_for(this->kDType, 100));
    }
  }
}

TYPED_TEST(ReductionLoops, ThreadsChangeNothing) {
  const Tensor x = this->random({20011, 11}, 1);
  expect_same_bits_on_any_number_of_threads([&] {
    const Tensor sum = this->empty({}, DType::kFloat32), sums = this->empty({11}, DType::kFloat32);
    backend(kCpu).sum(x, 1, sum);
    backend(kCpu).sum_rows(x, false, sums);
    return std::vector{sum, sums};
  });
}

}  // namespace
}  // namespace lockstep::kernels
