// SPDX-License-Identifier: Apache-2.0
#pragma once

// Pragmas that GCC and Clang spell differently.

#define LOCKSTEP_PRAGMA(text) _Pragma(#text)

#if defined(__clang__)

/// Before a loop: no iteration waits for another one, so the compiler may make vector code of it.
#define LOCKSTEP_VECTORIZE LOCKSTEP_PRAGMA(clang loop vectorize(assume_safety))

/// The functions up to LOCKSTEP_END_TARGET use these processor features, a list in a string literal.
#define LOCKSTEP_BEGIN_TARGET(features) \
  LOCKSTEP_PRAGMA(clang attribute push(__attribute__((target(features))), apply_to = function))
#define LOCKSTEP_END_TARGET LOCKSTEP_PRAGMA(clang attribute pop)

#else

#define LOCKSTEP_VECTORIZE LOCKSTEP_PRAGMA(GCC ivdep)
#define LOCKSTEP_BEGIN_TARGET(features) LOCKSTEP_PRAGMA(GCC push_options) LOCKSTEP_PRAGMA(GCC target(features))
#define LOCKSTEP_END_TARGET LOCKSTEP_PRAGMA(GCC pop_options)

#endif
