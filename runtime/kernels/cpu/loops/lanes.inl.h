// SPDX-License-Identifier: Apache-2.0
#pragma once

// Included once for each instruction set, with LOCKSTEP_ISA naming it and Lanes and its loads and stores defined.
//
// The floating types as they lie in memory, in whole vectors and in any length.

namespace lockstep::kernels::cpu::LOCKSTEP_ISA {
namespace {

struct FloatLanes {
  using Element = float;
  static Lanes load(const float* in) { return load_float(in); }
  static void store(float* out, Lanes x) { store_float(out, x); }
  static void stream(float* out, Lanes x) { stream_float(out, x); }
};

struct HalfLanes {
  using Element = std::uint16_t;
  static Lanes load(const std::uint16_t* in) { return load_half(in); }
  static void store(std::uint16_t* out, Lanes x) { store_half(out, x); }
  static void stream(std::uint16_t* out, Lanes x) { stream_half(out, x); }
};

struct BFloat16Lanes {
  using Element = std::uint16_t;
  static Lanes load(const std::uint16_t* in) { return load_bfloat16(in); }
  static void store(std::uint16_t* out, Lanes x) { store_bfloat16(out, x); }
  static void stream(std::uint16_t* out, Lanes x) { stream_bfloat16(out, x); }
};

/// Calls f(Format) for the format of a floating dtype.
template <class F>
void visit_format(DType dtype, F f) {
  if (dtype == DType::kFloat16) return f(HalfLanes{});
  if (dtype == DType::kBFloat16) return f(BFloat16Lanes{});
  f(FloatLanes{});
}

template <class Format>
const typename Format::Element* elements(Input x) {
  return static_cast<const typename Format::Element*>(x.data);
}

template <class Format>
typename Format::Element* elements(Output x) {
  return static_cast<typename Format::Element*>(x.data);
}

/// n < kLanes elements; the others are zero.
template <class Format>
Lanes load_some(const typename Format::Element* in, std::int64_t n) {
  typename Format::Element padded[kLanes] = {};
  std::copy_n(in, std::min<std::int64_t>(n, kLanes), padded);  // GCC 14 wants to see that it fits
  return Format::load(padded);
}

template <class Format>
void store_some(typename Format::Element* out, Lanes x, std::int64_t n) {
  typename Format::Element padded[kLanes];
  Format::store(padded, x);
  std::copy_n(padded, std::min<std::int64_t>(n, kLanes), out);
}

/// n <= kLanes elements; the others are zero.
template <class Format>
Lanes load_lanes(const typename Format::Element* in, std::int64_t n) {
  return n == kLanes ? Format::load(in) : load_some<Format>(in, n);
}

template <class Format>
void store_lanes(typename Format::Element* out, Lanes x, std::int64_t n) {
  n == kLanes ? Format::store(out, x) : store_some<Format>(out, x, n);
}

/// Adds n <= kLanes numbers.
void add_lanes(float* sums, Lanes x, std::int64_t n) {
  store_lanes<FloatLanes>(sums, load_lanes<FloatLanes>(sums, n) + x, n);
}

/// Calls f(i, n) for the vectors of [begin, end): n elements from i on.
template <class F>
void for_each_lanes(std::int64_t begin, std::int64_t end, F f) {
  std::int64_t i = begin;
  for (; i + kLanes <= end; i += kLanes) f(i, kLanes);
  if (i < end) f(i, end - i);
}

/// Calls f.template operator()<In, Result>() with the formats of a loop's input and of its result, which has the same
/// dtype or is float32.
template <class F>
void visit_formats(DType in, DType result, F f) {
  if (in == DType::kFloat32) return f.template operator()<FloatLanes, FloatLanes>();
  const bool wide = result == DType::kFloat32;
  if (in == DType::kFloat16) {
    return wide ? f.template operator()<HalfLanes, FloatLanes>() : f.template operator()<HalfLanes, HalfLanes>();
  }
  return wide ? f.template operator()<BFloat16Lanes, FloatLanes>()
              : f.template operator()<BFloat16Lanes, BFloat16Lanes>();
}

template <class From, class To>
[[gnu::always_inline]] inline void convert_lanes(const void* from, std::int64_t n, void* to) {
  const auto* in = static_cast<const typename From::Element*>(from);
  auto* out = static_cast<typename To::Element*>(to);
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) To::store(out + i, From::load(in + i));
  if (i < n) store_some<To>(out + i, load_some<From>(in + i, n - i), n - i);
}

[[gnu::noinline]] void widen_bool(const bool* in, std::int64_t n, float* out) {
  LOCKSTEP_VECTORIZE for (std::int64_t i = 0; i < n; ++i) out[i] = in[i] ? 1.0f : 0.0f;
}

[[gnu::noinline]] void narrow_to_bool(const float* in, std::int64_t n, bool* out) {
  LOCKSTEP_VECTORIZE for (std::int64_t i = 0; i < n; ++i) out[i] = in[i] != 0.0f;
}

// Two functions that every loop calls, with their loops inside: left to choose, the compiler copies the choice of a
// loop into the callers and calls the loop itself.

[[gnu::noinline]] void widen(Input in, std::int64_t n, float* out) {
  if (in.dtype == DType::kFloat16) return convert_lanes<HalfLanes, FloatLanes>(in.data, n, out);
  if (in.dtype == DType::kBFloat16) return convert_lanes<BFloat16Lanes, FloatLanes>(in.data, n, out);
  if (in.dtype == DType::kBool) return widen_bool(static_cast<const bool*>(in.data), n, out);
  std::memcpy(out, in.data, static_cast<std::size_t>(n) * sizeof(float));
}

[[gnu::noinline]] void narrow(const float* in, std::int64_t n, Output out) {
  if (out.dtype == DType::kFloat16) return convert_lanes<FloatLanes, HalfLanes>(in, n, out.data);
  if (out.dtype == DType::kBFloat16) return convert_lanes<FloatLanes, BFloat16Lanes>(in, n, out.data);
  if (out.dtype == DType::kBool) return narrow_to_bool(in, n, static_cast<bool*>(out.data));
  std::memcpy(out.data, in, static_cast<std::size_t>(n) * sizeof(float));
}

}  // namespace
}  // namespace lockstep::kernels::cpu::LOCKSTEP_ISA
