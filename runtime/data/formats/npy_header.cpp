// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/formats/npy_header.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <optional>
#include <string_view>

#include "runtime/base/error.h"

namespace lockstep::data {

namespace {

constexpr std::string_view kNpyMagic = "\x93NUMPY";
constexpr std::uint64_t kLongestText = 1 << 16;

/// Reads the header's text, a Python dictionary: {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }
class DictionaryReader {
 public:
  /// `offset` is where `text` begins in the file.
  DictionaryReader(const std::string& path, std::string_view text, std::uint64_t offset)
      : path_(path), text_(text), offset_(offset) {}

  NpyHeader read() {
    NpyHeader header;
    bool descr = false;
    bool order = false;
    bool shape = false;
    expect('{');
    while (!take('}')) {
      const std::string key = read_string();
      expect(':');
      if (key == "descr" && !descr) {
        header.descr = read_string();
        descr = true;
      } else if (key == "fortran_order" && !order) {
        header.fortran_order = read_bool();
        order = true;
      } else if (key == "shape" && !shape) {
        header.extents = read_extents();
        shape = true;
      } else {
        refuse("expected descr, fortran_order and shape once each, found '" + key + "'");
      }
      if (!take(',') && !(skip_spaces(), text_.substr(at_).starts_with('}'))) refuse("expected ',' or '}'");
    }
    skip_spaces();
    if (at_ != text_.size()) refuse("expected the end of the header");
    if (!descr || !order || !shape) refuse("expected descr, fortran_order and shape");
    return header;
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const {
    throw StorageError(fmt::format("{}: byte {} of the header: {}", path_, offset_ + at_, why),
                       "Write the file again with numpy.save.");
  }

  void skip_spaces() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  }

  bool take(char c) {
    skip_spaces();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  void expect(char c) {
    if (!take(c)) refuse(fmt::format("expected '{}'", c));
  }

  std::string read_string() {
    skip_spaces();
    const char quote = at_ < text_.size() ? text_[at_] : ' ';
    const std::size_t end = text_.find(quote, at_ + 1);
    if ((quote != '\'' && quote != '"') || end == std::string_view::npos) refuse("expected a text in quotes");
    const std::string_view content = text_.substr(at_ + 1, end - at_ - 1);
    if (content.size() > 16) refuse("expected a short text in quotes");
    at_ = end + 1;
    return std::string(content);
  }

  bool read_bool() {
    skip_spaces();
    for (const auto& [word, value] : {std::pair<std::string_view, bool>("True", true), {"False", false}}) {
      if (!text_.substr(at_).starts_with(word)) continue;
      at_ += word.size();
      return value;
    }
    refuse("expected True or False");
  }

  std::vector<std::int64_t> read_extents() {
    std::vector<std::int64_t> extents;
    expect('(');
    while (!take(')')) {
      skip_spaces();
      std::int64_t extent = -1;
      const auto [end, failure] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), extent);
      if (failure != std::errc() || extent < 0) refuse("expected an extent");
      at_ = static_cast<std::size_t>(end - text_.data());
      extents.push_back(extent);
      if (!take(',') && !(skip_spaces(), text_.substr(at_).starts_with(')'))) refuse("expected ',' or ')'");
    }
    return extents;
  }

  const std::string& path_;
  std::string_view text_;
  std::uint64_t offset_;
  std::size_t at_ = 0;
};

}  // namespace

NpyHeader read_npy_header(const StoredFile& file) {
  const auto read = [&file](std::uint64_t offset, std::size_t count) {
    std::string bytes(count, '\0');
    file.read(offset, std::as_writable_bytes(std::span(bytes)));
    return bytes;
  };
  // The magic text, two bytes of version, then the text's length, in two bytes before version 2 and four since.
  const std::string begin = read(0, kNpyMagic.size() + 2);
  if (!begin.starts_with(kNpyMagic)) {
    throw StorageError(file.path() + ": is no .npy file: its first bytes are not \\x93NUMPY",
                       "Write the file with numpy.save.");
  }
  const int version = static_cast<unsigned char>(begin[kNpyMagic.size()]);
  if (version < 1 || version > 3) {
    throw StorageError(fmt::format("{}: expected version 1 to 3 of .npy at byte {}, found {}", file.path(),
                                   kNpyMagic.size(), version));
  }
  const std::size_t length_bytes = version == 1 ? 2 : 4;
  const std::string length_text = read(begin.size(), length_bytes);
  std::uint64_t length = 0;
  for (std::size_t i = length_bytes; i-- > 0;) length = length << 8 | static_cast<unsigned char>(length_text[i]);
  if (length > kLongestText) {
    throw StorageError(fmt::format("{}: the header at byte {} claims {} bytes, expected at most {}", file.path(),
                                   begin.size(), length, kLongestText));
  }
  const std::uint64_t offset = begin.size() + length_bytes;
  const std::string text = read(offset, static_cast<std::size_t>(length));
  NpyHeader header = DictionaryReader(file.path(), text, offset).read();
  header.bytes = offset + length;
  return header;
}

}  // namespace lockstep::data
