// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/formats/message_fields.h"

#include <bit>

namespace lockstep::data {

namespace {

enum WireType : std::uint64_t { kVarint = 0, kEightBytes = 1, kLengthAndBytes = 2, kFourBytes = 5 };

}  // namespace

float MessageFields::Field::as_float() const { return std::bit_cast<float>(static_cast<std::uint32_t>(value)); }

std::nullopt_t MessageFields::fail() {
  damaged_ = true;
  rest_ = {};
  return std::nullopt;
}

std::optional<std::uint64_t> MessageFields::read_varint() {
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(rest_[0]);
    rest_.remove_prefix(1);
    value |= std::uint64_t{byte & 0x7fU} << shift;
    if (byte < 0x80) return value;
  }
  return fail();
}

std::optional<std::uint64_t> MessageFields::read_fixed(std::size_t bytes) {
  if (rest_.size() < bytes) return fail();
  std::uint64_t value = 0;
  for (std::size_t i = bytes; i-- > 0;) value = value << 8 | static_cast<unsigned char>(rest_[i]);
  rest_.remove_prefix(bytes);
  return value;
}

std::optional<MessageFields::Field> MessageFields::next() {
  if (rest_.empty()) return std::nullopt;
  const std::optional<std::uint64_t> key = read_varint();
  if (!key) return std::nullopt;
  Field field{.number = *key >> 3};
  std::optional<std::uint64_t> value;
  switch (*key & 7) {
    case kVarint:
      value = read_varint();
      break;
    case kEightBytes:
      value = read_fixed(8);
      break;
    case kFourBytes:
      value = read_fixed(4);
      field.is_float = true;
      break;
    case kLengthAndBytes:
      value = read_varint();
      if (!value) return std::nullopt;
      if (*value > rest_.size()) return fail();
      field.bytes = rest_.substr(0, *value);
      field.is_bytes = true;
      rest_.remove_prefix(*value);
      value = 0;
      break;
    default:
      return fail();
  }
  if (!value) return std::nullopt;
  field.value = *value;
  return field;
}

}  // namespace lockstep::data
