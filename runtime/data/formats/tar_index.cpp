// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/formats/tar_index.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <optional>
#include <string_view>

#include "runtime/base/error.h"

namespace lockstep::data {

namespace {

constexpr std::uint64_t kTarBlock = 512;
/// The most bytes of a long name or of pax records.
constexpr std::uint64_t kMostExtension = 1 << 20;
/// The most zeros behind an archive's end.
constexpr std::uint64_t kMostPadding = 16 << 20;

/// The places of a header's fields: POSIX.1-1988, "ustar".
constexpr std::size_t kName = 0, kNameSize = 100;
constexpr std::size_t kSize = 124, kSizeSize = 12;
constexpr std::size_t kChecksum = 148, kChecksumSize = 8;
constexpr std::size_t kType = 156;
constexpr std::size_t kMagic = 257;
constexpr std::size_t kPrefix = 345, kPrefixSize = 155;

using Header = std::array<char, kTarBlock>;

[[noreturn]] void refuse(const StoredFile& file, std::uint64_t at, const std::string& what, const std::string& advice) {
  throw StorageError(fmt::format("{} at byte {}: {}", file.path(), at, what), advice);
}

[[noreturn]] void refuse_damaged(const StoredFile& file, std::uint64_t at, const std::string& what) {
  refuse(file, at, what, "The file is damaged or incomplete; fetch it again.");
}

/// Small reads one behind the other, of which one call to the system serves several.
class Window {
 public:
  explicit Window(const StoredFile& file) : file_(file) {}

  void read(std::uint64_t offset, std::span<std::byte> out) {
    if (out.size() > bytes_.size() || offset + out.size() > file_.size()) return file_.read(offset, out);
    if (offset < begin_ || offset + out.size() > begin_ + size_) {
      size_ = static_cast<std::size_t>(std::min<std::uint64_t>(bytes_.size(), file_.size() - offset));
      begin_ = offset;
      file_.read(offset, std::span(bytes_).first(size_));
    }
    std::memcpy(out.data(), bytes_.data() + (offset - begin_), out.size());
  }

 private:
  const StoredFile& file_;
  std::array<std::byte, 8 * kTarBlock> bytes_;
  std::uint64_t begin_ = 0;
  std::size_t size_ = 0;
};

std::string_view text_of(const Header& header, std::size_t at, std::size_t most) {
  const std::string_view field(header.data() + at, most);
  return field.substr(0, field.find('\0'));
}

/// Octal digits between spaces or zeros, or, where the first bit is set, a big-endian number; none for anything else.
std::optional<std::uint64_t> number_of(const Header& header, std::size_t at, std::size_t count) {
  std::uint64_t number = 0;
  if ((static_cast<unsigned char>(header[at]) & 0x80) != 0) {
    for (std::size_t i = 0; i < count; ++i) {
      const auto byte = static_cast<unsigned char>(i == 0 ? header[at] & 0x7f : header[at + i]);
      if (number >> 56 != 0) return std::nullopt;
      number = number << 8 | byte;
    }
    return number;
  }
  std::string_view text = text_of(header, at, count);
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  text = text.substr(0, text.find(' '));
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number, 8);
  if (text.empty() || failure != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

bool has_checksum(const Header& header) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < header.size(); ++i) {
    const bool blank = i >= kChecksum && i < kChecksum + kChecksumSize;
    sum += blank ? ' ' : static_cast<unsigned char>(header[i]);
  }
  return number_of(header, kChecksum, kChecksumSize) == sum;
}

void refuse_compressed(const StoredFile& file, const Header& header) {
  const auto begins = [&header](std::string_view magic) {
    return std::string_view(header.data(), magic.size()) == magic;
  };
  for (const auto& [magic, kind] : {std::pair<std::string_view, const char*>{"\x1f\x8b", "gzip"},
                                    {"BZh", "bzip2"},
                                    {"\xfd"
                                     "7zXZ",
                                     "xz"},
                                    {"\x28\xb5\x2f\xfd", "zstd"},
                                    {"PK\x03\x04", "zip"}}) {
    if (!begins(magic)) continue;
    refuse(file, 0, fmt::format("is compressed with {}", kind),
           "Samples are read at random, which needs plain tar files: unpack it.");
  }
}

void require_name(const StoredFile& file, std::uint64_t at, const std::string& name) {
  const std::string whole = "/" + name + "/";
  if (!name.empty() && name.front() != '/' && whole.find("/../") == std::string::npos &&
      name.find('\0') == std::string::npos) {
    return;
  }
  refuse(file, at, fmt::format("the name \"{}\" leaves the archive", name),
         "Members have relative names without \"..\": write the file again.");
}

/// The fields of the next member that an extended header sets.
struct Extension {
  std::optional<std::string> name;
  std::optional<std::uint64_t> size;
};

/// Records "LENGTH KEY=VALUE\n".
void read_pax(const StoredFile& file, std::uint64_t at, std::string_view text, Extension& extension) {
  while (!text.empty()) {
    std::size_t length = 0;
    const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), length);
    const auto digits = static_cast<std::size_t>(end - text.data());
    if (failure != std::errc() || length > text.size() || length < digits + 3 || text[digits] != ' ' ||
        text[length - 1] != '\n') {
      refuse_damaged(file, at, "a pax record is no \"LENGTH KEY=VALUE\"");
    }
    const std::string_view record = text.substr(digits + 1, length - digits - 2);
    const std::size_t equals = record.find('=');
    if (equals == std::string_view::npos) refuse_damaged(file, at, "a pax record has no '='");
    const std::string_view key = record.substr(0, equals);
    const std::string_view value = record.substr(equals + 1);
    if (key == "path") extension.name = value;
    if (key.starts_with("GNU.sparse")) refuse(file, at, "is a sparse file", "Write it without --sparse.");
    if (key == "size") {
      std::uint64_t size = 0;
      const auto [rest, wrong] = std::from_chars(value.data(), value.data() + value.size(), size);
      if (wrong != std::errc() || rest != value.data() + value.size())
        refuse_damaged(file, at, "its size is no number");
      extension.size = size;
    }
    text.remove_prefix(length);
  }
}

std::string name_of(const Header& header) {
  std::string name(text_of(header, kName, kNameSize));
  // GNU's magic has spaces, and other fields in the prefix's place.
  if (std::string_view(header.data() + kMagic, 6) != std::string_view("ustar\0", 6)) return name;
  const std::string_view prefix = text_of(header, kPrefix, kPrefixSize);
  return prefix.empty() ? name : fmt::format("{}/{}", prefix, name);
}

bool is_empty(std::span<const char> block) {
  return std::ranges::all_of(block, [](char c) { return c == '\0'; });
}

/// Zeros fill an archive up. Anything else behind its end would be passed over unseen: `cat a.tar b.tar` makes that.
/// More of them than any tape's blocks stand for members that are lost, as where a copy was cut off in a file of full
/// size.
void require_end(const StoredFile& file, const std::uint64_t end, Window& window) {
  std::uint64_t at = end;
  for (Header block{}; at < file.size() && at - end < kMostPadding; at += kTarBlock) {
    const std::span<char> found(block.data(), std::min<std::uint64_t>(kTarBlock, file.size() - at));
    window.read(at, std::as_writable_bytes(found));
    if (is_empty(found)) continue;
    if (found.size() < kTarBlock || !has_checksum(block)) refuse_damaged(file, at, "bytes follow the archive's end");
    refuse(file, at, "a second archive begins", "Name each archive as a file of its own, or join them with tar -A.");
  }
  if (at < file.size()) {
    refuse_damaged(file, end,
                   fmt::format("{} bytes follow the archive's end, and the first ones are zeros", file.size() - end));
  }
}

}  // namespace

void read_tar_index(const StoredFile& file, const TakeMember& take) {
  Window window(file);
  const auto read = [&window](std::uint64_t offset, std::span<std::byte> out) { window.read(offset, out); };
  Header header{};
  Extension extension;
  for (std::uint64_t at = 0;;) {
    if (file.size() - at < kTarBlock) {
      refuse_damaged(file, at,
                     fmt::format("expected a header or the end of the archive, found {} bytes", file.size() - at));
    }
    window.read(at, std::as_writable_bytes(std::span(header)));
    if (is_empty(header)) return require_end(file, at + kTarBlock, window);
    if (at == 0) refuse_compressed(file, header);
    if (!has_checksum(header)) refuse_damaged(file, at, "the header's checksum is wrong: this is no tar file");
    const char type = header[kType];
    const bool is_pax = type == 'x' || type == 'g';
    const bool extends = is_pax || type == 'L';
    const std::optional<std::uint64_t> stored = number_of(header, kSize, kSizeSize);
    if (!stored) refuse_damaged(file, at, "its size is no number");
    const std::uint64_t size = extends ? *stored : extension.size.value_or(*stored);
    const std::uint64_t offset = at + kTarBlock;
    if (size > file.size() - offset) {
      refuse_damaged(file, at,
                     fmt::format("a member of {} bytes, but the file ends {} bytes later", size, file.size() - offset));
    }
    if (extends) {
      if (size > kMostExtension) refuse_damaged(file, at, fmt::format("an extended header of {} bytes", size));
      std::string text(size, '\0');
      window.read(offset, std::as_writable_bytes(std::span(text)));
      if (type == 'x') read_pax(file, at, text, extension);
      if (type == 'L') extension.name = text.substr(0, text.find('\0'));
    } else {
      const std::string name = extension.name.value_or(name_of(header));
      require_name(file, at, name);
      if (type == '1' || type == '2' || type == 'K') {
        refuse(file, at, fmt::format("\"{}\" is a link", name), "Write the file that it points to in its place.");
      }
      const bool regular = type == '0' || type == '\0' || type == '7';
      if (!regular && type != '5') {
        refuse(file, at, fmt::format("\"{}\" is neither a file nor a folder, but of type '{}'", name, type),
               "Write regular files alone.");
      }
      if (regular) take({name, at, offset, size}, read);
      extension = {};
    }
    const std::uint64_t whole = (size + kTarBlock - 1) / kTarBlock * kTarBlock;
    at = offset + std::min(whole, file.size() - offset);
  }
}

}  // namespace lockstep::data
