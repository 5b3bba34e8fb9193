// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

namespace lockstep::kernels {

// Which library's primitive computed, by the library's own name for it: "brg_matmul:avx512_core". The thread that calls
// an operation notes it; loops of ours note nothing. A name lives as long as the process.

inline thread_local const char* noted_implementation = nullptr;

inline void note_implementation(const char* name) { noted_implementation = name; }
/// The one that this thread noted last, and forgets; null where it noted none since.
inline const char* take_implementation() { return std::exchange(noted_implementation, nullptr); }

}  // namespace lockstep::kernels
