// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>

#include "runtime/base/error.h"

namespace lockstep {

/// Whatever was thrown, as the Error with the exit code that fits it.
Error as_error(const std::exception& exception);

}  // namespace lockstep
