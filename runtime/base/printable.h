// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace lockstep {

/// Text of a file or a peer, fit for a terminal: control characters but the line's end are written as "\x1b".
std::string printable(std::string_view text);

}  // namespace lockstep
