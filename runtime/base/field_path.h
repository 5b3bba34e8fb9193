// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace lockstep {

// Paths of the fields of a message, as jobs and messages about them write them.

/// "train" and "steps" give "train.steps"; an empty parent gives the name.
std::string join_path(std::string_view parent, std::string_view name);
/// "model.convnet.block" and 1 give "model.convnet.block[1]".
std::string element_path(const std::string& path, int index);
/// "train.steps" gives "train", "fault[1]" gives "fault", a field of the root gives an empty text.
std::string parent_path(const std::string& path);

}  // namespace lockstep
