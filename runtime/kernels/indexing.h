// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/tensor/device.h"
#include "runtime/tensor/tensor.h"

namespace lockstep::kernels {

/// Reading, writing and adding at places that int64 indices name, and the places that sorting finds. Indices are [m],
/// the same for every (o, i), or [outer, m, inner]. One outside [0, n) is a UsageError on the CPU. A GPU, where an
/// error would make the host wait, reads NaN there (-1 of an integer dtype) and writes and adds nothing.
struct Indexing {
  /// This family's functions of the backend for tensors on `device`.
  static const Indexing& on(Device device);

  /// out [outer, m, inner] = x [outer, n, inner] at (o, indices(o, k, i), i). One dtype, any of them.
  void (*gather)(const Tensor& x, const Tensor& indices, const Tensor& out);
  /// out [outer, n, inner]: each element is the sum of the elements of x [outer, m, inner] whose index names it, added
  /// in ascending k; 0 where there are none. One floating dtype.
  void (*scatter_add)(const Tensor& x, const Tensor& indices, const Tensor& out);
  /// Writes x [outer, m, inner] to out [outer, n, inner] at (o, indices(o, k, i), i). Where several name one place, the
  /// element of the largest k stays. What no index names keeps its value. One dtype, any of them.
  void (*scatter)(const Tensor& x, const Tensor& indices, const Tensor& out);
  /// indices [outer, k, inner], k <= n: where the k first elements of each (o, i) lie in the middle of x [outer, n,
  /// inner], in ascending or descending order. Equal elements keep their order. NaN is greater than every number. x of
  /// any dtype.
  void (*order)(const Tensor& x, bool descending, const Tensor& indices);
};

}  // namespace lockstep::kernels
