// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/data/shards.h"
#include "tests/fuzz/images.h"
#include "tests/fuzz/target.h"

namespace lockstep::fuzz {

namespace {

/// An image and its label, behind pax records.
std::vector<std::string> shards_seeds() {
  const auto member = [](const std::string& name, const std::string& content, char type) {
    std::string header(512, '\0');
    header.replace(0, name.size(), name);
    std::string size(11, '0');
    for (std::size_t rest = content.size(), at = size.size(); rest > 0; rest /= 8)
      size[--at] += static_cast<char>(rest % 8);
    header.replace(124, size.size(), size);
    header[156] = type;
    header.replace(257, 5, "ustar");
    header.replace(148, 8, 8, ' ');
    unsigned sum = 0;
    for (const char c : header) sum += static_cast<unsigned char>(c);
    for (std::size_t at = 154; at > 148; sum /= 8) header[--at] = static_cast<char>('0' + sum % 8);
    header[154] = '\0';
    std::string whole = header + content;
    whole.resize((whole.size() + 511) / 512 * 512);
    return whole;
  };
  return {member("x", "14 path=a.jpg\n", 'x') + member("b.jpg", small_images()[0], '0') + member("a.cls", "3", '0') +
          std::string(1024, '\0')};
}

/// A tar file whose headers' checksums fit.
std::string with_tar_checksums(std::string_view bytes) {
  std::string text(bytes);
  for (std::size_t at = 0; at + 512 <= text.size(); at += 512) {
    if (text.compare(at + 257, 5, "ustar") != 0) continue;
    text.replace(at + 148, 8, 8, ' ');
    unsigned sum = 0;
    for (std::size_t i = at; i < at + 512; ++i) sum += static_cast<unsigned char>(text[i]);
    for (std::size_t digit = at + 154; digit > at + 148; sum /= 8) text[--digit] = static_cast<char>('0' + sum % 8);
    text[at + 154] = '\0';
  }
  return text;
}

/// Both as they come and with checksums that fit, since without one nothing behind a header's is reached. The last
/// sample is drawn, too.
void fuzz_shards(std::string_view bytes) {
  const std::string mended = with_tar_checksums(bytes);
  for (const std::string_view file : {bytes, std::string_view(mended)}) {
    with_file(file, [](const std::string& path) {
      const data::ShardsDataset set({.files = {path}, .size = 8, .max_pixels = 1 << 16});
      std::vector<float> values(8 * 8 * 3);
      std::int64_t label = 0;
      set.get({.index = set.size() - 1}, {.values = values, .labels = std::span(&label, 1)});
    });
  }
}

bool has_checksums(const std::string& seed) { return with_tar_checksums(seed) == seed; }

}  // namespace

Target shards_target() {
  return {.parse = fuzz_shards, .seeds = shards_seeds(), .rounds = 10'000, .is_valid = has_checksums};
}

}  // namespace lockstep::fuzz
