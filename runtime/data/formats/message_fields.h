// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace lockstep::data {

/// Walks over the fields of a message in protobuf's wire format (protobuf.dev/programming-guides/encoding), for formats
/// of others that are written in it.
class MessageFields {
 public:
  explicit MessageFields(std::string_view bytes) : rest_(bytes) {}

  struct Field {
    std::uint64_t number = 0;
    std::uint64_t value = 0;      ///< of a varint, or of 4 or 8 bytes; 0 for a field of bytes
    std::string_view bytes = {};  ///< of a string, bytes or message
    bool is_bytes = false;
    bool is_float = false;  ///< 4 bytes

    float as_float() const;  ///< of 4 bytes
    bool as_bool() const { return value != 0; }
  };
  /// The next field; none at the end, and where the bytes are no message: damaged() tells them apart.
  std::optional<Field> next();
  bool damaged() const { return damaged_; }

 private:
  std::optional<std::uint64_t> read_varint();
  std::optional<std::uint64_t> read_fixed(std::size_t bytes);
  std::nullopt_t fail();

  std::string_view rest_;
  bool damaged_ = false;
};

}  // namespace lockstep::data
