// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/record/tf_record.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

namespace lockstep {

namespace {

constexpr std::size_t kLength = 8;
constexpr std::size_t kChecksum = 4;
/// Those that runs write have some KB; protobuf reads none of 2 GiB.
constexpr std::uint64_t kLongestPayload = std::uint64_t{64} << 20;

/// CRC-32C (Castagnoli, reflected polynomial 0x82f63b78), which TFRecord uses.
std::uint32_t crc32c(std::string_view bytes) {
  static constexpr auto kTable = [] {
    std::array<std::uint32_t, 256> table{};
    for (std::uint32_t byte = 0; byte < 256; ++byte) {
      std::uint32_t crc = byte;
      for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
      table[byte] = crc;
    }
    return table;
  }();
  std::uint32_t crc = 0xffffffffu;
  for (const char byte : bytes) crc = crc >> 8 ^ kTable[(crc ^ static_cast<unsigned char>(byte)) & 0xff];
  return ~crc;
}

std::string little_endian(std::uint64_t value, std::size_t bytes) {
  std::string text;
  for (std::size_t at = 0; at < bytes; ++at) text += static_cast<char>(value >> 8 * at & 0xff);
  return text;
}

std::uint64_t number_in(std::string_view little_endian_bytes) {
  std::uint64_t value = 0;
  for (std::size_t at = little_endian_bytes.size(); at-- > 0;) {
    value = value << 8 | static_cast<unsigned char>(little_endian_bytes[at]);
  }
  return value;
}

/// TFRecord masks its checksums, because the checksum of data that embed their own checksum is weak.
std::string masked_crc(std::string_view bytes) {
  return little_endian(std::rotr(crc32c(bytes), 15) + 0xa282ead8u, kChecksum);
}

}  // namespace

std::string tf_record(std::string_view payload) {
  const std::string length = little_endian(payload.size(), kLength);
  std::string record = length + masked_crc(length);
  record += payload;
  return record + masked_crc(payload);
}

std::vector<std::string_view> tf_records_in(std::string_view content) {
  std::vector<std::string_view> payloads;
  while (content.size() >= kLength + 2 * kChecksum) {
    const std::string_view length = content.substr(0, kLength);
    const std::uint64_t bytes = number_in(length);
    if (content.substr(kLength, kChecksum) != masked_crc(length)) break;
    content.remove_prefix(kLength + kChecksum);
    if (content.size() < kChecksum || bytes > std::min(content.size() - kChecksum, kLongestPayload)) break;
    const std::string_view payload = content.substr(0, bytes);
    if (content.substr(bytes, kChecksum) != masked_crc(payload)) break;
    payloads.push_back(payload);
    content.remove_prefix(bytes + kChecksum);
  }
  return payloads;
}

}  // namespace lockstep
