// SPDX-License-Identifier: Apache-2.0
#include "runtime/tensor/as_error.h"

#include <filesystem>
#include <new>
#include <stdexcept>
#include <string>

namespace lockstep {

Error as_error(const std::exception& exception) {
  if (const auto* error = dynamic_cast<const Error*>(&exception)) return *error;
  if (dynamic_cast<const std::bad_alloc*>(&exception) != nullptr ||
      dynamic_cast<const std::length_error*>(&exception) != nullptr) {
    return MemoryError("out of memory", "Use a smaller data.global_batch or model, or fewer ranks on this machine.");
  }
  if (dynamic_cast<const std::filesystem::filesystem_error*>(&exception) != nullptr) {
    return StorageError(exception.what(), "Check the path, the space and the permissions there.");
  }
  return EnvironmentError(std::string("unexpected: ") + exception.what(), "This is a defect of lockstep; report it.");
}

}  // namespace lockstep
