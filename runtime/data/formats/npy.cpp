// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/formats/npy.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <optional>

#include "runtime/base/error.h"
#include "runtime/data/formats/npy_header.h"
#include "runtime/tensor/half.h"

namespace lockstep::data {

namespace {

static_assert(std::endian::native == std::endian::little);

/// Elements are converted so many bytes at a time.
constexpr std::size_t kNumbersAtOnce = 16384;

std::optional<NpyArray::Kind> kind_of(char letter) {
  switch (letter) {
    case 'b':
      return NpyArray::Kind::kBool;
    case 'u':
      return NpyArray::Kind::kUnsigned;
    case 'i':
      return NpyArray::Kind::kSigned;
    case 'f':
      return NpyArray::Kind::kFloat;
    default:
      return std::nullopt;
  }
}

bool is_known(NpyArray::Kind kind, std::size_t bytes) {
  switch (kind) {
    case NpyArray::Kind::kBool:
      return bytes == 1;
    case NpyArray::Kind::kUnsigned:
    case NpyArray::Kind::kSigned:
      return bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8;
    case NpyArray::Kind::kFloat:
      return bytes == 2 || bytes == 4 || bytes == 8;
  }
  return false;
}

void swap_bytes(std::span<std::byte> elements, std::size_t size) {
  for (std::size_t at = 0; at < elements.size(); at += size) std::ranges::reverse(elements.subspan(at, size));
}

template <class In, class Out>
void convert_as(std::span<const std::byte> elements, Out* out) {
  for (std::size_t at = 0; at < elements.size(); at += sizeof(In)) {
    In value;
    std::memcpy(&value, elements.data() + at, sizeof(In));
    *out++ = static_cast<Out>(value);
  }
}

/// Any byte but 0 is true.
template <class Out>
void convert_bools(std::span<const std::byte> elements, Out* out) {
  for (const std::byte value : elements) *out++ = value == std::byte{0} ? Out{0} : Out{1};
}

template <class Out>
void convert_elements(NpyArray::Kind kind, std::size_t size, std::span<const std::byte> elements, Out* out) {
  switch (kind) {
    case NpyArray::Kind::kBool:
      return convert_bools(elements, out);
    case NpyArray::Kind::kUnsigned:
      if (size == 1) return convert_as<std::uint8_t>(elements, out);
      if (size == 2) return convert_as<std::uint16_t>(elements, out);
      if (size == 4) return convert_as<std::uint32_t>(elements, out);
      return convert_as<std::uint64_t>(elements, out);
    case NpyArray::Kind::kSigned:
      if (size == 1) return convert_as<std::int8_t>(elements, out);
      if (size == 2) return convert_as<std::int16_t>(elements, out);
      if (size == 4) return convert_as<std::int32_t>(elements, out);
      return convert_as<std::int64_t>(elements, out);
    case NpyArray::Kind::kFloat:
      if (size == 2) return convert_as<Half>(elements, out);
      if (size == 4) return convert_as<float>(elements, out);
      return convert_as<double>(elements, out);
  }
}

}  // namespace

NpyArray::NpyArray(const std::string& path) : file_(path) {
  const NpyHeader header = read_npy_header(file_);
  dtype_ = header.descr;
  data_begin_ = header.bytes;
  extents_ = header.extents;
  const auto refuse = [&path](const std::string& why, const std::string& advice) {
    throw StorageError(path + ": " + why, advice);
  };
  // A byte order, a letter and the number of bytes.
  const std::string& type = dtype_;
  const bool is_text = type.size() == 3 && std::string_view("<>|=").find(type[0]) != std::string_view::npos;
  const std::optional<Kind> kind = is_text ? kind_of(type[1]) : std::nullopt;
  element_bytes_ = is_text ? static_cast<std::size_t>(type[2] - '0') : 0;
  if (!kind || !is_known(*kind, element_bytes_)) {
    refuse("expected elements of an integer type, f2, f4, f8 or bool, found '" + type + "'",
           "Convert the array, for example with array.astype('f4').");
  }
  kind_ = *kind;
  swapped_ = type[0] == '>' && element_bytes_ > 1;
  if (header.fortran_order && extents_.size() > 1) {
    refuse("the array lies in Fortran order", "Write it with numpy.save(path, numpy.ascontiguousarray(array)).");
  }
  std::uint64_t bytes = element_bytes_;
  std::int64_t row = 1;  // without the extents of 0, beside which any number would fit
  for (const std::int64_t extent : extents_) {
    bool overflows = __builtin_mul_overflow(bytes, static_cast<std::uint64_t>(extent), &bytes);
    overflows |= __builtin_mul_overflow(row, std::max<std::int64_t>(extent, 1), &row);
    if (overflows || __builtin_mul_overflow(numel_, extent, &numel_)) refuse("the extents in its header overflow", "");
  }
  if (file_.size() - data_begin_ == bytes) return;
  refuse(fmt::format("expected {} bytes of elements behind byte {}, found {}", bytes, data_begin_,
                     file_.size() - data_begin_),
         "The file is damaged or incomplete; write it again.");
}

template <class Out>
void NpyArray::convert(std::int64_t first, std::span<Out> out) const {
  std::array<std::byte, kNumbersAtOnce> buffer;
  std::uint64_t offset = data_begin_ + static_cast<std::uint64_t>(first) * element_bytes_;
  while (!out.empty()) {
    const std::size_t count = std::min(out.size(), kNumbersAtOnce / element_bytes_);
    const auto elements = std::span(buffer).first(count * element_bytes_);
    file_.read(offset, elements);
    if (swapped_) swap_bytes(elements, element_bytes_);
    convert_elements(kind_, element_bytes_, elements, out.data());
    offset += elements.size();
    out = out.subspan(count);
  }
}

void NpyArray::read(std::int64_t first, std::span<float> out) const {
  // Elements that need no conversion are read into their place.
  if (kind_ == Kind::kFloat && element_bytes_ == sizeof(float) && !swapped_) {
    return file_.read(data_begin_ + static_cast<std::uint64_t>(first) * sizeof(float), std::as_writable_bytes(out));
  }
  convert(first, out);
}

void NpyArray::read(std::int64_t first, std::span<std::int64_t> out) const {
  if (kind_ == Kind::kFloat) throw UsageError(path() + ": holds numbers of type " + dtype_ + ", expected integers");
  convert(first, out);
}

}  // namespace lockstep::data
