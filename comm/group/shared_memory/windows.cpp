// SPDX-License-Identifier: Apache-2.0
#include "comm/group/shared_memory/windows.h"

#include <sys/mman.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <span>

#include "comm/group/mpi/mpi_library.h"

namespace lockstep::comm {

namespace {

constexpr std::size_t kPage = 4096;

std::byte* align_up(void* data) {
  const auto address = reinterpret_cast<std::uintptr_t>(data);
  return static_cast<std::byte*>(data) + (kPage - address % kPage) % kPage;
}

/// Takes the pages of fresh shared memory from the system now, when a lack of them is an error code; later it would be
/// a SIGBUS in whoever touches them first.
bool populate(std::byte* data, std::size_t bytes) {
  if (bytes == 0 || madvise(data, bytes, MADV_POPULATE_WRITE) == 0) return true;
  if (errno != EINVAL) return false;
  std::memset(data, 0, bytes);  // a kernel before 5.14
  return true;
}

std::string mebibytes(std::int64_t bytes) {
  const std::string text = std::to_string(static_cast<double>(bytes) / (1024.0 * 1024.0));
  return text.substr(0, text.find('.') + 2) + " MiB";
}

std::int64_t least(std::int64_t value, MPI_Comm comm) {
  check_mpi(MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_INT64_T, MPI_MIN, comm), "MPI_Allreduce");
  return value;
}

}  // namespace

SharedWindows::SharedWindows(const Topology& topology) : topology_(topology) {
  // Open MPI's parameter for the directory of its windows, in the form in which a launcher passes it on.
  const char* directory = std::getenv("OMPI_MCA_osc_sm_backing_directory");
  directory_ = directory == nullptr ? "/dev/shm" : directory;
}

std::shared_ptr<SharedWindow> SharedWindows::allocate(std::size_t bytes) {
  const std::lock_guard mpi(mpi_mutex());
  free_released();
  if (!agree_on_room(bytes)) return nullptr;

  MPI_Info info = MPI_INFO_NULL;
  check_mpi(MPI_Info_create(&info), "MPI_Info_create");
  check_mpi(MPI_Info_set(info, "alloc_shared_noncontig", "true"), "MPI_Info_set");
  auto window = std::make_shared<SharedWindow>();
  window->id = next_id_++;
  window->bytes = bytes;
  void* own = nullptr;
  // A page more than asked for, because MPI puts data of its own in front.
  check_mpi(
      MPI_Win_allocate_shared(static_cast<MPI_Aint>(bytes + kPage), 1, info, topology_.node, &own, &window->handle),
      "MPI_Win_allocate_shared");
  check_mpi(MPI_Info_free(&info), "MPI_Info_free");
  for (int r = 0; r < topology_.local_size(); ++r) {
    MPI_Aint size = 0;
    int unit = 0;
    void* part = nullptr;
    check_mpi(MPI_Win_shared_query(window->handle, r, &size, &unit, &part), "MPI_Win_shared_query");
    window->parts.push_back(align_up(part));
  }
  std::byte* const part = window->parts[static_cast<std::size_t>(topology_.local_rank)];
  if (least(populate(part, bytes), topology_.world) == 0) {
    shortage_ = mebibytes(static_cast<std::int64_t>(bytes) * topology_.local_size()) + " needed, which " + directory_ +
                " promised but did not have";
    check_mpi(MPI_Win_free(&window->handle), "MPI_Win_free");
    return nullptr;
  }
  const std::lock_guard lock(mutex_);
  windows_.push_back(window);
  return window;
}

std::optional<SharedWindows::Place> SharedWindows::find(const void* data, std::size_t bytes) const {
  const std::lock_guard lock(mutex_);
  for (const std::shared_ptr<SharedWindow>& window : windows_) {
    const std::byte* const part = window->parts[static_cast<std::size_t>(topology_.local_rank)];
    const std::ptrdiff_t offset = static_cast<const std::byte*>(data) - part;
    if (offset >= 0 && static_cast<std::size_t>(offset) + bytes <= window->bytes) return Place{window->id, offset};
  }
  return std::nullopt;
}

std::vector<std::byte*> SharedWindows::parts(const Place& place) const {
  const std::lock_guard lock(mutex_);
  const auto window = std::ranges::find(windows_, place.window, &SharedWindow::id);
  std::vector<std::byte*> parts = (*window)->parts;
  for (std::byte*& part : parts) part += place.offset;
  return parts;
}

void SharedWindows::free_all() {
  const std::lock_guard mpi(mpi_mutex());
  const std::lock_guard lock(mutex_);
  for (const std::shared_ptr<SharedWindow>& window : windows_) {
    check_mpi(MPI_Win_free(&window->handle), "MPI_Win_free");
  }
  windows_.clear();
}

bool SharedWindows::agree_on_room(std::size_t bytes) {
  struct statvfs disk {};
  std::int64_t available = 0;
  if (statvfs(directory_.c_str(), &disk) == 0) {
    available = static_cast<std::int64_t>(disk.f_bavail) * static_cast<std::int64_t>(disk.f_frsize);
  }
  // A limit below the system's, to rehearse small machines: for all windows of a node together.
  if (const char* limit = std::getenv("LOCKSTEP_SHARED_MEMORY_BYTES")) {
    std::int64_t rest = std::atoll(limit);
    for (const std::shared_ptr<SharedWindow>& window : windows_) {
      rest -= static_cast<std::int64_t>(window->bytes) * topology_.local_size();
    }
    available = std::clamp<std::int64_t>(rest, 0, available);
  }
  available = least(available, topology_.world);
  // Compared by ranks, because the product may not be a number.
  const std::size_t share = static_cast<std::size_t>(available) / static_cast<std::size_t>(topology_.local_size());
  if (share >= 2 * kPage && bytes <= share - 2 * kPage) return true;
  shortage_ = mebibytes(static_cast<std::int64_t>(bytes)) + " needed by each of " +
              std::to_string(topology_.local_size()) + " ranks, " + mebibytes(available) + " free in " + directory_;
  return false;
}

void SharedWindows::free_released() {
  std::vector<std::uint8_t> released;
  for (const std::shared_ptr<SharedWindow>& window : windows_) released.push_back(window->released ? 1 : 0);
  check_mpi(MPI_Allreduce(MPI_IN_PLACE, released.data(), static_cast<int>(released.size()), MPI_UINT8_T, MPI_MIN,
                          topology_.world),
            "MPI_Allreduce");
  const std::lock_guard lock(mutex_);
  for (std::size_t i = released.size(); i-- > 0;) {
    if (released[i] == 0) continue;
    check_mpi(MPI_Win_free(&windows_[i]->handle), "MPI_Win_free");
    windows_.erase(windows_.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

}  // namespace lockstep::comm
