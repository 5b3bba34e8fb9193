// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace lockstep {

/// `text`, quoted where a shell would not take it for one word as it is: for commands that a message shows, and
/// for scripts.
std::string shell_word(const std::string& text);

}  // namespace lockstep
