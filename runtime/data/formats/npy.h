// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/files/stored_file.h"

namespace lockstep::data {

/// An array in NumPy's .npy format, read in place (https://numpy.org/doc/stable/reference/generated/numpy.lib.format).
/// Elements are u1, u2, u4, u8, i1, i2, i4, i8, f2, f4, f8 or bool, of either byte order, the last index running
/// fastest. read() may be called from several threads at once.
class NpyArray {
 public:
  enum class Kind { kBool, kUnsigned, kSigned, kFloat };

  /// Throws StorageError that names the file and what is wrong with it.
  explicit NpyArray(const std::string& path);

  const std::string& path() const { return file_.path(); }
  /// NumPy's text of the element type: "<f4".
  const std::string& dtype() const { return dtype_; }
  Kind kind() const { return kind_; }
  /// All of the extents; none for a single number.
  const std::vector<std::int64_t>& extents() const { return extents_; }
  std::int64_t numel() const { return numel_; }

  /// Fills `out` with the elements from number `first` on. The second throws UsageError for an array of kFloat. u8
  /// above the range of int64 comes out negative there.
  void read(std::int64_t first, std::span<float> out) const;
  void read(std::int64_t first, std::span<std::int64_t> out) const;

  /// The bytes of the elements as they are stored.
  std::uint64_t bytes() const { return file_.size() - data_begin_; }
  /// Fills `out` with these, from byte `offset` of them on.
  void read_bytes(std::uint64_t offset, std::span<std::byte> out) const { file_.read(data_begin_ + offset, out); }

 private:
  template <class Out>
  void convert(std::int64_t first, std::span<Out> out) const;

  StoredFile file_;
  std::uint64_t data_begin_ = 0;
  std::string dtype_;
  Kind kind_ = Kind::kFloat;
  std::size_t element_bytes_ = 0;
  bool swapped_ = false;  // the other byte order than the processor's
  std::vector<std::int64_t> extents_;
  std::int64_t numel_ = 1;
};

}  // namespace lockstep::data
