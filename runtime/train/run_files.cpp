// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/run_files.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <system_error>

#include "runtime/base/json_text.h"
#include "runtime/base/whole_file.h"
#include "runtime/checkpoint/durable_file.h"
#include "runtime/checkpoint/retry.h"
#include "runtime/checkpoint/storage_calls.h"
#include "runtime/tensor/memory_room.h"

namespace lockstep::train {

namespace fs = std::filesystem;

void write_text(const fs::path& path, const std::string& text) {
  checkpoint::with_retries({}, [&] {
    const checkpoint::CallUnderWay call(checkpoint::StorageOperation::kWrite, path.string());
    const std::error_code failed = write_whole_file(path, text);
    if (!failed) return;
    throw checkpoint::FileError("cannot write " + path.string() + ": " + failed.message(),
                                "Check the space and the permissions there, or choose another --run-dir.",
                                failed.value());
  });
}

std::string read_record(const fs::path& path) {
  // What is kept of it is copied, and the run needs memory beside it.
  constexpr std::size_t kAlways = std::size_t{64} << 20;
  const std::size_t room = least_of(memory_room()).value_or(std::numeric_limits<std::size_t>::max());
  const std::uint64_t limit = std::max(room / 4, kAlways);
  return checkpoint::with_retries({}, [&] { return checkpoint::read_file(path.string(), limit); });
}

nlohmann::ordered_json read_json(const fs::path& path) {
  constexpr std::uint64_t kMostBytes = 1 << 20;
  try {
    return parse_ordered_json(checkpoint::read_file(path.string(), kMostBytes));
  } catch (const StorageError&) {
    return {};
  }
}

}  // namespace lockstep::train
