// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/embedding.h"

#include "runtime/kernels/geometry/operand_checks.h"
#include "runtime/kernels/reference/families.h"
#include "runtime/kernels/reference/values.h"

namespace lockstep::kernels::reference {

namespace {

/// Calls row(place, index) for every index but the skipped ones.
template <class Row>
void for_each_index(const Tensor& indices, std::int64_t skipped, std::int64_t rows, Row row) {
  const std::span<const std::int64_t> all = indices.as<std::int64_t>();
  for (std::size_t place = 0; place < all.size(); ++place) {
    const std::int64_t index = all[place];
    if (index < 0 || index >= rows) checks::index_out_of_range(static_cast<std::int64_t>(place), index, rows);
    if (index != skipped) row(place, static_cast<std::size_t>(index));
  }
}

void embedding(const Tensor& weight, const Tensor& indices, std::int64_t skipped, const Tensor& y) {
  checks::embedding(weight, indices, y);
  const auto width = static_cast<std::size_t>(weight.size(1));
  const Values table = load(weight);
  Values rows(static_cast<std::size_t>(y.numel()), 0.0);
  for_each_index(indices, skipped, weight.size(0), [&](std::size_t place, std::size_t index) {
    for (std::size_t c = 0; c < width; ++c) rows[place * width + c] = table[index * width + c];
  });
  store(rows, y);
}

void embedding_backward(const Tensor& dy, const Tensor& indices, std::int64_t skipped, bool accumulate,
                        const Tensor& dweight) {
  checks::embedding_backward(dy, indices, dweight);
  const auto width = static_cast<std::size_t>(dweight.size(1));
  const Values slope = load(dy);
  Values sums = load_if(accumulate, dweight);
  for_each_index(indices, skipped, dweight.size(0), [&](std::size_t place, std::size_t index) {
    for (std::size_t c = 0; c < width; ++c) sums[index * width + c] += slope[place * width + c];
  });
  store(sums, dweight);
}

}  // namespace

const Embedding kEmbedding{.embedding = embedding, .embedding_backward = embedding_backward};

}  // namespace lockstep::kernels::reference
