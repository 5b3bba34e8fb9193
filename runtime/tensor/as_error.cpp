// SPDX-License-Identifier: Apache-2.0
#include "runtime/tensor/as_error.h"

#include <filesystem>
#include <new>
#include <stdexcept>
#include <string>
#include <system_error>

#include "runtime/tensor/memory_room.h"

namespace lockstep {

namespace {

bool is_of_memory(const std::exception& exception, const std::system_error* of_system) {
  return dynamic_cast<const std::bad_alloc*>(&exception) != nullptr ||
         dynamic_cast<const std::length_error*>(&exception) != nullptr ||
         (of_system != nullptr && of_system->code() == std::errc::not_enough_memory);
}

}  // namespace

Error as_error(const std::exception& exception) {
  if (const auto* error = dynamic_cast<const Error*>(&exception)) return *error;
  const auto* const of_system = dynamic_cast<const std::system_error*>(&exception);
  if (is_of_memory(exception, of_system)) {
    return MemoryError("cannot allocate memory: " + memory_facts(),
                       "Use a smaller data.global_batch or model, or fewer ranks on this machine.");
  }
  if (dynamic_cast<const std::filesystem::filesystem_error*>(&exception) != nullptr) {
    return StorageError(exception.what(), "Check the path, the space and the permissions there.");
  }
  // The system's error where it starts no more threads.
  if (of_system != nullptr && of_system->code() == std::errc::resource_unavailable_try_again) {
    return EnvironmentError(
        "this machine lacks threads: it starts no more of them for this user or this memory",
        "Raise ulimit -u and -v or the control group's pids.max, or use fewer ranks here or a lower "
        "OMP_NUM_THREADS.");
  }
  return EnvironmentError(std::string("unexpected: ") + exception.what(), "This is a defect of lockstep; report it.");
}

}  // namespace lockstep
