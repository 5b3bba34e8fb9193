// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/token_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>

#include "runtime/base/error.h"
#include "runtime/base/files/stored_file.h"
#include "runtime/data/formats/byte_pairs.h"
#include "runtime/data/formats/pre_tokens.h"

namespace lockstep::data {

namespace {

static_assert(std::endian::native == std::endian::little, "files hold little-endian numbers");

constexpr std::int64_t kByteValues = 256;
constexpr std::int64_t kGpt2Tokens = 50257;

/// Encoded text lies in memory.
constexpr std::uint64_t kMostTextBytes = std::uint64_t{1} << 31;

/// llm.c's header.
constexpr std::size_t kLlmCHeaderBytes = 256 * sizeof(std::int32_t);
constexpr std::int32_t kLlmCMagic = 20240520;
constexpr std::int32_t kVersion = 1;
constexpr std::int32_t kMagicOfFourBytes = 20240801;

/// Tokens of type T on disk.
template <class T>
class StoredTokens : public TokenSource {
 public:
  StoredTokens(StoredFile file, std::uint64_t header_bytes, std::int64_t count)
      : file_(std::move(file)), header_bytes_(header_bytes), count_(count) {}

  std::int64_t size() const override { return count_; }

  void read(std::int64_t first, std::span<std::int64_t> out) const override {
    // The stored tokens go to the end of `out`, where each is read before it is overwritten.
    const auto bytes = std::as_writable_bytes(out).last(out.size() * sizeof(T));
    file_.read(header_bytes_ + static_cast<std::uint64_t>(first) * sizeof(T), bytes);
    for (std::size_t i = 0; i < out.size(); ++i) {
      T token;
      std::memcpy(&token, bytes.data() + i * sizeof(T), sizeof(T));
      out[i] = token;
    }
  }

  std::uint64_t bytes() const override { return static_cast<std::uint64_t>(count_) * sizeof(T); }

  void read_bytes(std::uint64_t offset, std::span<std::byte> out) const override {
    file_.read(header_bytes_ + offset, out);
  }

 private:
  StoredFile file_;
  std::uint64_t header_bytes_;
  std::int64_t count_;
};

class EncodedTokens : public TokenSource {
 public:
  explicit EncodedTokens(std::vector<std::uint32_t> tokens) : tokens_(std::move(tokens)) {}

  std::int64_t size() const override { return static_cast<std::int64_t>(tokens_.size()); }

  void read(std::int64_t first, std::span<std::int64_t> out) const override {
    std::copy_n(tokens_.begin() + first, out.size(), out.begin());
  }

  std::uint64_t bytes() const override { return std::span(tokens_).size_bytes(); }

  void read_bytes(std::uint64_t offset, std::span<std::byte> out) const override {
    std::ranges::copy(std::as_bytes(std::span(tokens_)).subspan(offset, out.size()), out.begin());
  }

 private:
  std::vector<std::uint32_t> tokens_;
};

struct LlmCHeader {
  std::int32_t magic = 0;
  std::int32_t version = 0;
  std::int32_t count = 0;
};

/// None where the file is too short to have one.
std::optional<LlmCHeader> read_header(const StoredFile& file) {
  if (file.size() < kLlmCHeaderBytes) return std::nullopt;
  std::array<std::int32_t, 3> words{};
  file.read(0, std::as_writable_bytes(std::span(words)));
  return LlmCHeader{words[0], words[1], words[2]};
}

/// Whether the file's first numbers of 2 bytes are rather those of 4: every second one is the high half of a token, 3
/// at most for vocabularies up to 262,144, and the others are not. Of few numbers that may be chance.
bool looks_like_four_bytes(const StoredFile& file) {
  constexpr std::size_t kLeastPairs = 64, kMostPairs = 4096;
  constexpr std::uint16_t kHighestHalf = 3;
  if (file.size() % sizeof(std::uint32_t) != 0) return false;
  std::vector<std::uint16_t> halves(2 * std::min<std::size_t>(kMostPairs, file.size() / sizeof(std::uint32_t)));
  if (halves.size() < 2 * kLeastPairs) return false;
  file.read(0, std::as_writable_bytes(std::span(halves)));
  std::uint16_t highest_of_high = 0, highest_of_low = 0;
  for (std::size_t i = 0; i < halves.size(); i += 2) {
    highest_of_low = std::max(highest_of_low, halves[i]);
    highest_of_high = std::max(highest_of_high, halves[i + 1]);
  }
  return highest_of_high <= kHighestHalf && highest_of_low > kHighestHalf;
}

TokenFormat format_of(const TokensOptions& options, const StoredFile& file) {
  if (options.format != TokenFormat::kByName) return options.format;
  if (!file.path().ends_with(".bin")) return options.vocab_file.empty() ? TokenFormat::kBytes : TokenFormat::kBpe;
  const std::optional<LlmCHeader> header = read_header(file);
  if (header && header->magic == kMagicOfFourBytes) {
    throw StorageError(file.path() + ": holds llm.c's tokens of 4 bytes, which are not read");
  }
  if (header && header->magic == kLlmCMagic) return TokenFormat::kLlmC;
  if (looks_like_four_bytes(file)) {
    throw StorageError(file.path() + ": holds numbers of 4 bytes, as it looks, and tokens of 2 bytes are read",
                       "Write tokens below 65,536 as uint16; format: UINT16 takes the file as it is.");
  }
  return TokenFormat::kUint16;
}

std::unique_ptr<TokenSource> open_uint16(StoredFile file) {
  if (file.size() % sizeof(std::uint16_t) != 0) {
    throw StorageError(fmt::format("{}: expected tokens of 2 bytes, found {} bytes", file.path(), file.size()),
                       "Check that the file is whole; `format` of the tokens names another format.");
  }
  const auto count = static_cast<std::int64_t>(file.size() / sizeof(std::uint16_t));
  return std::make_unique<StoredTokens<std::uint16_t>>(std::move(file), 0, count);
}

std::unique_ptr<TokenSource> open_llm_c(StoredFile file) {
  const auto refuse = [&file](const std::string& why) { throw StorageError(file.path() + ": " + why); };
  const std::optional<LlmCHeader> header = read_header(file);
  if (!header) refuse(fmt::format("expected a header of {} bytes, found {} bytes", kLlmCHeaderBytes, file.size()));
  if (header->magic != kLlmCMagic) {
    refuse(fmt::format("expected llm.c's magic number {} at byte 0, found {}", kLlmCMagic, header->magic));
  }
  if (header->version != kVersion) {
    refuse(fmt::format("expected version {} of the format at byte 4, found {}", kVersion, header->version));
  }
  const std::uint64_t bytes = file.size() - kLlmCHeaderBytes;
  if (header->count < 0 || bytes != static_cast<std::uint64_t>(header->count) * sizeof(std::uint16_t)) {
    refuse(
        fmt::format("the header at byte 8 counts {} tokens of 2 bytes, but {} bytes follow it", header->count, bytes));
  }
  return std::make_unique<StoredTokens<std::uint16_t>>(std::move(file), kLlmCHeaderBytes, header->count);
}

std::unique_ptr<TokenSource> encode(const StoredFile& file, const BytePairs& pairs) {
  const std::string text = file.read_text(kMostTextBytes);
  if (const std::optional<std::size_t> wrong = find_invalid_utf8(text)) {
    throw StorageError(fmt::format("{}: byte {} is not UTF-8 text", file.path(), *wrong),
                       "Convert the file, for example with iconv, or take format: BYTES.");
  }
  return std::make_unique<EncodedTokens>(pairs.encode(text));
}

}  // namespace

TokenSources open_tokens(const TokensOptions& options) {
  TokenSources sources;
  std::optional<BytePairs> pairs;
  for (const std::string& path : options.files) {
    StoredFile file(path);
    std::int64_t vocabulary = kGpt2Tokens;
    switch (format_of(options, file)) {
      case TokenFormat::kByName:
      case TokenFormat::kBytes: {
        const auto count = static_cast<std::int64_t>(file.size());
        sources.files.push_back(std::make_unique<StoredTokens<std::uint8_t>>(std::move(file), 0, count));
        vocabulary = kByteValues;
        break;
      }
      case TokenFormat::kBpe:
        if (!pairs) pairs.emplace(options.vocab_file, options.merges_file);
        sources.files.push_back(encode(file, *pairs));
        vocabulary = pairs->vocabulary();
        break;
      case TokenFormat::kUint16:
        sources.files.push_back(open_uint16(std::move(file)));
        break;
      case TokenFormat::kLlmC:
        sources.files.push_back(open_llm_c(std::move(file)));
        break;
    }
    sources.vocabulary = std::max(sources.vocabulary, vocabulary);
  }
  if (options.vocabulary > 0) sources.vocabulary = options.vocabulary;
  return sources;
}

}  // namespace lockstep::data
