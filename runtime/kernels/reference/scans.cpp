// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/scans.h"

#include "runtime/kernels/geometry/structure_checks.h"
#include "runtime/kernels/reference/families.h"
#include "runtime/kernels/reference/values.h"

namespace lockstep::kernels::reference {

namespace {

void scan(const Tensor& a, const Tensor& b, bool reverse, const Tensor& y) {
  const checks::Middle extents = checks::scan(a, b, y);
  const Values factors = a.defined() ? load(a) : Values(static_cast<std::size_t>(y.numel()), 1.0);
  const Values terms = b.defined() ? load(b) : Values(static_cast<std::size_t>(y.numel()), 0.0);
  Values result(static_cast<std::size_t>(y.numel()));
  for (std::int64_t o = 0; o < extents.outer; ++o) {
    for (std::int64_t i = 0; i < extents.inner; ++i) {
      double running = b.defined() ? 0 : 1;
      for (std::int64_t step = 0; step < extents.n; ++step) {
        const std::int64_t k = reverse ? extents.n - 1 - step : step;
        const auto at = static_cast<std::size_t>((o * extents.n + k) * extents.inner + i);
        // The first factor has nothing to multiply but the one of a running product.
        running = step == 0 && b.defined() ? terms[at] : factors[at] * running + terms[at];
        result[at] = running;
      }
    }
  }
  store(result, y);
}

}  // namespace

const Scans kScans{.scan = scan};

}  // namespace lockstep::kernels::reference
