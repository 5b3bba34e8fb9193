// SPDX-License-Identifier: Apache-2.0
#pragma once

// Included once for each instruction set, with LOCKSTEP_ISA naming it.
//
// Copies of many short lines. A call of memcpy() costs as much as copying some hundred bytes.

namespace lockstep::kernels::cpu::LOCKSTEP_ISA {
namespace {

/// `n` bytes as pieces of kBytes; what is left is the last such piece. At least kBytes.
template <int kBytes>
[[gnu::always_inline]] inline void copy_pieces(const std::byte* in, std::byte* out, std::int64_t n) {
  std::int64_t at = 0;
  for (; at + kBytes <= n; at += kBytes) __builtin_memcpy(out + at, in + at, kBytes);
  if (at < n) __builtin_memcpy(out + n - kBytes, in + n - kBytes, kBytes);
}

[[gnu::always_inline]] inline void copy_line(const std::byte* in, std::byte* out, std::int64_t n) {
  if (n >= 64) return copy_pieces<64>(in, out, n);
  if (n >= 16) return copy_pieces<16>(in, out, n);
  if (n >= 4) return copy_pieces<4>(in, out, n);
  for (std::int64_t i = 0; i < n; ++i) out[i] = in[i];
}

void copy_lines(const void* in, std::int64_t in_stride, void* out, std::int64_t out_stride, std::int64_t bytes,
                std::int64_t lines) {
  const auto* from = static_cast<const std::byte*>(in);
  auto* to = static_cast<std::byte*>(out);
  for (std::int64_t i = 0; i < lines; ++i, from += in_stride, to += out_stride) copy_line(from, to, bytes);
}

template <class Index>
void pick_lines(const void* in, const Index* indices, std::int64_t bytes, std::int64_t lines, void* out) {
  const auto* from = static_cast<const std::byte*>(in);
  auto* to = static_cast<std::byte*>(out);
  for (std::int64_t i = 0; i < lines; ++i, to += bytes) {
    copy_line(from + static_cast<std::int64_t>(indices[i]) * bytes, to, bytes);
  }
}

}  // namespace
}  // namespace lockstep::kernels::cpu::LOCKSTEP_ISA
