// SPDX-License-Identifier: Apache-2.0
// One kernel for all reductions of [outer, n, inner] over its middle. A block's threads lie along inner (lanes), n
// (lines) and outer (teams); the lines fold what they found in halves. Where few results are made of many elements, n
// is cut into pieces, and a second kernel joins those in their order. The shape alone decides how the work is cut.
#include <bit>

#include "runtime/kernels/cuda/families.h"
#include "runtime/kernels/cuda/launch.cuh"
#include "runtime/kernels/dim_reductions.h"
#include "runtime/kernels/elementwise.h"
#include "runtime/kernels/functors/extreme.h"
#include "runtime/kernels/geometry/structure_checks.h"

namespace lockstep::kernels::cuda {

namespace {

using checks::Middle;

/// The extent of a block in z that a GPU allows.
constexpr unsigned kMostTeams = 64;

struct Cut {
  Middle x;
  unsigned lanes, lines, teams;
  std::int64_t tiles;   ///< of inner
  std::int64_t piece;   ///< rows
  std::int64_t pieces;  ///< of n

  explicit Cut(const Middle& middle) : x(middle) {
    lanes = static_cast<unsigned>(std::min<std::int64_t>(32, std::bit_ceil(static_cast<std::uint64_t>(x.inner))));
    // Four elements a thread or more, where there are so many.
    const auto wanted = std::bit_ceil(static_cast<std::uint64_t>(std::max<std::int64_t>((x.n + 3) / 4, 1)));
    lines = static_cast<unsigned>(std::min<std::uint64_t>(kThreads / lanes, wanted));
    teams = std::min(kThreads / lanes / lines, kMostTeams);
    tiles = (x.inner + lanes - 1) / lanes;
    const std::int64_t blocks = tiles * ((x.outer + teams - 1) / teams);
    const std::int64_t most = std::max<std::int64_t>(x.n / (16 * static_cast<std::int64_t>(lines)), 1);
    pieces = std::clamp<std::int64_t>(kMaxBlocks / blocks, 1, most);
    piece = std::max<std::int64_t>((x.n + pieces - 1) / pieces, 1);
    pieces = std::max<std::int64_t>((x.n + piece - 1) / piece, 1);
  }

  dim3 grid() const {
    return {static_cast<unsigned>(tiles * ((x.outer + teams - 1) / teams)), static_cast<unsigned>(pieces)};
  }
  dim3 block() const { return {lanes, lines, teams}; }
  LOCKSTEP_HOST_DEVICE std::int64_t results() const { return x.outer * x.inner; }
};

/// Sums in float64; `second` is for reductions that need two.
struct Sums {
  double first = 0;
  double second = 0;
};

struct AddTerms {
  using State = Sums;
  Term term;
  __device__ State start() const { return {}; }
  template <class X>
  __device__ void add(State& state, X x, std::int64_t, std::int64_t) const {
    state.first += static_cast<double>(term == Term::kValue ? x : term == Term::kAbsolute ? fabs(x) : x * x);
  }
  __device__ void join(State& state, const State& other) const { state.first += other.first; }
};

/// Sums of the distances from the mean, `sums / n` as a float, and of their squares.
struct AddDeviations {
  using State = Sums;
  const double* sums;
  double n;
  __device__ State start() const { return {}; }
  __device__ void add(State& state, float x, std::int64_t, std::int64_t result) const {
    const double distance = static_cast<double>(x - static_cast<float>(sums[result] / n));
    state.first += distance;
    state.second += distance * distance;
  }
  __device__ void join(State& state, const State& other) const {
    state.first += other.first;
    state.second += other.second;
  }
};

struct Found {
  float value;
  std::int64_t place;  ///< -1: nothing yet
};

template <Extreme which>
struct FindExtreme {
  using State = Found;
  __device__ State start() const { return {0, -1}; }
  __device__ void add(State& state, float x, std::int64_t k, std::int64_t) const { join(state, {x, k}); }
  /// Among equal values the one at the first place stays, in whichever order they are joined.
  __device__ void join(State& state, const State& other) const {
    if (other.place < 0) return;
    if (state.place < 0 || is_more_extreme(which, other.value, state.value) ||
        (is_extreme(other.value, state.value) && other.place < state.place)) {
      state = other;
    }
  }
};

/// finish(result, state) where there is one piece; else partial [outer, pieces, inner].
template <class Op, class T, class Finish>
__global__ void __launch_bounds__(kThreads)
    reduce_kernel(Cut cut, Op op, const T* x, typename Op::State* partial, Finish finish) {
  alignas(16) __shared__ unsigned char memory[kThreads * sizeof(typename Op::State)];
  auto* shared = reinterpret_cast<typename Op::State*>(memory);
  const std::int64_t o = blockIdx.x / cut.tiles * cut.teams + threadIdx.z;
  const std::int64_t i = blockIdx.x % cut.tiles * cut.lanes + threadIdx.x;
  const bool live = o < cut.x.outer && i < cut.x.inner;
  typename Op::State state = op.start();
  if (live) {
    const std::int64_t begin = blockIdx.y * cut.piece;
    const std::int64_t end = min(begin + cut.piece, cut.x.n);
#pragma unroll 4
    for (std::int64_t k = begin + threadIdx.y; k < end; k += cut.lines) {
      op.add(state, widened(x[(o * cut.x.n + k) * cut.x.inner + i]), k, o * cut.x.inner + i);
    }
  }
  const unsigned own = (threadIdx.z * cut.lines + threadIdx.y) * cut.lanes + threadIdx.x;
  shared[own] = state;
  for (unsigned half = cut.lines / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.y < half) op.join(shared[own], shared[own + half * cut.lanes]);
  }
  if (!live || threadIdx.y != 0) return;
  if (cut.pieces == 1) {
    finish(o * cut.x.inner + i, shared[own]);
  } else {
    partial[(o * cut.pieces + blockIdx.y) * cut.x.inner + i] = shared[own];
  }
}

template <class Op, class Finish>
__global__ void __launch_bounds__(kThreads)
    join_kernel(Cut cut, Op op, const typename Op::State* partial, Finish finish) {
  for (std::int64_t result = first(); result < cut.results(); result += step()) {
    const std::int64_t o = result / cut.x.inner;
    typename Op::State state = op.start();
    for (std::int64_t p = 0; p < cut.pieces; ++p) {
      op.join(state, partial[(o * cut.pieces + p) * cut.x.inner + result % cut.x.inner]);
    }
    finish(result, state);
  }
}

/// x: float64 too where Op adds it.
template <class Op, class Finish>
void reduce(const char* name, const Tensor& x, const Middle& extents, Op op, Finish finish) {
  if (extents.outer * extents.inner == 0) return;
  const Cut cut(extents);
  const Device device = x.device();
  const gpu::DeviceGuard guard(device);
  const cudaStream_t stream = gpu::current(device);
  const std::int64_t states = cut.pieces > 1 ? cut.results() * cut.pieces : 0;
  const Tensor memory =
      Tensor::empty({states * static_cast<std::int64_t>(sizeof(typename Op::State))}, DType::kUInt8, device);
  auto* partial = static_cast<typename Op::State*>(memory.data());
  const auto launch = [&]<class T>() {
    reduce_kernel<<<cut.grid(), cut.block(), 0, stream>>>(cut, op, in<T>(x), partial, finish);
  };
  if constexpr (std::is_same_v<Op, AddTerms>) {
    visit_countable(name, x.dtype(), launch);
  } else {
    visit_floating(name, x.dtype(), launch);
  }
  check_launch(name);
  if (cut.pieces == 1) return;
  join_kernel<<<blocks_for(cut.results()), kThreads, 0, stream>>>(cut, op, partial, finish);
  check_launch(name);
}

template <class Out>
struct StoreSum {
  Out* out;
  double factor;
  __device__ void operator()(std::int64_t result, const Sums& sums) const {
    out[result] = narrowed<Out>(factor * sums.first);
  }
};

struct KeepSum {
  double* out;
  __device__ void operator()(std::int64_t result, const Sums& sums) const { out[result] = sums.first; }
};

template <class Out>
struct StoreVariance {
  Out* out;
  double n;
  double divisor;
  __device__ void operator()(std::int64_t result, const Sums& sums) const {
    const double squares = sums.second - sums.first * sums.first / n;
    out[result] = from_float<Out>(static_cast<float>(divisor > 0 ? squares / divisor : nan("")));
  }
};

template <class T>
struct StoreExtreme {
  T* values;
  std::int64_t* indices;
  __device__ void operator()(std::int64_t result, const Found& found) const {
    if (values != nullptr) values[result] = from_float<T>(found.value);
    if (indices != nullptr) indices[result] = found.place;
  }
};

void sum_dim(const Tensor& x, Term term, double factor, const Tensor& out) {
  const Middle extents = checks::sum_dim(x, out);
  visit_countable("sum_dim", out.dtype(), [&]<class Out>() {
    reduce("sum_dim", x, extents, AddTerms{term}, StoreSum<Out>{cuda::out<Out>(out), factor});
  });
}

void variance_dim(const Tensor& x, double divisor, const Tensor& variance) {
  const Middle extents = checks::variance_dim(x, variance);
  const Tensor sums = Tensor::empty(variance.shape(), DType::kFloat64, x.device());
  reduce("variance_dim", x, extents, AddTerms{Term::kValue}, KeepSum{cuda::out<double>(sums)});
  const auto n = static_cast<double>(extents.n);
  visit_floating("variance_dim", variance.dtype(), [&]<class Out>() {
    reduce("variance_dim", x, extents, AddDeviations{in<double>(sums), n},
           StoreVariance<Out>{cuda::out<Out>(variance), n, divisor});
  });
}

void extreme_dim(const Tensor& x, Extreme which, const Tensor& values, const Tensor& indices) {
  const Middle extents = checks::extreme_dim(x, values, indices);
  visit_floating("extreme_dim", x.dtype(), [&]<class T>() {
    const StoreExtreme<T> finish{values.defined() ? cuda::out<T>(values) : nullptr,
                                 indices.defined() ? cuda::out<std::int64_t>(indices) : nullptr};
    if (which == Extreme::kLargest) {
      reduce("extreme_dim", x, extents, FindExtreme<Extreme::kLargest>{}, finish);
    } else {
      reduce("extreme_dim", x, extents, FindExtreme<Extreme::kSmallest>{}, finish);
    }
  });
}

struct CountEqual {
  using State = Sums;
  const float* extremes;
  __device__ State start() const { return {}; }
  __device__ void add(State& state, float x, std::int64_t, std::int64_t result) const {
    state.first += is_extreme(x, extremes[result]) ? 1 : 0;
  }
  __device__ void join(State& state, const State& other) const { state.first += other.first; }
};

template <class T>
__global__ void __launch_bounds__(kThreads)
    shares_kernel(Middle extents, const T* x, const float* extremes, const double* counts, T* shares) {
  const std::int64_t n = extents.outer * extents.n * extents.inner;
  for (std::int64_t at = first(); at < n; at += step()) {
    const std::int64_t result = at / extents.inner / extents.n * extents.inner + at % extents.inner;
    const bool equal = is_extreme(to_float(x[at]), extremes[result]);
    shares[at] = from_float<T>(equal ? static_cast<float>(1 / counts[result]) : 0.0f);
  }
}

void extreme_shares(const Tensor& x, const Tensor& extremes, const Tensor& shares) {
  const Middle extents = checks::extreme_shares(x, extremes, shares);
  if (x.numel() == 0) return;
  const Device device = x.device();
  const gpu::DeviceGuard guard(device);
  const Tensor of = Tensor::empty(extremes.shape(), DType::kFloat32, device);
  const Tensor counts = Tensor::empty(extremes.shape(), DType::kFloat64, device);
  kElementwise.cast(extremes, of);
  reduce("extreme_shares", x, extents, CountEqual{in<float>(of)}, KeepSum{cuda::out<double>(counts)});
  visit_floating("extreme_shares", x.dtype(), [&]<class T>() {
    shares_kernel<<<blocks_for(x.numel()), kThreads, 0, gpu::current(device)>>>(
        extents, in<T>(x), in<float>(of), in<double>(counts), cuda::out<T>(shares));
  });
  check_launch("extreme_shares");
}

}  // namespace

const DimReductions kDimReductions{
    .sum_dim = sum_dim, .variance_dim = variance_dim, .extreme_dim = extreme_dim, .extreme_shares = extreme_shares};

}  // namespace lockstep::kernels::cuda
