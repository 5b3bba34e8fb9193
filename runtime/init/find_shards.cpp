// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/base/files/stored_file.h"
#include "runtime/data/formats/brace_expansion.h"
#include "runtime/data/formats/tar_index.h"
#include "runtime/init/find_kinds.h"
#include "runtime/init/image_sides.h"

namespace lockstep::init {

namespace {

constexpr std::uint64_t kMostImageBytes = std::uint64_t{256} << 20;

/// A path around the last number in it: "train-", "007", ".tar".
struct Numbered {
  std::string_view before, digits, behind;

  explicit Numbered(std::string_view path) {
    const auto is_digit = [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; };
    std::size_t end = path.size();
    while (end > 0 && !is_digit(path[end - 1]) && path[end - 1] != '/') --end;
    std::size_t begin = end;
    while (begin > 0 && is_digit(path[begin - 1])) --begin;
    before = path.substr(0, begin);
    digits = path.substr(begin, end - begin);
    behind = path.substr(end);
  }

  /// None for no number, or for one of too many digits.
  std::optional<std::uint64_t> number() const {
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    return error == std::errc() ? std::optional(value) : std::nullopt;
  }
  bool is_followed_by(const Numbered& next) const {
    const auto mine = number(), its = next.number();
    return mine && its && *its == *mine + 1 && digits.size() == next.digits.size() && before == next.before &&
           behind == next.behind;
  }
};

/// Sorted paths, with a pattern for those that count on.
std::vector<std::string> as_patterns(const std::vector<std::string>& paths) {
  std::vector<std::string> patterns;
  for (std::size_t first = 0; first < paths.size();) {
    std::size_t last = first;
    while (last + 1 < paths.size() && Numbered(paths[last]).is_followed_by(Numbered(paths[last + 1]))) ++last;
    const Numbered from(paths[first]), to(paths[last]);
    const std::string before = data::literal_pattern(std::string(from.before));
    const std::string behind = data::literal_pattern(std::string(from.behind));
    patterns.push_back(last == first ? data::literal_pattern(paths[first])
                                     : fmt::format("{}{{{}..{}}}{}", before, from.digits, to.digits, behind));
    first = last + 1;
  }
  return patterns;
}

/// Looks at the first images of a file.
LookedAt look_into(const std::string& path) {
  struct Enough {};
  LookedAt found;
  const StoredFile file(path);
  try {
    data::read_tar_index(file, [&](const data::TarMember& member, const auto& read) {
      if (found.sides.size() + found.errors.size() == kSidesLookedAt) throw Enough();
      if (!is_image(member.name) || member.size > kMostImageBytes) return;
      std::vector<std::byte> bytes(member.size);
      read(member.offset, bytes);
      found.add(bytes, path + ": " + member.name);
    });
  } catch (const Enough&) {
  }
  return found;
}

}  // namespace

FoundData find_shards(const Split& files) {
  const LookedAt images = look_into(files.train[0]);
  require_readable(images);
  if (images.sides.empty()) {
    throw UsageError(
        files.train[0] + " holds no images",
        "Of tar files, those are taken that hold KEY.jpg, KEY.png or KEY.webp and KEY.cls, as WebDataset writes them.");
  }
  const std::int64_t side = images.median_side();
  data::ShardsOptions options{.files = as_patterns(files.train)};
  take_whole_if_small(side, options);
  FoundData found{"images in tar files"};
  found.notes.push_back(note_of_side(side));
  turn_upright(images, options, found.notes);
  found.options.train = options;
  if (!files.eval.empty()) {
    options.files = as_patterns(files.eval);
    found.options.eval = options;
  }
  return found;
}

}  // namespace lockstep::init
