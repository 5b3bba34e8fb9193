// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/descriptor.h"
#include "runtime/base/error.h"

namespace lockstep {

/// A system call on a file failed. Carries the errno, so that a caller may try again what can pass.
class FileError : public StorageError {
 public:
  FileError(const std::string& what, std::string advice, int error)
      : StorageError(what, std::move(advice)), error_(error) {}
  int error() const noexcept { return error_; }
  /// Whether the same work may succeed a moment later: a full or failing disk, not a missing permission.
  bool transient() const noexcept;

 private:
  int error_;
};

// Everything below completes interrupted calls and short transfers, and throws FileError naming path, operation and
// errno text. Nothing is durable until the file and the directory that names it have been synced.

/// A new file, written from start to end. The destructor closes it without a sync.
class OutputFile {
 public:
  /// Creates the file; one that exists is an error.
  explicit OutputFile(std::string path);

  const std::string& path() const { return path_; }
  void write(std::span<const std::byte> bytes);
  /// Forces the content to the device and closes the file.
  void sync_and_close();

 private:
  std::string path_;
  Descriptor file_;
};

/// A file that grows at its end, as a log does. What a call has written stays, whatever becomes of the next one. Its
/// calls are not among the pending ones: nobody depends on them.
class AppendFile {
 public:
  /// Opens the file; makes it where it is missing.
  explicit AppendFile(std::string path);

  const std::string& path() const { return path_; }
  int descriptor() const { return file_.get(); }
  /// Writes a first part of `bytes`, and returns how many they were.
  std::size_t write(std::span<const std::byte> bytes);

 private:
  std::string path_;
  Descriptor file_;
};

/// An existing regular file, or a part of one.
class InputFile {
 public:
  explicit InputFile(std::string path);
  /// The `size` bytes from `begin` on, which lie within the file; offsets count from there.
  InputFile(std::string path, std::uint64_t begin, std::uint64_t size);

  const std::string& path() const { return path_; }
  std::uint64_t size() const { return size_; }
  /// Fills `bytes` from `offset` on. Throws StorageError when the file ends before.
  void read(std::uint64_t offset, std::span<std::byte> bytes) const;

 private:
  std::string path_;
  Descriptor file_;
  std::uint64_t begin_ = 0;
  std::uint64_t size_ = 0;
};

/// A whole file of at most `limit` bytes.
std::string read_file(const std::string& path, std::uint64_t limit);
std::string read_file(const InputFile& file, std::uint64_t limit);

/// Creates a directory and those above it that are missing, each synced into its parent; where that
/// fails for a moment, the directory is removed again. One that exists is fine.
void make_directories(const std::string& path);
/// Creates a directory; one that exists is an error.
void make_directory(const std::string& path);
/// Removes an empty directory. One that is not there is fine, so that a removal can be taken up again.
void remove_directory(const std::string& path);
/// Removes a file. One that is not there is fine.
void remove_file(const std::string& path);
/// Renames a directory over nothing or over an empty directory; false when `to` is a directory with content or no
/// directory.
bool rename_directory(const std::string& from, const std::string& to);
/// Renames a file or directory to a name that is free.
void rename_to_free_name(const std::string& from, const std::string& to);
/// Whether there is a symbolic link.
bool is_link(const std::string& path);
/// Makes the directory's entries durable.
void sync_directory(const std::string& path);

/// Names in a directory, sorted; none when it does not exist.
std::vector<std::string> list_directory(const std::string& path);

}  // namespace lockstep
