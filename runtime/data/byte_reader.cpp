// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/byte_reader.h"

#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "runtime/tensor/error.h"

namespace lockstep::data {

namespace {

constexpr std::uint64_t kPiece = std::uint64_t{1} << 20;

gzFile gz(void* file) { return static_cast<gzFile>(file); }

}  // namespace

void ByteReader::Close::operator()(void* file) const { gzclose(gz(file)); }

ByteReader::ByteReader(std::string path) : path_(std::move(path)) {
  errno = 0;
  file_.reset(gzopen(path_.c_str(), "rbe"));
  if (!file_) {
    if (errno == 0) errno = ENOMEM;
    throw StorageError("cannot open " + path_ + ": " + std::generic_category().message(errno));
  }
  gzbuffer(gz(file_.get()), 1u << 17);
}

std::size_t ByteReader::read_some(std::span<std::uint8_t> out) {
  errno = 0;
  const int count = gzread(gz(file_.get()), out.data(), static_cast<unsigned>(out.size()));
  int code = Z_OK;
  const char* message = gzerror(gz(file_.get()), &code);
  // A stream that is cut off is no error to gzread before its bytes are used up.
  if (count < 0 || (code != Z_OK && code != Z_STREAM_END)) {
    const std::string why = code == Z_ERRNO ? std::generic_category().message(errno) : message;
    throw StorageError("cannot read " + path_ + " after " + std::to_string(position_) + " bytes: " + why,
                       "The file is damaged or incomplete; fetch it again.");
  }
  position_ += static_cast<std::uint64_t>(count);
  return static_cast<std::size_t>(count);
}

std::vector<std::uint8_t> ByteReader::read(std::uint64_t count) {
  const std::uint64_t start = position_;
  std::vector<std::uint8_t> bytes;
  while (bytes.size() < count) {
    const std::size_t had = bytes.size();
    const auto piece = static_cast<std::size_t>(std::min(count - had, kPiece));
    bytes.resize(had + piece);
    const std::size_t got = read_some(std::span(bytes).subspan(had));
    if (got < piece) {
      const std::string end = count > UINT64_MAX - start ? "far more" : std::to_string(start + count);
      throw StorageError(path_ + " is too short: expected " + end + " bytes, found " + std::to_string(position_),
                         "The file is damaged or incomplete; fetch it again.");
    }
  }
  return bytes;
}

std::uint32_t ByteReader::read_uint32() {
  const std::vector<std::uint8_t> bytes = read(4);
  return std::uint32_t{bytes[0]} << 24 | std::uint32_t{bytes[1]} << 16 | std::uint32_t{bytes[2]} << 8 | bytes[3];
}

void ByteReader::expect_end() {
  const std::uint64_t expected = position_;
  std::uint8_t extra = 0;
  if (read_some(std::span(&extra, 1)) == 0) return;
  throw StorageError(path_ + " is too long: there are bytes behind the " + std::to_string(expected) +
                     " that its header promises");
}

}  // namespace lockstep::data
