// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

namespace lockstep::kernels::reference {

/// log(sum of exp(row)), without overflow on the way.
double log_sum_exp(std::span<const double> row);

/// Calls visit(index of the first element, row) for each row of `extent` elements.
template <class Visit>
void for_each_row(std::span<double> values, std::int64_t extent, Visit visit) {
  const auto length = static_cast<std::size_t>(extent);
  for (std::size_t first = 0; first < values.size(); first += length) visit(first, values.subspan(first, length));
}

}  // namespace lockstep::kernels::reference
