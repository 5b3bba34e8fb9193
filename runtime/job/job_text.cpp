// SPDX-License-Identifier: Apache-2.0
#include "runtime/job/job_text.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <system_error>
#include <thread>

#include "runtime/base/descriptor.h"
#include "runtime/base/error.h"

namespace lockstep::job {

namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kWriterComes = std::chrono::seconds(1);
constexpr auto kLook = std::chrono::milliseconds(10);
constexpr int kWriterWritesMs = 60'000;

}  // namespace

std::string read_job_text(const std::filesystem::path& file, std::size_t limit) {
  std::error_code unreachable;  // reading says why
  if (std::filesystem::is_directory(file, unreachable)) throw StorageError("it is a directory");
  // Opening a pipe would wait for its writer.
  const lockstep::Descriptor descriptor(open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!descriptor) throw StorageError(std::generic_category().message(errno));
  const bool is_pipe = std::filesystem::is_fifo(file, unreachable);
  const auto given_up = Clock::now() + kWriterComes;
  std::string text(limit, '\0');
  std::size_t size = 0;
  while (size < limit) {
    const ssize_t count = read(descriptor.get(), text.data() + size, limit - size);
    if (count > 0) {
      size += static_cast<std::size_t>(count);
    } else if (count == 0) {
      if (!is_pipe || size > 0) break;
      if (Clock::now() > given_up) throw StorageError("it is a pipe into which nobody writes");
      std::this_thread::sleep_for(kLook);
    } else if (errno == EAGAIN) {
      pollfd writer{descriptor.get(), POLLIN, 0};
      if (poll(&writer, 1, kWriterWritesMs) == 0) throw StorageError("nothing has come from it for a minute");
    } else if (errno != EINTR) {
      throw StorageError(std::generic_category().message(errno));
    }
  }
  text.resize(size);
  return text;
}

}  // namespace lockstep::job
