// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/cuda/families.h"
#include "runtime/kernels/cuda/launch.cuh"
#include "runtime/kernels/geometry/strided.h"
#include "runtime/kernels/geometry/structure_checks.h"
#include "runtime/kernels/geometry/visit_element.h"

namespace lockstep::kernels::cuda {

namespace {

/// CopyPlan as a kernel's argument.
struct Loops {
  explicit Loops(const CopyPlan& plan) : rank(plan.rank), from(plan.from), to(plan.to) {
    for (int d = 0; d < rank; ++d) {
      const CopyDim& dim = plan.dims[static_cast<std::size_t>(d)];
      extents[d] = dim.extent;
      from_strides[d] = dim.from;
      to_strides[d] = dim.to;
    }
  }

  /// Where index `i` of all loops lies. Division is dear: of 32-bit numbers where they do.
  template <class Index>
  __device__ void find(Index i, std::int64_t& source, std::int64_t& target) const {
    source = from;
    target = to;
    for (int d = rank - 1; d >= 0; --d) {
      const auto extent = static_cast<Index>(extents[d]);
      const Index rest = i / extent;
      const auto at = static_cast<std::int64_t>(i - rest * extent);
      source += at * from_strides[d];
      target += at * to_strides[d];
      i = rest;
    }
  }

  int rank;
  std::int64_t from;
  std::int64_t to;
  std::int64_t extents[Shape::kMaxRank];
  std::int64_t from_strides[Shape::kMaxRank];
  std::int64_t to_strides[Shape::kMaxRank];
};

/// Two accesses of an element each.
template <class T, class Index>
__global__ void __launch_bounds__(kThreads) copy_kernel(Loops loops, std::int64_t n, const T* in, T* out) {
  for (std::int64_t i = first(); i < n; i += step()) {
    std::int64_t source, target;
    loops.find(static_cast<Index>(i), source, target);
    out[target] = in[source];
  }
}

constexpr int kTransposeTile = 32;
constexpr int kTransposeLines = kThreads / kTransposeTile;

/// A matrix whose rows lie `row` apart in `in` and whose columns lie `column` apart in `out`, for each index of the
/// outer loops: grid (tiles of rows * tiles of columns * indices). Both sides in accesses of whole tile rows.
template <class T>
__global__ void __launch_bounds__(kThreads)
    transpose_kernel(Loops outer, std::int64_t rows, std::int64_t row, std::int64_t columns, std::int64_t column,
                     const T* in, T* out) {
  __shared__ T tile[kTransposeTile][kTransposeTile + 1];
  const std::int64_t row_tiles = (rows + kTransposeTile - 1) / kTransposeTile;
  const std::int64_t column_tiles = (columns + kTransposeTile - 1) / kTransposeTile;
  const std::int64_t block = blockIdx.x;
  const std::int64_t c0 = block % column_tiles * kTransposeTile;
  const std::int64_t r0 = block / column_tiles % row_tiles * kTransposeTile;
  std::int64_t source, target;
  outer.find(block / column_tiles / row_tiles, source, target);
  for (int line = static_cast<int>(threadIdx.y); line < kTransposeTile; line += kTransposeLines) {
    const std::int64_t c = c0 + threadIdx.x;
    if (r0 + line < rows && c < columns) tile[line][threadIdx.x] = in[source + (r0 + line) * row + c];
  }
  __syncthreads();
  for (int line = static_cast<int>(threadIdx.y); line < kTransposeTile; line += kTransposeLines) {
    const std::int64_t r = r0 + threadIdx.x;
    if (r < rows && c0 + line < columns) out[target + (c0 + line) * column + r] = tile[threadIdx.x][line];
  }
}

std::int64_t count_of(const CopyPlan& plan) {
  std::int64_t count = 1;
  for (int d = 0; d < plan.rank; ++d) count *= plan.dims[static_cast<std::size_t>(d)].extent;
  return count;
}

/// Runs of neighbours as elements of `factor` as many bytes, where all of them begin and end at multiples of that.
bool widen(CopyPlan& plan, std::int64_t factor) {
  if (!plan.runs() || plan.from % factor != 0 || plan.to % factor != 0 || plan.innermost().extent % factor != 0) {
    return false;
  }
  for (int d = 0; d + 1 < plan.rank; ++d) {
    const CopyDim& dim = plan.dims[static_cast<std::size_t>(d)];
    if (dim.from % factor != 0 || dim.to % factor != 0) return false;
  }
  for (int d = 0; d + 1 < plan.rank; ++d) {
    CopyDim& dim = plan.dims[static_cast<std::size_t>(d)];
    dim.from /= factor;
    dim.to /= factor;
  }
  plan.dims[static_cast<std::size_t>(plan.rank - 1)].extent /= factor;
  plan.from /= factor;
  plan.to /= factor;
  return true;
}

template <class T>
void copy_as(const CopyPlan& plan, const Tensor& source, const Tensor& target, cudaStream_t stream) {
  const std::int64_t n = count_of(plan);
  const Loops loops(plan);
  if (n < (std::int64_t{1} << 31)) {
    copy_kernel<T, std::uint32_t><<<blocks_for(n), kThreads, 0, stream>>>(loops, n, in<T>(source), out<T>(target));
  } else {
    copy_kernel<T, std::int64_t><<<blocks_for(n), kThreads, 0, stream>>>(loops, n, in<T>(source), out<T>(target));
  }
  check_launch("copy_strided");
}

template <class T>
void transpose_as(CopyPlan plan, int columns_at, const Tensor& source, const Tensor& target, cudaStream_t stream) {
  const CopyDim rows = plan.take(plan.rank - 1);
  const CopyDim columns = plan.take(columns_at);
  const std::int64_t blocks = count_of(plan) * ((rows.extent + kTransposeTile - 1) / kTransposeTile) *
                              ((columns.extent + kTransposeTile - 1) / kTransposeTile);
  transpose_kernel<<<static_cast<unsigned>(blocks), dim3(kTransposeTile, kTransposeLines), 0, stream>>>(
      Loops(plan), rows.extent, rows.from, columns.extent, columns.to, in<T>(source), out<T>(target));
  check_launch("copy_strided");
}

void copy_strided(const Tensor& source, const Walk& from, const Shape& extents, const Tensor& target, const Walk& to) {
  checks::copy_strided(source, from, extents, target, to);
  CopyPlan plan = plan_copy(from, extents, to);
  if (plan.elements == 0) return;
  const Device device = target.device();
  const gpu::DeviceGuard guard(device);
  const cudaStream_t stream = gpu::current(device);
  const std::size_t bytes = size_of(source.dtype());
  constexpr std::int64_t kWorthTransposing = 4;
  if (const int columns = plan.transposed_with(kWorthTransposing); columns >= 0) {
    return visit_element(bytes, [&]<class T>(T) { transpose_as<T>(plan, columns, source, target, stream); });
  }
  if (aligned(source.data(), target.data()) && widen(plan, static_cast<std::int64_t>(16 / bytes))) {
    return copy_as<uint4>(plan, source, target, stream);
  }
  visit_element(bytes, [&]<class T>(T) { copy_as<T>(plan, source, target, stream); });
}

}  // namespace

const Movement kMovement{.copy_strided = copy_strided};

}  // namespace lockstep::kernels::cuda
