// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/passed_over.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

namespace lockstep::data {

namespace {

constexpr std::array<std::string_view, 4> kRead{".jpg", ".jpeg", ".png", ".webp"};
constexpr std::array<std::string_view, 20> kNotRead{".gif", ".bmp", ".tif",  ".tiff", ".heic", ".heif", ".avif",
                                                    ".jp2", ".jxl", ".jfif", ".ppm",  ".pgm",  ".pnm",  ".tga",
                                                    ".ico", ".psd", ".svg",  ".dng",  ".cr2",  ".nef"};

std::string small_letters(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

std::string extension_of(const std::string& name) {
  return small_letters(std::filesystem::path(name).extension().string());
}

/// "1 image lies", "2 images lie"
std::string images(std::int64_t count, std::string_view one, std::string_view many) {
  return fmt::format("{} {}", count, count == 1 ? one : many);
}

}  // namespace

bool is_image_extension(std::string extension) {
  return std::ranges::find(kRead, small_letters(std::move(extension))) != kRead.end();
}

void PassedOver::Files::add(const std::string& name) {
  if (count++ == 0 || name < first) first = name;
}

void PassedOver::add_file(const std::string& name) {
  const std::string extension = extension_of(name);
  if (std::ranges::find(kNotRead, extension) != kNotRead.end()) formats_[extension].add(name);
}

void PassedOver::add_broken_link(const std::string& name) { broken_links_.add(name); }
void PassedOver::add_outside_classes(const std::string& name) { outside_.add(name); }

std::vector<std::string> PassedOver::remarks() const {
  std::vector<std::string> sentences;
  std::vector<std::string> counts;
  Files all;
  for (const auto& [extension, files] : formats_) {
    counts.push_back(fmt::format("{} {}", files.count, extension));
    if (all.count == 0 || files.first < all.first) all.first = files.first;
    all.count += files.count;
  }
  if (all.count > 0) {
    sentences.push_back(fmt::format(
        "{} left out: {} (the first: {}); JPEG, PNG and WebP are read",
        images(all.count, "image of a format that is not read is", "images of formats that are not read are"),
        fmt::join(counts, ", "), all.first));
  }
  if (broken_links_.count > 0) {
    sentences.push_back(fmt::format(
        "{} left out (the first: {})",
        images(broken_links_.count, "link that leads nowhere is", "links that lead nowhere are"), broken_links_.first));
  }
  if (outside_.count > 0) {
    sentences.push_back(fmt::format("{} left out (the first: {})",
                                    images(outside_.count, "image beside the classes' folders, in none of them, is",
                                           "images beside the classes' folders, in none of them, are"),
                                    outside_.first));
  }
  return sentences;
}

bool leads_nowhere(const std::filesystem::directory_entry& entry) { return entry.is_symlink() && !entry.exists(); }

PassedOver passed_over_below(const std::filesystem::path& folder) {
  PassedOver passed;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (!entry.is_directory()) passed.add_file(entry.path().lexically_relative(folder).string());
  }
  return passed;
}

}  // namespace lockstep::data
