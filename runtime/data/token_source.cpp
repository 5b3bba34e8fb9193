// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/token_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>

#include "runtime/base/error.h"
#include "runtime/base/files/stored_file.h"
#include "runtime/data/formats/characters.h"
#include "runtime/data/tokenizer_files.h"

namespace lockstep::data {

namespace {

static_assert(std::endian::native == std::endian::little, "files hold little-endian numbers");

constexpr std::int64_t kByteValues = 256;
constexpr std::int64_t kGpt2Tokens = 50257;
constexpr std::int64_t kLlama3Tokens = 128256;

/// Encoded text lies in memory.
constexpr std::uint64_t kMostTextBytes = std::uint64_t{1} << 31;

/// llm.c's header.
constexpr std::size_t kLlmCHeaderBytes = 256 * sizeof(std::int32_t);
constexpr std::int32_t kLlmCMagic = 20240520;  // of GPT-2's tokens, 2 bytes each
constexpr std::int32_t kVersion = 1;
constexpr std::int32_t kMagicOfFourBytes = 20240801;  // of Llama 3's
constexpr std::int32_t kVersionOfFourBytes = 7;

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

bool names_tokenizer(const TokensOptions& options) {
  return !options.vocab_file.empty() || !options.tokenizer_file.empty();
}

TokenFormat format_of(const TokensOptions& options, const StoredFile& file) {
  if (options.format != TokenFormat::kByName) return options.format;
  if (!file.path().ends_with(".bin")) return names_tokenizer(options) ? TokenFormat::kBpe : TokenFormat::kBytes;
  const std::optional<LlmCHeader> header = read_header(file);
  if (header && (header->magic == kLlmCMagic || header->magic == kMagicOfFourBytes)) return TokenFormat::kLlmC;
  if (looks_like_four_bytes(file)) {
    throw StorageError(file.path() + ": holds numbers of 4 bytes, as it looks, and *.bin are read as those of 2",
                       "Say which they are: format: UINT32, or format: UINT16.");
  }
  return TokenFormat::kUint16;
}

/// Numbers of type T without a header.
template <class T>
std::unique_ptr<TokenSource> open_numbers(StoredFile file) {
  if (file.size() % sizeof(T) != 0) {
    throw StorageError(
        fmt::format("{}: expected tokens of {} bytes, found {} bytes", file.path(), sizeof(T), file.size()),
        "Check that the file is whole; `format` of the tokens names another format.");
  }
  const auto count = static_cast<std::int64_t>(file.size() / sizeof(T));
  return std::make_unique<StoredTokens<T>>(std::move(file), 0, count);
}

/// Numbers of type T behind llm.c's header.
template <class T>
std::unique_ptr<TokenSource> open_behind(const LlmCHeader& header, std::int32_t version, StoredFile file) {
  if (header.version != version) {
    throw StorageError(
        fmt::format("{}: expected version {} of the format at byte 4, found {}", file.path(), version, header.version));
  }
  const std::uint64_t bytes = file.size() - kLlmCHeaderBytes;
  if (header.count < 0 || bytes != static_cast<std::uint64_t>(header.count) * sizeof(T)) {
    throw StorageError(fmt::format("{}: the header at byte 8 counts {} tokens of {} bytes, but {} bytes follow it",
                                   file.path(), header.count, sizeof(T), bytes));
  }
  return std::make_unique<StoredTokens<T>>(std::move(file), kLlmCHeaderBytes, header.count);
}

/// `vocabulary` becomes what the header says of it.
std::unique_ptr<TokenSource> open_llm_c(StoredFile file, std::int64_t& vocabulary) {
  const std::optional<LlmCHeader> header = read_header(file);
  if (!header) {
    throw StorageError(
        fmt::format("{}: expected a header of {} bytes, found {} bytes", file.path(), kLlmCHeaderBytes, file.size()));
  }
  if (header->magic == kMagicOfFourBytes) {
    vocabulary = kLlama3Tokens;
    return open_behind<std::uint32_t>(*header, kVersionOfFourBytes, std::move(file));
  }
  if (header->magic != kLlmCMagic) {
    throw StorageError(fmt::format("{}: expected llm.c's magic number {} or {} at byte 0, found {}", file.path(),
                                   kLlmCMagic, kMagicOfFourBytes, header->magic));
  }
  vocabulary = kGpt2Tokens;
  return open_behind<std::uint16_t>(*header, kVersion, std::move(file));
}

std::unique_ptr<TokenSource> encode(const StoredFile& file, const AnyTokenizer& tokenizer) {
  const std::string text = file.read_text(kMostTextBytes);
  if (const std::optional<std::size_t> wrong = find_invalid_utf8(text)) {
    throw StorageError(fmt::format("{}: byte {} is not UTF-8 text", file.path(), *wrong),
                       "Convert the file, for example with iconv, or take format: BYTES.");
  }
  return std::make_unique<EncodedTokens>(tokenizer.encode(text));
}

}  // namespace

TokenSources open_tokens(const TokensOptions& options) {
  TokenSources sources;
  std::unique_ptr<AnyTokenizer> tokenizer;  // of its files, which are read where they are needed
  const auto vocabulary_of_tokenizer = [&] {
    if (!tokenizer) tokenizer = make_tokenizer(read_tokenizer_files(options));
    return tokenizer->vocabulary();
  };
  for (const std::string& path : options.files) {
    StoredFile file(path);
    const TokenFormat format = format_of(options, file);
    std::int64_t vocabulary = kGpt2Tokens;
    switch (format) {
      case TokenFormat::kByName:
      case TokenFormat::kBytes: {
        const auto count = static_cast<std::int64_t>(file.size());
        sources.files.push_back(std::make_unique<StoredTokens<std::uint8_t>>(std::move(file), 0, count));
        vocabulary = kByteValues;
        break;
      }
      case TokenFormat::kBpe:
        vocabulary = vocabulary_of_tokenizer();
        sources.files.push_back(encode(file, *tokenizer));
        break;
      case TokenFormat::kUint16:
        sources.files.push_back(open_numbers<std::uint16_t>(std::move(file)));
        break;
      case TokenFormat::kUint32:
        sources.files.push_back(open_numbers<std::uint32_t>(std::move(file)));
        vocabulary = 0;
        break;
      case TokenFormat::kLlmC:
        sources.files.push_back(open_llm_c(std::move(file), vocabulary));
        break;
    }
    // Of numbers the job's word goes first, and the tokenizer may be large.
    if (holds_numbers(format) && !options.tokenizer_file.empty() && options.vocabulary == 0) {
      vocabulary = vocabulary_of_tokenizer();
    }
    sources.vocabulary = std::max(sources.vocabulary, vocabulary);
  }
  if (options.vocabulary > 0) sources.vocabulary = options.vocabulary;
  return sources;
}

}  // namespace lockstep::data
