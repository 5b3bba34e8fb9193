// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

/// A record of a TFRecord file: length, its checksum, payload, its checksum.
std::string tf_record(std::string_view payload);

/// The payloads of a file's content, as views of it, up to the first record that is damaged, cut off, or
/// longer than 64 MiB.
std::vector<std::string_view> tf_records_in(std::string_view content);

}  // namespace lockstep
