// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/data/formats/byte_level.h"
#include "runtime/data/formats/tokenizer_json.h"
#include "tests/fuzz/target.h"

namespace lockstep::fuzz {

namespace {

using nlohmann::json;

/// Small tokenizers of three families: characters with bytes for the rest, word pieces, and bytes.
std::vector<std::string> tokenizer_seeds() {
  const std::string characters = R"({"added_tokens":[{"id":0,"content":"<s>","special":true,"lstrip":true},
{"id":9,"content":"a b","normalized":true,"rstrip":true}],
"normalizer":{"type":"Sequence","normalizers":[{"type":"NFC"},{"type":"Prepend","prepend":"_"},
{"type":"Replace","pattern":{"String":" "},"content":"_"}]},
"pre_tokenizer":{"type":"Metaspace","replacement":"_","prepend_scheme":"first","split":true},
"post_processor":{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"<s>"}},{"Sequence":{"id":"A"}}],
"special_tokens":{"<s>":{"ids":[0]}}},
"model":{"type":"BPE","unk_token":"<s>","fuse_unk":true,"byte_fallback":true,
"vocab":{"<s>":0,"a":1,"b":2,"_":3,"ab":4,"_ab":5,"<0x63>":6},"merges":["a b","_ ab"]}})";
  const std::string words = R"({"normalizer":{"type":"BertNormalizer"},"pre_tokenizer":{"type":"BertPreTokenizer"},
"post_processor":{"type":"BertProcessing","sep":["s",1],"cls":["c",0]},
"model":{"type":"WordPiece","unk_token":"u","continuing_subword_prefix":"##","max_input_chars_per_word":9,
"vocab":{"u":0,"a":1,"##b":2}}})";
  json bytes =
      json::parse(R"({"pre_tokenizer":{"type":"Sequence","pretokenizers":[{"type":"Digits","individual_digits":true},
{"type":"ByteLevel","add_prefix_space":true}]},"model":{"type":"BPE","ignore_merges":true,"merges":[["a","b"]]}})");
  std::uint32_t number = 0;
  for (const std::string& name : data::byte_names()) bytes["model"]["vocab"][name] = number++;
  bytes["model"]["vocab"]["ab"] = number;
  return {characters, words, bytes.dump()};
}

/// Encodes an awkward text, and the file's own.
void fuzz_tokenizer(std::string_view bytes) {
  try {
    const auto tokenizer = data::read_tokenizer_json({"tokenizer.json", std::string(bytes)});
    tokenizer->encode("<s>ab a b 12\r\n  e\u0301 \u6771\U0001f469\u200d");
    for (const std::uint32_t token : tokenizer->encode(bytes)) tokenizer->text_of(token);
  } catch (const StorageError&) {
  }
}

}  // namespace

Target tokenizer_json_target() {
  return {.parse = fuzz_tokenizer,
          .seeds = tokenizer_seeds(),
          .rounds = 10'000,
          // Deeper than a stack.
          .hostile = {R"({"normalizer":)" + std::string(1 << 20, '[') + std::string(1 << 20, ']') + "}"}};
}

}  // namespace lockstep::fuzz
