// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/formats/byte_level.h"

#include <unordered_map>

namespace lockstep::data {

namespace {

std::array<std::string, 256> make_byte_names() {
  const auto is_printable = [](unsigned byte) {
    return (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
  };
  std::array<std::string, 256> names;
  unsigned others = 0;
  for (unsigned byte = 0; byte < 256; ++byte) {
    const unsigned code = is_printable(byte) ? byte : 0x100 + others++;
    if (code < 0x80) {
      names[byte] = static_cast<char>(code);
    } else {
      names[byte] = {static_cast<char>(0xc0 | code >> 6), static_cast<char>(0x80 | (code & 0x3f))};
    }
  }
  return names;
}

std::unordered_map<std::string_view, char> make_bytes() {
  std::unordered_map<std::string_view, char> bytes;
  const std::array<std::string, 256>& names = byte_names();
  for (std::size_t byte = 0; byte < names.size(); ++byte) bytes.emplace(names[byte], static_cast<char>(byte));
  return bytes;
}

}  // namespace

const std::array<std::string, 256>& byte_names() {
  static const std::array<std::string, 256> names = make_byte_names();
  return names;
}

std::optional<std::string> bytes_of_names(std::string_view names) {
  static const std::unordered_map<std::string_view, char> bytes_by_name = make_bytes();
  std::string bytes;
  while (!names.empty()) {
    const std::size_t length = (static_cast<unsigned char>(names[0]) & 0xe0) == 0xc0 ? 2 : 1;
    const auto found = bytes_by_name.find(names.substr(0, length));
    if (found == bytes_by_name.end()) return std::nullopt;
    bytes += found->second;
    names.remove_prefix(length);
  }
  return bytes;
}

}  // namespace lockstep::data
