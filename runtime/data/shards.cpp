// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/shards.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>
#include <unordered_set>

#include "runtime/base/error.h"
#include "runtime/base/option_checks.h"
#include "runtime/data/data_digest.h"
#include "runtime/data/formats/brace_expansion.h"
#include "runtime/data/formats/content_hash.h"
#include "runtime/data/formats/tar_index.h"
#include "runtime/data/passed_over.h"

namespace lockstep::data {

namespace {

/// Further files are opened for each sample: a process may have about a thousand open.
constexpr std::size_t kMostOpen = 256;

/// Digits and the spaces around them.
constexpr std::uint64_t kMostLabelBytes = 32;

[[noreturn]] void refuse_member(const StoredFile& file, std::uint64_t at, const std::string& what,
                                const std::string& advice) {
  throw StorageError(fmt::format("{} at byte {}: {}", file.path(), at, what), advice);
}

/// "n01/dog.7.jpg" is of the key "n01/dog" with the extension ".7.jpg".
struct Name {
  explicit Name(const std::string& member) {
    const std::size_t slash = member.rfind('/');
    const std::size_t base = slash == std::string::npos ? 0 : slash + 1;
    const std::size_t dot = std::min(member.find('.', base), member.size());
    key = member.substr(0, dot);
    extension = member.substr(dot);
  }

  std::string key;
  std::string extension;
};

std::int64_t label_of(std::string_view text, const StoredFile& file, const TarMember& member) {
  const auto is_space = [](char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; };
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  std::int64_t label = -1;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), label);
  if (failure == std::errc() && end == text.data() + text.size() && label >= 0) return label;
  refuse_member(file, member.header, fmt::format("\"{}\" holds no label, a whole number from 0 on", member.name),
                "Write the class's number as text.");
}

/// The members of one key.
struct Together {
  std::string key;
  std::optional<TarMember> image;
  std::optional<TarMember> label_member;
  std::int64_t label = 0;
};

}  // namespace

FieldProblems problems_of(const ShardsOptions& options) {
  FieldChecks checks;
  check_fields(options, checks);
  for (std::size_t i = 0; i < options.files.size(); ++i) {
    try {
      expand_braces(options.files[i]);
    } catch (const UsageError& error) {
      checks.error(fmt::format("files[{}]", i), error.what());
    }
  }
  check_image_size(options.size, options.resize, checks);
  return checks.problems();
}

std::vector<std::string> shard_paths(const ShardsOptions& options) {
  std::vector<std::string> paths;
  for (const std::string& pattern : options.files) std::ranges::move(expand_braces(pattern), std::back_inserter(paths));
  return paths;
}

ShardsDataset::ShardsDataset(const ShardsOptions& options) : crop_(crop_of(options)) {
  require_none(problems_of(options), "shards");
  paths_ = shard_paths(options);
  PassedOver passed;
  for (std::uint32_t i = 0; i < paths_.size(); ++i) {
    auto file = std::make_unique<const StoredFile>(paths_[i]);
    add_file(*file, i, passed);
    if (i < kMostOpen) open_.push_back(std::move(file));
  }
  remarks_ = passed.remarks();
  if (samples_.empty()) {
    throw StorageError(paths_.front() + ": holds no sample", "A sample is KEY.jpg, KEY.png or KEY.webp, and KEY.cls.");
  }
  const Place& highest = *std::ranges::max_element(samples_, {}, &Place::label);
  // The highest label that a file can hold has no next one.
  const bool counts = options.classes == 0 && highest.label >= kMostCountedClasses;
  classes_ = options.classes > 0 || counts ? options.classes : highest.label + 1;
  if (!counts && highest.label < classes_) return;
  throw StorageError(
      fmt::format("{}: label {} of sample {} {}", paths_[highest.file], highest.label, &highest - samples_.data(),
                  counts ? "is too high for a class" : fmt::format("is outside the {} classes", classes_)),
      "Check that the file belongs to this data set, or set the number of classes.");
}

void ShardsDataset::add_file(const StoredFile& file, std::uint32_t number, PassedOver& passed) {
  std::unordered_set<std::string> keys;
  Together open;
  const auto close = [&] {
    if (open.image.has_value() != open.label_member.has_value()) {
      const TarMember& alone = open.image ? *open.image : *open.label_member;
      refuse_member(file, alone.header,
                    fmt::format("the key \"{}\" has {}", open.key, open.image ? "no .cls" : "no image"),
                    "A sample is KEY.jpg, KEY.png or KEY.webp, and KEY.cls, one behind the other.");
    }
    if (!open.image) return;
    if (!keys.insert(open.key).second) {
      refuse_member(file, open.image->header, fmt::format("the key \"{}\" comes twice", open.key),
                    "Keys of a file differ, and the members of one stand together.");
    }
    samples_.push_back({open.image->offset, static_cast<std::uint32_t>(open.image->size), number, open.label});
  };
  const auto hold = [&file](std::optional<TarMember>& place, const TarMember& member, std::uint64_t most) {
    if (place) {
      refuse_member(file, member.header, fmt::format("\"{}\" is the second of its kind for its key", member.name),
                    "A key has one image and one .cls.");
    }
    if (member.size > most) {
      refuse_member(file, member.header,
                    fmt::format("\"{}\" has {} bytes, more than the {} that are taken", member.name, member.size, most),
                    "Write smaller members.");
    }
    place = member;
  };
  read_tar_index(file, [&](const TarMember& member, const auto& read) {
    const Name name(member.name);
    const bool image = is_image_extension(name.extension);
    if (!image && name.extension != ".cls") return passed.add_file(member.name);
    if (name.key != open.key) {
      close();
      open = {.key = name.key, .image = {}, .label_member = {}};
    }
    if (image) return hold(open.image, member, kMostImageBytes);
    hold(open.label_member, member, kMostLabelBytes);
    std::string text(member.size, '\0');
    read(member.offset, std::as_writable_bytes(std::span(text)));
    open.label = label_of(text, file, member);
  });
  close();
}

Description ShardsDataset::describe() const {
  Description description = data::describe(*this);
  for (const Place& place : samples_) description.labels.push_back(place.label);
  description.remarks = remarks_;
  return description;
}

TargetSummary ShardsDataset::target_summary() const {
  std::vector<std::int64_t> labels;
  for (const Place& place : samples_) labels.push_back(place.label);
  return {.common_class = most_common(labels)};
}

void ShardsDataset::read(const Place& place, std::uint64_t offset, std::span<std::byte> out) const {
  if (place.file < open_.size()) {
    open_[place.file]->read(place.offset + offset, out);
  } else {
    StoredFile(paths_[place.file]).read(place.offset + offset, out);
  }
}

void ShardsDataset::get(const SampleKey& key, const Sample& sample) const {
  const Place& place = samples_[static_cast<std::size_t>(key.index)];
  std::vector<std::byte> content(place.bytes);
  read(place, 0, content);
  write_image(content, crop_, key,
              fmt::format("{} at byte {} (sample {})", paths_[place.file], place.offset, key.index), sample.values);
  sample.labels[0] = place.label;
}

void ShardsDataset::add_to_digest(DataHashes& hashes) const {
  Parts images;
  for (const Place& place : samples_) {
    hashes.labels.update(std::as_bytes(std::span(&place.label, 1)));
    images.bytes.push_back(place.bytes);
  }
  images.read = [this](std::size_t sample, std::uint64_t offset, std::span<std::byte> out) {
    read(samples_[sample], offset, out);
  };
  add_parts(images, hashes.content);
}

void ShardsDataset::add_content(std::int64_t index, Hash128& hash) const {
  const Place& place = samples_[static_cast<std::size_t>(index)];
  const auto read_image = [&](std::size_t, std::uint64_t offset, std::span<std::byte> out) {
    read(place, offset, out);
  };
  add_sample_of_parts({{place.bytes}, read_image}, 2, hash);
}

std::int64_t count_shard_classes(const ShardsOptions& options) { return ShardsDataset(options).classes(); }

}  // namespace lockstep::data
