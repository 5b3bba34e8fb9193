// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace lockstep::comm {

// The environment variables of launchers. Those that have to be there are named, in a UsageError, if they are not.

bool is_set(const char* name);
std::string text_in(const char* name);
/// Not negative.
int integer_in(const char* name);
/// `fallback` where the variable is not set.
int integer_in(const char* name, int fallback);

}  // namespace lockstep::comm
