// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/tokenizer_files.h"

#include <fmt/format.h>

#include "runtime/base/error.h"
#include "runtime/base/files/stored_file.h"
#include "runtime/data/formats/gpt2_files.h"
#include "runtime/data/formats/piece_tokenizer.h"
#include "runtime/data/formats/tokenizer_json.h"

namespace lockstep::data {

namespace {

constexpr std::uint64_t kMostFileBytes = std::uint64_t{64} << 20;

TokenizerFile read_file(const std::string& path) { return {path, StoredFile(path).read_text(kMostFileBytes)}; }

}  // namespace

TokenizerFiles read_tokenizer_files(const TokensOptions& options) {
  if (!options.tokenizer_file.empty()) return {read_file(options.tokenizer_file)};
  if (!options.vocab_file.empty()) return {read_file(options.vocab_file), read_file(options.merges_file)};
  return {};
}

std::unique_ptr<AnyTokenizer> make_tokenizer(const TokenizerFiles& files) {
  if (files.empty()) return nullptr;
  if (files.size() == 2) return read_gpt2_files(files[0], files[1]);
  if (files.size() == 1 && files[0].name.ends_with(".json")) return read_tokenizer_json(files[0]);
  if (files.size() == 1 && files[0].name.ends_with(".model")) return read_piece_tokenizer(files[0]);
  throw StorageError(fmt::format("{}: is no tokenizer by its name", files[0].name),
                     "Name a tokenizer.json, a SentencePiece *.model, or vocab.json and merges.txt of GPT-2's kind.");
}

}  // namespace lockstep::data
