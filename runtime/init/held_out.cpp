// SPDX-License-Identifier: Apache-2.0
#include "runtime/init/held_out.h"

#include "runtime/base/error.h"

namespace lockstep::init {

void hold_out(FoundData& found) {
  if (found.options.evaluates()) return;
  for (const double share : {0.1, 0.2, 0.3, 0.5}) {
    found.options.hold_out.eval_share = share;
    try {
      const std::int64_t held = data::describe(found.options, data::Split::kEval).samples;
      // Samples of the same content fall together, however many they are.
      if (held <= data::describe(found.options, data::Split::kTrain).samples) return;
    } catch (const FieldError& error) {
      if (error.path() != "data.eval_share") throw;
    }
  }
  found.options.hold_out = {};
}

}  // namespace lockstep::init
