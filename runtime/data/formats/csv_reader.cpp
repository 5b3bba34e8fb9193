// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/formats/csv_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "runtime/base/error.h"

namespace lockstep::data {

namespace {

constexpr std::size_t kLongestCell = 1 << 16;
constexpr std::size_t kMostCells = 1 << 18;
constexpr std::size_t kLongestRecord = 1 << 24;

}  // namespace

CsvReader::CsvReader(const std::string& path, char delimiter) : path_(path), reader_(path), delimiter_(delimiter) {
  skip_byte_order_mark();
}

CsvReader::CsvReader(std::string text, const std::string& title, char delimiter)
    : path_(title), text_(std::move(text)), delimiter_(delimiter) {
  skip_byte_order_mark();
}

std::size_t CsvReader::read_some() {
  if (reader_) return reader_->read_some(buffer_);
  const std::size_t count = std::min(buffer_.size(), text_.size() - text_at_);
  std::copy_n(text_.begin() + static_cast<std::ptrdiff_t>(text_at_), count, buffer_.begin());
  text_at_ += count;
  return count;
}

void CsvReader::refuse(const std::string& why, const std::string& advice) const {
  throw StorageError(fmt::format("{}:{}: {}", path_, record_line_, why), advice);
}

int CsvReader::peek() {
  if (at_ == filled_) {
    filled_ = read_some();
    at_ = 0;
    if (filled_ == 0) return kEnd;
  }
  return buffer_[at_];
}

int CsvReader::take() {
  const int c = peek();
  if (c == kEnd) return c;
  ++at_;
  if (c == '\n') ++line_;
  return c;
}

void CsvReader::skip_byte_order_mark() {
  if (peek() != 0xef || filled_ < 3 || buffer_[1] != 0xbb || buffer_[2] != 0xbf) return;
  at_ = 3;
}

bool CsvReader::take_end_of_line() {
  if (peek() == '\r') {
    take();
    if (peek() != '\n') refuse("a carriage return without a line feed behind it");
  }
  if (peek() != '\n') return false;
  take();
  return true;
}

void CsvReader::append(std::string& cell, int c) {
  if (++record_bytes_ > kLongestRecord) refuse(fmt::format("a line of more than {} bytes", kLongestRecord));
  if (cell.size() == kLongestCell) refuse(fmt::format("a cell of more than {} bytes", kLongestCell));
  cell += static_cast<char>(c);
}

void CsvReader::read_quoted(std::string& cell) {
  take();
  while (true) {
    const int c = take();
    if (c == kEnd) refuse("a quote that is never closed");
    if (c == '"') {
      if (peek() != '"') break;
      take();
    }
    append(cell, c);
  }
  const int behind = peek();
  if (behind != kEnd && behind != delimiter_ && behind != '\r' && behind != '\n') {
    refuse("text behind the closing quote of a cell");
  }
}

void CsvReader::read_cell(std::string& cell) {
  if (peek() == '"') return read_quoted(cell);
  for (int c = peek(); c != kEnd && c != delimiter_ && c != '\r' && c != '\n'; c = peek()) {
    if (c == '"') refuse("a quote in a cell that does not begin with one", "Quote the cell and double the quote.");
    append(cell, take());
  }
}

bool CsvReader::next(std::vector<std::string>& cells) {
  cells.clear();
  record_bytes_ = 0;
  record_line_ = line_;
  while (take_end_of_line()) record_line_ = line_;
  if (peek() == kEnd) return false;
  do {
    if (cells.size() == kMostCells) refuse(fmt::format("more than {} cells", kMostCells));
    read_cell(cells.emplace_back());
  } while (peek() == static_cast<unsigned char>(delimiter_) && take() != kEnd);
  take_end_of_line();
  return true;
}

}  // namespace lockstep::data
