// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/run_files.h"

#include <system_error>

#include "runtime/base/whole_file.h"
#include "runtime/checkpoint/retry.h"

namespace lockstep::train {

namespace fs = std::filesystem;

void write_text(const fs::path& path, const std::string& text) {
  checkpoint::with_retries({}, [&] {
    const std::error_code failed = write_whole_file(path, text);
    if (!failed) return;
    throw checkpoint::FileError("cannot write " + path.string() + ": " + failed.message(),
                                "Check the space and the permissions there, or choose another --run-dir.",
                                failed.value());
  });
}

}  // namespace lockstep::train
