// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace lockstep::train {

enum class Words {
  kPassing,  ///< of a run that goes on: they wait up to 100 ms for a reader, then none does until one is back
  kLast,     ///< of a process that ends: they wait up to a second
};

/// Writes text of whole lines to stderr, in one piece beside others of this process. Never waits for longer than
/// `words` may: what a stopped terminal or a log collector that hangs does not take by then is dropped, and the next
/// text that is taken says how many lines were. By any thread, but not by the handler of a signal.
void write_stderr(std::string_view text, Words words = Words::kPassing) noexcept;

}  // namespace lockstep::train
