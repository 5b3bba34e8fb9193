// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/formats/npy_writer.h"

#include <fmt/format.h>

#include <bit>
#include <system_error>

#include "runtime/base/error.h"
#include "runtime/base/files/whole_file.h"

namespace lockstep::data {

namespace {

static_assert(std::endian::native == std::endian::little);

template <class T>
void write_array(const std::string& path, const char* descr, const Shape& shape, std::span<const T> values) {
  if (static_cast<std::size_t>(shape.numel()) != values.size()) {
    throw ShapeError(
        fmt::format("{}: expected {} numbers for {}, found {}", path, shape.numel(), shape.str(), values.size()));
  }
  std::string content = npy_header(descr, shape.extents());
  content.append(reinterpret_cast<const char*>(values.data()), values.size_bytes());
  if (const std::error_code error = write_whole_file(path, content)) {
    throw StorageError("cannot write " + path + ": " + error.message());
  }
}

}  // namespace

std::string npy_header(const std::string& descr, std::span<const std::int64_t> extents) {
  // Magic, version, and the length of what follows.
  constexpr std::size_t kPrefix = 10, kAlignment = 64;
  std::string shape;
  for (const std::int64_t extent : extents) shape += std::to_string(extent) + (extents.size() == 1 ? "," : ", ");
  if (extents.size() > 1) shape.resize(shape.size() - 2);
  std::string text = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", descr, shape);
  text.append(kAlignment - 1 - (kPrefix + text.size()) % kAlignment, ' ');
  text += '\n';
  std::string bytes = std::string("\x93NUMPY\x01\x00", 8);
  bytes += static_cast<char>(text.size() & 0xff);
  bytes += static_cast<char>(text.size() >> 8);
  return bytes + text;
}

void write_npy(const std::string& path, const Shape& shape, std::span<const float> values) {
  write_array(path, "<f4", shape, values);
}

void write_npy(const std::string& path, const Shape& shape, std::span<const std::uint8_t> values) {
  write_array(path, "|u1", shape, values);
}

void write_npy(const std::string& path, const Shape& shape, std::span<const std::int32_t> values) {
  write_array(path, "<i4", shape, values);
}

}  // namespace lockstep::data
