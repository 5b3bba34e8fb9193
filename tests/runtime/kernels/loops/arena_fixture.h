// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/kernels/arena.h"
#include "tests/runtime/kernels/loops/loops_fixture.h"

namespace lockstep::kernels::testing {

inline constexpr std::int64_t kBase = 100;
inline constexpr std::int64_t kArenaLength = 1700;
/// With a gap, an empty segment and borders in the middle of vectors.
inline const std::vector<ArenaSegment> kSegments{
    {.begin = 103, .end = 110, .lr_scale = 1, .weight_decay = 0.1f},
    {.begin = 110, .end = 110, .lr_scale = 1, .weight_decay = 0, .parameter = 2},
    {.begin = 131, .end = 1799, .lr_scale = 0.5f, .weight_decay = 0, .parameter = 1},
};

}  // namespace lockstep::kernels::testing
