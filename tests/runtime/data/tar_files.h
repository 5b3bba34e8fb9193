// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "tests/runtime/data/sample_files.h"

// Writes small tar files for tests.

namespace lockstep::data {

struct TarEntry {
  std::string name;
  std::string content;
  char type = '0';
};

inline void append_padded(Bytes& tar, const std::string& content) {
  tar.insert(tar.end(), content.begin(), content.end());
  tar.resize((tar.size() + 511) / 512 * 512);
}

/// A header of the ustar format.
inline std::string tar_header(const TarEntry& entry) {
  std::string header(512, '\0');
  header.replace(0, entry.name.size(), entry.name);
  const auto put = [&header](std::size_t at, const char* format, unsigned long value) {
    char digits[16];
    header.replace(at, static_cast<std::size_t>(std::snprintf(digits, sizeof digits, format, value)), digits);
  };
  put(100, "%07lo", 0644);
  put(124, "%011lo", entry.content.size());
  header[156] = entry.type;
  header.replace(257, 8, "ustar\00000", 8);
  header.replace(148, 8, 8, ' ');
  unsigned long sum = 0;
  for (const char c : header) sum += static_cast<unsigned char>(c);
  put(148, "%06lo", sum);
  header[154] = '\0';
  return header;
}

inline void append_entry(Bytes& tar, const TarEntry& entry) {
  append_padded(tar, tar_header(entry));
  append_padded(tar, entry.content);
}

/// With the two empty blocks at its end.
inline Bytes tar_bytes(const std::vector<TarEntry>& entries) {
  Bytes tar;
  for (const TarEntry& entry : entries) append_entry(tar, entry);
  tar.resize(tar.size() + 1024);
  return tar;
}

inline std::string text_of(const Bytes& bytes) { return {bytes.begin(), bytes.end()}; }

}  // namespace lockstep::data
