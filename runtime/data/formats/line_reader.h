// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/data/formats/byte_reader.h"

namespace lockstep::data {

/// Reads a text, plain or gzipped, line by line. Lines end with LF or CR LF; a byte order mark at the start is passed
/// over. Memory is that of one line, which is at most 16 MiB.
class LineReader {
 public:
  explicit LineReader(const std::string& path);

  /// The next line, without its end; none where there is none. It lasts until the next call. Throws StorageError that
  /// names file and line.
  std::optional<std::string_view> next();
  /// Throws StorageError "FILE:LINE: WHY" for the line that came last.
  [[noreturn]] void refuse(const std::string& why, const std::string& advice = {}) const;
  /// "FILE:LINE" of the line that came last, counted from 1.
  std::string where() const;

 private:
  std::string path_;
  ByteReader reader_;
  std::string text_;  // lines that were read, and a part of one
  std::size_t at_ = 0;
  std::int64_t line_ = 0;
  bool ended_ = false;
};

/// The number that the whole text is, where a float can hold it: neither infinite nor NaN. A sign before it may be '+'.
std::optional<float> number_in_text(std::string_view text);
/// The same, with all digits that a double has.
std::optional<double> wide_number_in_text(std::string_view text);

}  // namespace lockstep::data
