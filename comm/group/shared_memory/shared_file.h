// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "runtime/base/descriptor.h"

namespace lockstep::comm {

/// How the processes of a machine find memory that one of them has made. Plain bytes, which the ranks exchange.
struct MemoryName {
  enum class Kind : std::uint32_t {
    kNone,        ///< there is none
    kDescriptor,  ///< a memfd, which others open through /proc: it ends with its last user, whatever kills that
    kFile         ///< a file of /dev/shm, for where they cannot; removed once all have opened it, and where the maker
                  ///< was killed before that, by the next one
  } kind = Kind::kNone;
  std::int32_t descriptor = -1;
  std::int64_t process = 0;
  // The file behind the maker's descriptor: a process of another container may have the same number.
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  char file[48] = {};
};

/// Memory that this process has made for others to open, while it lives.
class SharedFile {
 public:
  SharedFile() = default;
  /// Makes a file of `bytes`; its kind is kNone where the system refuses.
  SharedFile(MemoryName::Kind kind, std::size_t bytes);
  SharedFile(const SharedFile&) = delete;
  SharedFile& operator=(const SharedFile&) = delete;
  ~SharedFile();

  const MemoryName& name() const { return name_; }

 private:
  MemoryName name_;
  Descriptor file_;  // name_.descriptor
};

/// The mapping, in this process, of a file that some process of this machine has made.
class Mapping {
 public:
  Mapping() = default;
  /// Empty where it cannot be had.
  Mapping(const MemoryName& name, std::size_t bytes);
  Mapping(Mapping&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  Mapping& operator=(Mapping&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~Mapping();

  std::byte* data() const { return data_; }
  explicit operator bool() const { return data_ != nullptr; }

 private:
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

/// Takes the pages of fresh shared memory from the system now. A lack of memory is a result here, false; on the first
/// access it would be a SIGBUS.
bool populate(std::byte* data, std::size_t bytes);

/// How many bytes memory of this kind can have now, as far as the system says.
std::int64_t free_bytes(MemoryName::Kind kind);

}  // namespace lockstep::comm
