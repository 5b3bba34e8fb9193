// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/run_files.h"

#include <system_error>

#include "runtime/base/whole_file.h"
#include "runtime/checkpoint/retry.h"
#include "runtime/checkpoint/storage_calls.h"

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

}  // namespace lockstep::train
