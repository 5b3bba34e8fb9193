// SPDX-License-Identifier: Apache-2.0
// Functions of two and three numbers, whose operands may be broadcast: binary, binary_with_number, ternary, expand.
#include <type_traits>

#include "runtime/kernels/cuda/map.cuh"
#include "runtime/kernels/functors/binary.h"
#include "runtime/kernels/geometry/broadcast.h"
#include "runtime/kernels/geometry/operand_checks.h"

namespace lockstep::kernels::cuda {

namespace {

__device__ inline float to_float(bool x) { return x ? 1.0f : 0.0f; }
using cuda::to_float;

/// A function of floats as one of elements: read exactly, and rounded once or, of a comparison, compared with 0.
template <class Out, class F>
struct OnElements {
  F f;
  template <class... In>
  __device__ Out operator()(In... in) const {
    const float result = f(to_float(in)...);
    if constexpr (std::is_same_v<Out, bool>) {
      return result != 0.0f;
    } else {
      return from_float<Out>(result);
    }
  }
};

template <class Function>
struct Pair {
  __device__ float operator()(float a, float b) const { return Function::value(a, b); }
};
template <class Function>
struct WithNumber {
  float number;
  bool number_first;
  __device__ float operator()(float x) const {
    return number_first ? Function::value(number, x) : Function::value(x, number);
  }
};
template <class Function>
struct Triple {
  Function function;
  __device__ float operator()(float a, float b, float c) const { return function.value(a, b, c); }
};
struct Same {
  __device__ float operator()(float x) const { return x; }
};

/// b is one row: a thread's column moves by the same distance each time, so a thread divides only before its loop. It
/// reads sizeof(T) and writes sizeof(Out) bytes an element; b stays in the cache.
template <int W, class Out, class T, class F>
__global__ void __launch_bounds__(kThreads)
    map_channels_kernel(std::int64_t groups, std::int64_t groups_of_row, Out* out, F f, const T* a, const T* b) {
  const std::int64_t stride = step() % groups_of_row;
  std::int64_t column = first() % groups_of_row;
  for (std::int64_t i = first(); i < groups; i += step()) {
    const Values<T, W> values = load<W>(a + i * W);
    const Values<T, W> row = load<W>(b + column * W);
    Values<Out, W> result;
#pragma unroll
    for (int k = 0; k < W; ++k) result.values[k] = f(values.values[k], row.values[k]);
    store(result, out + i * W);
    column += stride;
    if (column >= groups_of_row) column -= groups_of_row;
  }
}

/// An operand's elements as the output walks over them.
template <class T>
struct Walked {
  const T* data;
  int number;
  __device__ T at(const BroadcastWalk& walk, std::int64_t i) const { return data[walk.offset(number, i)]; }
};

/// Any broadcasting: an element a thread, with a division for each dimension that operands walk apart. What is repeated
/// stays in the cache.
template <class Out, class F, class... In>
__global__ void __launch_bounds__(kThreads)
    map_broadcast_kernel(std::int64_t n, Out* out, BroadcastWalk walk, F f, Walked<In>... in) {
  for (std::int64_t i = first(); i < n; i += step()) out[i] = f(in.at(walk, i)...);
}

template <class Out, class F, class... In>
void launch_broadcast(const char* name, cudaStream_t stream, std::int64_t n, Out* out, const BroadcastWalk& walk, F f,
                      Walked<In>... in) {
  map_broadcast_kernel<<<blocks_for(n), kThreads, 0, stream>>>(n, out, walk, f, in...);
  check_launch(name);
}

/// Whether a function is for float64, too, which holds integers here (ops/integers.h).
constexpr bool counts(Binary function) {
  switch (function) {
    case Binary::kAdd:
    case Binary::kSub:
    case Binary::kMul:
    case Binary::kMaximum:
    case Binary::kMinimum:
      return true;
    default:
      return is_comparison(function);
  }
}

/// A function of doubles as one of elements.
template <class Function>
struct OfDoubles {
  static constexpr bool kCompares = is_comparison(Function::kBinary);
  using Out = std::conditional_t<kCompares, bool, double>;
  __device__ Out operator()(double a, double b) const {
    const double result = Function::value(a, b);
    if constexpr (kCompares) {
      return result != 0.0;
    } else {
      return result;
    }
  }
};
template <class Function>
struct OfDoubleAndNumber {
  double number;
  bool number_first;
  __device__ typename OfDoubles<Function>::Out operator()(double x) const {
    return number_first ? OfDoubles<Function>{}(number, x) : OfDoubles<Function>{}(x, number);
  }
};

/// Calls visit(Function) for a function that counts. Throws ShapeError for another one.
template <class Visit>
void visit_counting(Binary which, Visit visit) {
  if (!counts(which)) return visit_floating(name_of(which), DType::kFloat64, [&]<class>() {});
  visit_binary(which, [&]<class Function>(Function function) {
    if constexpr (counts(Function::kBinary)) visit(function);
  });
}

/// Calls f.template operator()<T, Out>(): a dtype of this backend, and what its function's results are.
template <class F>
void visit_result(Binary function, DType dtype, F&& f) {
  visit_floating(name_of(function), dtype, [&]<class T>() {
    if (is_comparison(function)) {
      f.template operator()<T, bool>();
    } else {
      f.template operator()<T, T>();
    }
  });
}

/// Calls visit(Function) for a function of the list that gives results of this type.
template <class Out, class Visit>
void visit_giving(Binary which, Visit visit) {
  visit_binary(which, [&]<class Function>(Function function) {
    if constexpr (is_comparison(Function::kBinary) == std::is_same_v<Out, bool>) visit(function);
  });
}

}  // namespace

/// Three accesses of sizeof(T) an element, two where b is broadcast.
void binary(Binary which, const Tensor& a, const Tensor& b, const Tensor& out) {
  checks::binary(which, a, b, out);
  const std::int64_t n = out.numel();
  if (n == 0) return;
  const Device device = out.device();
  const gpu::DeviceGuard guard(device);
  const cudaStream_t stream = gpu::current(device);
  if (a.dtype() == DType::kFloat64) {
    return visit_counting(which, [&]<class Function>(Function) {
      launch_broadcast("binary", stream, n, cuda::out<typename OfDoubles<Function>::Out>(out),
                       BroadcastWalk(out.shape(), {a.shape(), b.shape()}), OfDoubles<Function>{},
                       Walked<double>{in<double>(a), 0}, Walked<double>{in<double>(b), 1});
    });
  }
  if (checks::is_narrow_addend(which, a, b)) {
    return visit_floating("binary", b.dtype(), [&]<class T>() {
      launch_map("binary", stream, n, cuda::out<float>(out), OnElements<float, Pair<Add>>{}, in<float>(a), in<T>(b));
    });
  }
  const bool is_row = a.shape() == out.shape() && a.shape().rank() > 0 && b.shape() == Shape{a.shape().back()};
  visit_result(which, a.dtype(), [&]<class T, class Out>() {
    visit_giving<Out>(which, [&]<class Function>(Function) {
      using F = OnElements<Out, Pair<Function>>;
      if (a.shape() == b.shape()) return launch_map("binary", stream, n, cuda::out<Out>(out), F{}, in<T>(a), in<T>(b));
      if (is_row) {
        const auto launch = [&]<class, int W>() {
          map_channels_kernel<W><<<blocks_for(n / W), kThreads, 0, stream>>>(n / W, b.numel() / W, cuda::out<Out>(out),
                                                                             F{}, in<T>(a), in<T>(b));
        };
        visit_channels("binary", a.dtype(), b.numel(), launch, a.data(), b.data(), out.data());
        return check_launch("binary");
      }
      launch_broadcast("binary", stream, n, cuda::out<Out>(out), BroadcastWalk(out.shape(), {a.shape(), b.shape()}),
                       F{}, Walked<T>{in<T>(a), 0}, Walked<T>{in<T>(b), 1});
    });
  });
}

/// Two accesses of sizeof(T) an element.
void binary_with_number(Binary which, const Tensor& x, double number, bool number_first, const Tensor& out) {
  checks::binary_with_number(which, x, out);
  const Device device = out.device();
  const gpu::DeviceGuard guard(device);
  const cudaStream_t stream = gpu::current(device);
  if (x.dtype() == DType::kFloat64) {
    if (x.numel() == 0) return;
    return visit_counting(which, [&]<class Function>(Function) {
      launch_broadcast("binary_with_number", stream, x.numel(), cuda::out<typename OfDoubles<Function>::Out>(out),
                       BroadcastWalk(out.shape(), {x.shape()}), OfDoubleAndNumber<Function>{number, number_first},
                       Walked<double>{in<double>(x), 0});
    });
  }
  if (which == Binary::kPow && !number_first) {
    bool done = false;
    visit_floating("pow", x.dtype(), [&]<class T>() {
      done = visit_plain_power(number, [&]<class F>(F f) {
        launch_map("pow", stream, x.numel(), cuda::out<T>(out), OnElements<T, F>{f}, in<T>(x));
      });
    });
    if (done) return;
  }
  visit_result(which, x.dtype(), [&]<class T, class Out>() {
    visit_giving<Out>(which, [&]<class Function>(Function) {
      using F = OnElements<Out, WithNumber<Function>>;
      launch_map("binary_with_number", stream, x.numel(), cuda::out<Out>(out),
                 F{{static_cast<float>(number), number_first}}, in<T>(x));
    });
  });
}

/// An element takes one access for each operand that is not broadcast, and one for the result.
void ternary(const TernaryFunction& which, const Tensor& a, const Tensor& b, const Tensor& c, const Tensor& out) {
  checks::ternary(which, a, b, c, out);
  const std::int64_t n = out.numel();
  if (n == 0) return;
  const Device device = out.device();
  const gpu::DeviceGuard guard(device);
  const cudaStream_t stream = gpu::current(device);
  visit_floating("ternary", b.dtype(), [&]<class T>() {
    visit_ternary(which, [&]<class Function>(Function function) {
      using A = std::conditional_t<Function::kTernary == Ternary::kWhere, bool, T>;
      const OnElements<T, Triple<Function>> f{{function}};
      if (a.shape() == out.shape() && b.shape() == out.shape() && c.shape() == out.shape()) {
        return launch_map("ternary", stream, n, cuda::out<T>(out), f, in<A>(a), in<T>(b), in<T>(c));
      }
      const BroadcastWalk walk(out.shape(), {a.shape(), b.shape(), c.shape()});
      launch_broadcast("ternary", stream, n, cuda::out<T>(out), walk, f, Walked<A>{in<A>(a), 0}, Walked<T>{in<T>(b), 1},
                       Walked<T>{in<T>(c), 2});
    });
  });
}

/// sizeof(T) written an element.
void expand(const Tensor& from, const Tensor& out) {
  checks::expand(from, out);
  const std::int64_t n = out.numel();
  if (n == 0) return;
  const Device device = out.device();
  const gpu::DeviceGuard guard(device);
  visit_floating("expand", from.dtype(), [&]<class T>() {
    launch_broadcast("expand", gpu::current(device), n, cuda::out<T>(out), BroadcastWalk(out.shape(), {from.shape()}),
                     OnElements<T, Same>{}, Walked<T>{in<T>(from), 0});
  });
}

}  // namespace lockstep::kernels::cuda
