// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace lockstep::job {

/// "JSON" or "YAML" where a text that is no job's is plainly that; empty otherwise. No job is taken for either.
std::string_view foreign_format(std::string_view text);

}  // namespace lockstep::job
