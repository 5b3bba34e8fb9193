// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace lockstep::data {

/// Reads a file from its start, unpacking it when it is gzipped. Errors are StorageErrors that name the file.
class ByteReader {
 public:
  explicit ByteReader(std::string path);

  /// The next `count` bytes. What a damaged header promises is not allocated before it has been read. A file that ends
  /// too early gives an error that names the bytes expected and found.
  std::vector<std::uint8_t> read(std::uint64_t count);
  /// Passes over the next `count` bytes, with read()'s errors.
  void skip(std::uint64_t count);
  /// Fills as much of `out` as the file has, and returns how much.
  std::size_t read_some(std::span<std::uint8_t> out);
  /// Big-endian.
  std::uint32_t read_uint32();
  /// Throws unless the file ends here.
  void expect_end();
  /// Throws, as read() and then expect_end() would, unless exactly `count` more bytes follow. They are passed over, and
  /// not even looked at where the file's size says that they are there; damage within them is not seen then.
  void expect_rest(std::uint64_t count);

 private:
  struct Close {
    void operator()(void* file) const;
  };
  /// Calls `take` with the next `count` bytes, a piece at a time.
  template <class Take>
  void read_pieces(std::uint64_t count, Take&& take);
  /// Whether reading goes on where it was; not in what cannot be read twice.
  bool back_after_interruption();
  /// Whether the size on disk is that of a file with so many bytes of content.
  bool has_size_for(std::uint64_t content) const;

  std::string path_;
  std::unique_ptr<void, Close> file_;
  std::uint64_t position_ = 0;  // in the unpacked content
};

}  // namespace lockstep::data
