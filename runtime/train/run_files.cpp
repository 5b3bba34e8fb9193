// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/run_files.h"

#include <unistd.h>

#include <fstream>
#include <system_error>

#include "runtime/tensor/error.h"

namespace lockstep::train {

namespace fs = std::filesystem;

void write_text(const fs::path& path, const std::string& text) {
  std::error_code failed;
  fs::create_directories(path.parent_path(), failed);
  // Of this process alone: two ranks may have the same to tell.
  const fs::path temporary = path.string() + "." + std::to_string(getpid()) + ".tmp";
  std::ofstream out(temporary, std::ios::binary);
  out << text;
  out.close();
  if (out) fs::rename(temporary, path, failed);
  if (!out || failed) {
    throw StorageError("cannot write " + path.string() + (failed ? ": " + failed.message() : ""),
                       "Check the space and the permissions there, or choose another --run-dir.");
  }
}

}  // namespace lockstep::train
