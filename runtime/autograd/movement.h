// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "runtime/tensor/tensor.h"

// Tensor's members that move elements, as operations. Each function makes `result`, whose elements are there already,
// the result of an operation on `from`.

namespace lockstep::autograd {

/// The options that a slice notes (record_observer.h): a part along a dimension, begin, begin + step, ...
struct SliceOptions {
  int dim = 0;
  std::int64_t begin = 0;
  std::int64_t step = 1;
};

void record_to(const Tensor& result, const Tensor& from);
void record_reshape(const Tensor& result, const Tensor& from);
void record_rows(const Tensor& result, const Tensor& from, std::int64_t begin);
void record_copy(const Tensor& result, const Tensor& from);

/// Throws UsageError for a tensor whose gradient `operation`, which writes it in place, would make wrong.
void require_writable(const Tensor& tensor, std::string_view operation);
/// Throws UsageError where the record_copy(result, from) that is to come would make a gradient wrong.
void require_copyable(const Tensor& result, const Tensor& from);

}  // namespace lockstep::autograd
