// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace lockstep {

/// Text of a file or a peer, fit for a terminal: UTF-8 without control characters but the line's end and the tab. The
/// bytes of any other, U+0080 to U+009F among them, and those that are no UTF-8 are written as "\x1b".
std::string printable(std::string_view text);

/// Text whose bytes that are no UTF-8 are written as "\xb0". Control characters stay, such as those of colours.
std::string valid_utf8(std::string_view text);

}  // namespace lockstep
