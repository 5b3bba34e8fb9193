// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace lockstep::job {

/// "3.21.12", that of the library which reads jobs.
std::string protobuf_version();

}  // namespace lockstep::job
