// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "runtime/base/files/stored_file.h"

namespace lockstep::data {

/// A regular file within a tar file.
struct TarMember {
  std::string name;
  std::uint64_t header = 0;  ///< where its header begins, in bytes: names it in messages
  std::uint64_t offset = 0;  ///< of its content
  std::uint64_t size = 0;    ///< of its content, which lies within the file
};

/// Calls `take` with the regular files of a tar file in order, and with what reads the bytes at an offset cheaply where
/// they follow the member's header. POSIX's ustar and pax formats, and GNU's with long names. Headers are read and
/// nothing else, so that members can be read at random. Throws StorageError that names file and byte for a file that is
/// compressed, cut off or damaged, for a second archive behind the first, for links and devices, and for names that are
/// absolute or have a part "..".
using TakeMember =
    std::function<void(const TarMember&, const std::function<void(std::uint64_t, std::span<std::byte>)>& read)>;
void read_tar_index(const StoredFile& file, const TakeMember& take);

}  // namespace lockstep::data
