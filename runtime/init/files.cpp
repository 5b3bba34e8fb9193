// SPDX-License-Identifier: Apache-2.0
#include "runtime/init/files.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <iterator>
#include <string_view>
#include <system_error>

#include "runtime/base/files/stored_file.h"
#include "runtime/data/formats/byte_reader.h"
#include "runtime/data/passed_over.h"
#include "runtime/init/find_kinds.h"

namespace lockstep::init {

namespace {

namespace fs = std::filesystem;

/// "t10k-images-idx3-ubyte.gz" as t10k, images, idx3, ubyte, gz
std::vector<std::string> words_of(const fs::path& path) {
  std::vector<std::string> words(1);
  for (const char c : lower(path.filename().string())) {
    if (std::isalnum(static_cast<unsigned char>(c))) {
      words.back() += c;
    } else if (!words.back().empty()) {
      words.emplace_back();
    }
  }
  return words;
}

/// Unpacked; fewer where the file has no more.
std::vector<std::uint8_t> first_bytes(const fs::path& path, std::size_t count) {
  std::vector<std::uint8_t> bytes(count);
  data::ByteReader reader(path.string());
  bytes.resize(reader.read_some(bytes));
  return bytes;
}

/// The header of unsigned bytes in the IDX format: 0, 0, 8 and the number of extents.
std::optional<Format> idx_format(const std::vector<std::uint8_t>& first) {
  if (first.size() < 4 || first[0] != 0 || first[1] != 0 || first[2] != 8) return std::nullopt;
  if (first[3] == 1) return Format::kIdxLabels;
  return first[3] == 3 || first[3] == 4 ? std::optional(Format::kIdxImages) : std::nullopt;
}

/// Whether the file holds records of label bytes and 32 x 32 x 3 pixels, the first ones with labels below `limits`.
bool holds_cifar(const StoredFile& file, const std::vector<int>& limits) {
  const std::uint64_t record = limits.size() + 3072;
  if (file.size() == 0 || file.size() % record != 0) return false;
  const std::uint64_t records = file.size() / record, most = 64;
  for (std::uint64_t i = 0; i < std::min(records, most); ++i) {
    std::array<std::byte, 2> labels{};
    const std::span read(labels.data(), limits.size());
    file.read(i * record, read);
    for (std::size_t k = 0; k < limits.size(); ++k) {
      if (std::to_integer<int>(labels[k]) >= limits[k]) return false;
    }
  }
  return true;
}

Format bin_format(const fs::path& path) {
  const StoredFile file(path.string());
  if (holds_cifar(file, {10})) return Format::kCifar10;
  return holds_cifar(file, {20, 100}) ? Format::kCifar100 : Format::kTokens;
}

std::optional<Format> format_of(const fs::path& path, bool named_by_user) {
  const std::string name = lower(path.filename().string());
  if (name.ends_with("vocab.json") || name == "encoder.json") return Format::kVocabulary;
  if (name.ends_with("merges.txt") || name == "vocab.bpe") return Format::kMerges;
  if (name.ends_with("tokenizer.json") || name.ends_with(".model")) return Format::kTokenizer;
  if (names_tokenizer(path)) return std::nullopt;
  const bool packed = lower(path.extension().string()) == ".gz";
  const std::string ending = lower((packed ? path.stem() : path).extension().string());
  if (has_known_ending(path)) return Format::kByEnding;
  if (ending == ".csv" || ending == ".tsv") return Format::kTable;
  if (!packed && ending == ".npy") return Format::kArray;
  if (!packed && ending == ".bin") return bin_format(path);
  if (!packed && ending == ".txt") return Format::kText;
  if (!packed && ending == ".tar") return Format::kTar;
  const std::vector<std::uint8_t> first = first_bytes(path, 4096);
  if (const auto idx = idx_format(first)) return idx;
  const bool text = !packed && !first.empty() && std::ranges::find(first, 0) == first.end();
  return named_by_user && text ? std::optional(Format::kText) : std::nullopt;
}

}  // namespace

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

int evaluation_rank(const fs::path& path) {
  constexpr std::array<std::string_view, 8> kNames{"val", "valid", "validation", "eval",
                                                   "dev", "test",  "testing",    "t10k"};
  for (const std::string& word : words_of(path)) {
    const auto found = std::ranges::find(kNames, word);
    if (found != kNames.end()) return static_cast<int>(found - kNames.begin()) + 1;
  }
  return 0;
}

bool has_word(const fs::path& path, std::span<const std::string_view> words) {
  return std::ranges::any_of(
      words_of(path), [words](const std::string& word) { return std::ranges::find(words, word) != words.end(); });
}

bool names_training(const fs::path& path) {
  constexpr std::array<std::string_view, 2> kNames{"train", "training"};
  return has_word(path, kNames);
}

bool names_tokenizer(const fs::path& path) {
  constexpr std::array<std::string_view, 7> kNames{
      "tokenizer.json",    "tokenizer_config.json", "special_tokens_map.json",
      "added_tokens.json", "tokenizer.model",       "vocab.txt",
      "config.json"};
  return std::ranges::find(kNames, lower(path.filename().string())) != kNames.end();
}

bool names_remarks(const fs::path& path) {
  const std::string first = words_of(path).front();
  return first == "readme" || first == "license" || first == "licence";
}

std::optional<FoundFile> look_at_file(const fs::path& path, bool named_by_user) {
  const auto format = format_of(path, named_by_user);
  if (!format) return std::nullopt;
  return FoundFile{path.string(), *format, evaluation_rank(path)};
}

Split split(const std::vector<FoundFile>& files, Format format) {
  int preferred = 0;
  for (const FoundFile& file : files) {
    if (file.format != format || file.evaluation_rank == 0) continue;
    preferred = preferred == 0 ? file.evaluation_rank : std::min(preferred, file.evaluation_rank);
  }
  Split found;
  for (const FoundFile& file : files) {
    if (file.format != format) continue;
    if (file.evaluation_rank == 0) found.train.push_back(file.path);
    if (file.evaluation_rank == preferred && preferred > 0) found.eval.push_back(file.path);
  }
  // One set alone is to be learned, whatever it is called.
  if (found.train.empty()) std::swap(found.train, found.eval);
  return found;
}

bool is_file(const fs::directory_entry& entry) {
  std::error_code ignored;
  return entry.is_regular_file(ignored);
}

bool is_folder(const fs::directory_entry& entry) {
  std::error_code ignored;
  return entry.is_directory(ignored);
}

std::vector<fs::path> folders_in(const fs::path& folder) {
  std::vector<fs::path> found;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (is_folder(entry) && !entry.path().filename().string().starts_with('.')) found.push_back(entry.path());
  }
  std::ranges::sort(found);
  return found;
}

bool is_image(const fs::path& path) { return data::is_image_extension(path.extension().string()); }

}  // namespace lockstep::init
