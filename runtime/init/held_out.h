// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/init/find_data.h"

namespace lockstep::init {

/// Gives data without an evaluation part a share that is held out: a tenth, or more of few samples, so that at least
/// one is held out. None of a text, whose end is its evaluation part, and where every share leaves a side empty.
void hold_out(FoundData& found);

}  // namespace lockstep::init
