// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep {

/// CRC-32 (reflected polynomial 0xedb88320), as zip archives have it.
inline std::uint32_t zip_checksum(std::string_view bytes) {
  std::uint32_t crc = ~0u;
  for (const char byte : bytes) {
    crc ^= static_cast<unsigned char>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
  }
  return ~crc;
}

/// A zip archive of these files, by path and content, as torch.save writes one: nothing is compressed.
inline std::string zip_archive(const std::vector<std::pair<std::string, std::string>>& files) {
  const auto number = [](std::uint64_t value, int bytes) {
    std::string text;
    for (int at = 0; at < bytes; ++at) text += static_cast<char>(value >> 8 * at & 0xff);
    return text;
  };
  std::string archive, directory;
  for (const auto& [path, content] : files) {
    // Version, flags, method, time and date; checksum, both sizes; lengths of the name and of what is beside it.
    const std::string facts = number(20, 2) + std::string(8, '\0') + number(zip_checksum(content), 4) +
                              number(content.size(), 4) + number(content.size(), 4) + number(path.size(), 2) +
                              number(0, 2);
    directory += "PK\1\2" + number(20, 2) + facts + std::string(10, '\0') + number(archive.size(), 4) + path;
    archive += "PK\3\4" + facts + path + content;
  }
  const std::string end = "PK\5\6" + std::string(4, '\0') + number(files.size(), 2) + number(files.size(), 2) +
                          number(directory.size(), 4) + number(archive.size(), 4) + number(0, 2);
  return archive + directory + end;
}

}  // namespace lockstep
