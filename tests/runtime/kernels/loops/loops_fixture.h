// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <omp.h>

#include <limits>

#include "tests/runtime/kernels/kernel_fixture.h"

namespace lockstep::kernels::testing {

/// Lengths around nothing, vectors and blocks.
inline constexpr std::int64_t kLengths[] = {0, 1, 7, 16, 511, 512, 1300};

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();
inline constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

#if defined(__SANITIZE_THREAD__)
// ThreadSanitizer does not see how libgomp's threads wait for each other.
inline constexpr int kThreadCounts[] = {1};
#else
inline constexpr int kThreadCounts[] = {1, 2, 3};
#endif

/// run() computes and returns its outputs, which must have the same bits on one, two and three threads; and on a GPU,
/// where those change nothing, in every run.
template <class Run>
void expect_same_bits_on_any_number_of_threads(Run run) {
  const int threads = omp_get_max_threads();
  std::vector<Bytes> expected;
  for (const int count : kThreadCounts) {
    omp_set_num_threads(count);
    std::vector<Bytes> found;
    for (const Tensor& tensor : run()) found.push_back(bytes_of(tensor));
    if (count == 1) expected = found;
    EXPECT_TRUE(found == expected) << count << " threads";
  }
  omp_set_num_threads(threads);
}

}  // namespace lockstep::kernels::testing
