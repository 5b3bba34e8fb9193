// SPDX-License-Identifier: Apache-2.0
#include "launcher/commands/new_file.h"

#include <system_error>

#include "runtime/base/error.h"
#include "runtime/base/files/whole_file.h"

namespace lockstep::launcher {

namespace fs = std::filesystem;

void require_new_file(const fs::path& file) {
  if (fs::exists(file)) throw UsageError(file.string() + " exists already", "Name another file with --out.");
  if (const fs::path folder = fs::absolute(file).parent_path(); !fs::is_directory(folder)) {
    throw UsageError("there is no folder " + folder.string());
  }
}

void write_new_file(const fs::path& file, std::string_view text) {
  if (const std::error_code failed = write_whole_file(file, text)) {
    throw StorageError("cannot write " + file.string() + ": " + failed.message());
  }
}

}  // namespace lockstep::launcher
