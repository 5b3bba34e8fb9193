// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace lockstep {

/// A number of bytes for a person: "512 bytes", "26.4 GiB".
std::string byte_size(double bytes);

}  // namespace lockstep
