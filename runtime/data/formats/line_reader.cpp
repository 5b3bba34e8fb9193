// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/formats/line_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "runtime/base/error.h"

namespace lockstep::data {

namespace {

constexpr std::size_t kLongestLine = 1 << 24;
constexpr std::size_t kPiece = 1 << 16;
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

}  // namespace

LineReader::LineReader(const std::string& path) : path_(path), reader_(path) {}

std::string LineReader::where() const { return fmt::format("{}:{}", path_, line_); }

void LineReader::refuse(const std::string& why, const std::string& advice) const {
  throw StorageError(where() + ": " + why, advice);
}

std::optional<std::string_view> LineReader::next() {
  ++line_;
  std::size_t looked_at = at_;
  std::size_t end = text_.find('\n', looked_at);
  while (end == std::string::npos && !ended_) {
    text_.erase(0, at_);
    at_ = 0;
    looked_at = text_.size();
    if (looked_at > kLongestLine) refuse(fmt::format("a line of more than {} bytes", kLongestLine));
    text_.resize(looked_at + kPiece);
    const std::size_t found = reader_.read_some({reinterpret_cast<std::uint8_t*>(text_.data()) + looked_at, kPiece});
    text_.resize(looked_at + found);
    ended_ = found == 0;
    end = text_.find('\n', looked_at);
  }
  if (end == std::string::npos) end = text_.size();
  if (ended_ && at_ == text_.size()) return std::nullopt;
  std::string_view line = std::string_view(text_).substr(at_, end - at_);
  at_ = std::min(end + 1, text_.size());
  if (line_ == 1 && line.starts_with(kByteOrderMark)) line.remove_prefix(kByteOrderMark.size());
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

std::optional<double> wide_number_in_text(std::string_view text) {
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  double value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = failure == std::errc() && end == text.data() + text.size();
  return whole && std::isfinite(static_cast<float>(value)) ? std::optional(value) : std::nullopt;
}

std::optional<float> number_in_text(std::string_view text) {
  const std::optional<double> number = wide_number_in_text(text);
  return number ? std::optional(static_cast<float>(*number)) : std::nullopt;
}

}  // namespace lockstep::data
