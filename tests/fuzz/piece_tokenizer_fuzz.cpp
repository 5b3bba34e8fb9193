// SPDX-License-Identifier: Apache-2.0
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/data/formats/piece_tokenizer.h"
#include "tests/fuzz/target.h"

namespace lockstep::fuzz {

namespace {

/// Models that SentencePiece trained, one of each type.
std::vector<std::string> piece_tokenizer_seeds() {
  const auto golden = nlohmann::json::parse(std::ifstream(LOCKSTEP_SOURCE_DIR "/tests/golden/sentence_pieces.json"));
  std::vector<std::string> seeds;
  for (const char* const name : {"unigram", "bpe"}) {
    const auto digits = golden["models"][name]["model"].get<std::string>();
    std::string& bytes = seeds.emplace_back();
    for (std::size_t i = 0; i < digits.size(); i += 2) {
      bytes += static_cast<char>(std::stoi(digits.substr(i, 2), nullptr, 16));
    }
  }
  return seeds;
}

/// Encodes an awkward text, and the file's own bytes.
void fuzz_piece_tokenizer(std::string_view bytes) {
  try {
    const auto tokenizer = data::read_piece_tokenizer({"t.model", std::string(bytes)});
    tokenizer->encode("the  <image>mother 12\r\n e\u0301\u3000\u6771\U0001f469\u200d");
    for (const std::uint32_t token : tokenizer->encode(bytes.substr(0, 4096))) tokenizer->text_of(token);
  } catch (const StorageError&) {
  }
}

}  // namespace

Target piece_tokenizer_target() {
  return {.parse = fuzz_piece_tokenizer, .seeds = piece_tokenizer_seeds(), .rounds = 3'000};
}

}  // namespace lockstep::fuzz
