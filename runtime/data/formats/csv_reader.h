// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/data/formats/byte_reader.h"

namespace lockstep::data {

/// Reads the cells of a table, plain or gzipped, line by line. They are written as RFC 4180 has it: separated by a
/// delimiter, and quoted where they hold that, a quote (doubled) or the end of a line. Lines end with LF or CR LF;
/// empty ones and a byte order mark at the start are passed over. Memory is that of one line.
class CsvReader {
 public:
  CsvReader(const std::string& path, char delimiter);
  /// Reads a text in memory, which messages call `title`.
  CsvReader(std::string text, const std::string& title, char delimiter);

  /// The cells of the next line; false where there is none. Throws StorageError that names file and line.
  bool next(std::vector<std::string>& cells);
  /// Where the cells that came last begin, counted from 1.
  std::int64_t line() const { return record_line_; }
  /// Throws StorageError "FILE:LINE: WHY" for the line that came last.
  [[noreturn]] void refuse(const std::string& why, const std::string& advice = {}) const;

 private:
  static constexpr int kEnd = -1;

  std::size_t read_some();
  int peek();
  int take();
  void skip_byte_order_mark();
  void read_cell(std::string& cell);
  void read_quoted(std::string& cell);
  void append(std::string& cell, int c);
  /// Passes the end of a line; false where none is here.
  bool take_end_of_line();

  std::string path_;
  std::optional<ByteReader> reader_;  // none: text_ is read
  std::string text_;
  std::size_t text_at_ = 0;
  char delimiter_;
  std::array<std::uint8_t, 1 << 16> buffer_{};
  std::size_t filled_ = 0;
  std::size_t at_ = 0;
  std::size_t record_bytes_ = 0;  // of the cells that came last
  std::int64_t line_ = 1;         // of the next character
  std::int64_t record_line_ = 1;
};

}  // namespace lockstep::data
