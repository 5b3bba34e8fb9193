// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/formats/byte_reader.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <new>
#include <system_error>

#include "runtime/base/error.h"

namespace lockstep::data {

namespace {

constexpr std::uint64_t kReadAtOnce = std::uint64_t{1} << 20;

gzFile gz(void* file) { return static_cast<gzFile>(file); }

}  // namespace

void ByteReader::Close::operator()(void* file) const { gzclose(gz(file)); }

ByteReader::ByteReader(std::string path) : path_(std::move(path)) {
  errno = 0;
  file_.reset(gzopen(path_.c_str(), "rbe"));
  if (!file_) {
    if (errno == 0 || errno == ENOMEM) throw std::bad_alloc();
    throw StorageError("cannot open " + path_ + ": " + std::generic_category().message(errno));
  }
  gzbuffer(gz(file_.get()), 1u << 17);
}

bool ByteReader::back_after_interruption() {
  gzclearerr(gz(file_.get()));
  // zlib may have dropped bytes that it had read before the signal: from the start.
  return gzrewind(gz(file_.get())) == 0 &&
         gzseek(gz(file_.get()), static_cast<z_off_t>(position_), SEEK_SET) == static_cast<z_off_t>(position_);
}

std::size_t ByteReader::read_some(std::span<std::uint8_t> out) {
  int count = 0;
  int code = Z_OK;
  int error = 0;
  const char* message = nullptr;
  do {
    errno = 0;
    count = gzread(gz(file_.get()), out.data(), static_cast<unsigned>(out.size()));
    error = errno;
    message = gzerror(gz(file_.get()), &code);
  } while (code == Z_ERRNO && error == EINTR && back_after_interruption());
  if (code == Z_MEM_ERROR) throw std::bad_alloc();
  if (code == Z_ERRNO) {
    throw StorageError(
        fmt::format("cannot read {} after {} bytes: {}", path_, position_, std::generic_category().message(error)),
        error == EIO ? "The device reports a failure: see the system's log." : "");
  }
  // A stream that is cut off is no error to gzread before its bytes are used up.
  if (count < 0 || (code != Z_OK && code != Z_STREAM_END)) {
    throw StorageError(fmt::format("cannot read {} after {} bytes: {}", path_, position_, message),
                       "The file is damaged or incomplete; fetch it again.");
  }
  position_ += static_cast<std::uint64_t>(count);
  return static_cast<std::size_t>(count);
}

template <class Take>
void ByteReader::read_pieces(std::uint64_t count, Take&& take) {
  const std::uint64_t start = position_;
  for (std::uint64_t had = 0; had < count;) {
    const auto size = static_cast<std::size_t>(std::min(count - had, kReadAtOnce));
    if (read_some(take(size)) < size) {
      const std::string end = count > UINT64_MAX - start ? "far more" : std::to_string(start + count);
      throw StorageError(fmt::format("{} is too short: expected {} bytes, found {}", path_, end, position_),
                         "The file is damaged or incomplete; fetch it again.");
    }
    had += size;
  }
}

std::vector<std::uint8_t> ByteReader::read(std::uint64_t count) {
  std::vector<std::uint8_t> bytes;
  read_pieces(count, [&bytes, count](std::size_t size) {
    if (bytes.size() + size > bytes.capacity()) {
      bytes.reserve(static_cast<std::size_t>(std::min<std::uint64_t>(count, 2 * (bytes.size() + size))));
    }
    bytes.resize(bytes.size() + size);
    return std::span(bytes).last(size);
  });
  return bytes;
}

void ByteReader::skip(std::uint64_t count) {
  std::vector<std::uint8_t> dropped;
  read_pieces(count, [&dropped](std::size_t size) {
    dropped.resize(size);
    return std::span(dropped);
  });
}

bool ByteReader::has_size_for(std::uint64_t content) const {
  std::error_code unknown;
  const std::uintmax_t size = std::filesystem::file_size(path_, unknown);
  if (unknown) return false;
  if (gzdirect(gz(file_.get())) == 1) return size == content;
  // Packed: the last four bytes are the length modulo 2^32, the lowest first (RFC 1952).
  std::array<unsigned char, 4> last{};
  std::ifstream file(path_, std::ios::binary);
  file.seekg(-4, std::ios::end);
  if (!file.read(reinterpret_cast<char*>(last.data()), last.size())) return false;
  const std::uint32_t length = std::uint32_t{last[3]} << 24 | std::uint32_t{last[2]} << 16 |
                               std::uint32_t{last[1]} << 8 | std::uint32_t{last[0]};
  return length == static_cast<std::uint32_t>(content);
}

void ByteReader::expect_rest(std::uint64_t count) {
  if (count <= UINT64_MAX - position_ && has_size_for(position_ + count)) return;
  skip(count);
  expect_end();
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
