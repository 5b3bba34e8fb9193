// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>

#include "runtime/base/error.h"
#include "runtime/kernels/geometry/check.h"
#include "runtime/kernels/geometry/operand_checks.h"

namespace lockstep::kernels::checks {

namespace {

/// `values` [indices..., width] for a table [rows, width].
void rows_by_index(const Check& check, const Tensor& table, const Tensor& indices, std::string_view name,
                   const Tensor& values) {
  check.floating("weight", table).rank_at_least("weight", table, 2).dtype("indices", indices, DType::kInt64);
  check.that(table.shape().rank() == 2, [&] { return "the table must be [rows, width], found " + describe(table); });
  check.floating(name, values).rank_at_least(name, values, 1);
  check.that(values.shape().rank() == indices.shape().rank() + 1 && values.shape().back() == table.size(1) &&
                 std::ranges::equal(values.shape().extents().first(static_cast<std::size_t>(indices.shape().rank())),
                                    indices.shape().extents()),
             [&] {
               return std::string(name) + " must be " + indices.shape().str() + " rows of " +
                      std::to_string(table.size(1)) + ", found " + describe(values);
             });
}

}  // namespace

void embedding(const Tensor& weight, const Tensor& indices, const Tensor& y) {
  const Check check("embedding");
  rows_by_index(check, weight, indices, "y", y);
  check.dtype("y", y, weight.dtype());
}

void embedding_backward(const Tensor& dy, const Tensor& indices, const Tensor& dweight) {
  rows_by_index(Check("embedding_backward"), dweight, indices, "dy", dy);
}

void index_out_of_range(std::int64_t place, std::int64_t value, std::int64_t rows) {
  throw UsageError("embedding: index " + std::to_string(value) + " at place " + std::to_string(place) +
                       " lies outside [0, " + std::to_string(rows) + ")",
                   "Give the table as many rows as there are different indices.");
}

}  // namespace lockstep::kernels::checks
