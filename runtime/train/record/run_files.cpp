// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/record/run_files.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <system_error>

#include "runtime/base/files/durable_file.h"
#include "runtime/base/files/retry.h"
#include "runtime/base/files/storage_calls.h"
#include "runtime/base/files/whole_file.h"
#include "runtime/base/json_text.h"
#include "runtime/tensor/memory_room.h"

namespace lockstep::train {

namespace fs = std::filesystem;

void write_text(const fs::path& path, const std::string& text) {
  with_retries({}, [&] {
    const CallUnderWay call(StorageOperation::kWrite, path.string());
    const std::error_code failed = write_whole_file(path, text);
    if (!failed) return;
    throw FileError("cannot write " + path.string() + ": " + failed.message(),
                    "Check the space and the permissions there, or choose another --run-dir.", failed.value());
  });
}

std::string read_record(const fs::path& path) {
  // What is kept of it is copied, and the run needs memory beside it.
  constexpr std::size_t kAlways = std::size_t{64} << 20;
  const std::size_t room = least_of(memory_room()).value_or(std::numeric_limits<std::size_t>::max());
  const std::uint64_t limit = std::max(room / 4, kAlways);
  return with_retries({}, [&] { return read_file(path.string(), limit); });
}

nlohmann::ordered_json read_json(const fs::path& path) {
  constexpr std::uint64_t kMostBytes = 1 << 20;
  try {
    return parse_ordered_json(read_file(path.string(), kMostBytes));
  } catch (const StorageError&) {
    return {};
  }
}

}  // namespace lockstep::train
