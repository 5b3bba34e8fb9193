// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/formats/tokenizer_json.h"

#include <fmt/format.h>

#include <charconv>
#include <unordered_set>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/base/json_text.h"
#include "runtime/data/formats/byte_level.h"
#include "runtime/data/formats/byte_pairs.h"
#include "runtime/data/formats/text_tokenizer.h"
#include "runtime/data/formats/vocabulary.h"
#include "runtime/data/formats/word_pieces.h"

namespace lockstep::data {

namespace {

constexpr std::string_view kSpaceMark = "\u2581";  // of Llama 2 and SentencePiece

/// The tokens of a file: the model's and the added ones.
struct Tokens {
  TokenNumbers model;
  TokenNumbers all;
};

/// Reads the field of a rule that changes what a model encodes and is built for one value alone.
void require_absent(const TokenizerPart& part) {
  if (part.absent() || part.value() == "" || part.value() == 0) return;
  part.refuse(fmt::format("is {}, which is not built", part.value().is_string() ? part.text() : shown(part.value())));
}

std::uint32_t number_in(const TokenNumbers& numbers, const TokenizerPart& name) {
  const auto found = numbers.find(name.text());
  if (found == numbers.end()) name.refuse(fmt::format("is \"{}\", which is no token", name.text()));
  return found->second;
}

PairMerges read_json_merges(const TokenizerPart& part, const TokenNumbers& numbers) {
  PairMerges merges;
  std::uint32_t rank = 0;
  for (const TokenizerPart& each : part.items()) {
    std::optional<std::pair<std::string, std::string>> pair;
    if (each.value().is_string()) {
      pair = pair_of(each.text());
    } else if (const std::vector<TokenizerPart> both = each.items(); both.size() == 2) {
      pair.emplace(both[0].text(), both[1].text());
    }
    if (!pair) each.refuse("is no pair of tokens");
    const auto token = [&](const std::string& text) {
      const auto found = numbers.find(text);
      if (found == numbers.end()) each.refuse(fmt::format("needs \"{}\", which is no token", text));
      return found->second;
    };
    const std::uint32_t left = token(pair->first), right = token(pair->second);
    merges.add(left, right, rank++, token(pair->first + pair->second));
  }
  return merges;
}

std::unique_ptr<WordModel> read_pairs(const TokenizerPart& model, const TokenNumbers& numbers, bool byte_level) {
  for (const char* const field : {"dropout", "continuing_subword_prefix", "end_of_word_suffix"}) {
    require_absent(model[field]);
  }
  BytePairsRules rules{.byte_level = byte_level,
                       .whole_words = model["ignore_merges"].flag(false),
                       .byte_fallback = model["byte_fallback"].flag(false),
                       .fuse_unknown = model["fuse_unk"].flag(false)};
  if (!model["unk_token"].absent()) rules.unknown = number_in(numbers, model["unk_token"]);
  for (const std::string& name : byte_names()) {
    if (!byte_level || numbers.contains(name)) continue;
    model["vocab"].refuse(fmt::format("has no token for the byte \"{}\"", name));
  }
  return std::make_unique<BytePairs>(byte_level ? numbers_by_bytes(numbers) : numbers,
                                     read_json_merges(model["merges"], numbers), rules);
}

std::unique_ptr<WordModel> read_word_pieces(const TokenizerPart& model, const TokenNumbers& numbers) {
  constexpr std::uint32_t kMostCharacters = 1000;  // a word takes quadratic time
  WordPiecesRules rules;
  rules.unknown = number_in(numbers, model["unk_token"]);
  rules.continuing = model["continuing_subword_prefix"].text();
  const TokenizerPart longest = model["max_input_chars_per_word"];
  rules.longest = longest.number().value_or(static_cast<std::uint32_t>(rules.longest));
  if (rules.longest > kMostCharacters) longest.refuse(fmt::format("is more than {}", kMostCharacters));
  return std::make_unique<WordPieces>(numbers, rules);
}

/// What tokens of characters stand for within a text.
std::unordered_map<std::uint32_t, std::string> texts_of_characters(const TokenNumbers& numbers, bool marks_spaces,
                                                                   bool byte_fallback) {
  std::unordered_map<std::uint32_t, std::string> texts;
  for (const auto& [text, number] : numbers) {
    std::string& own = texts[number];
    unsigned byte = 0;
    if (byte_fallback && text.size() == 6 && text.starts_with("<0x") && text.ends_with('>') &&
        std::from_chars(text.data() + 3, text.data() + 5, byte, 16).ptr == text.data() + 5) {
      own = static_cast<char>(byte);
      continue;
    }
    std::string_view rest = text;
    for (std::size_t at = 0; marks_spaces && (at = rest.find(kSpaceMark)) != std::string_view::npos;) {
      own += std::string(rest.substr(0, at)) + ' ';
      rest.remove_prefix(at + kSpaceMark.size());
    }
    own += rest;
  }
  return texts;
}

std::unordered_map<std::uint32_t, std::string> texts_of_word_pieces(const TokenNumbers& numbers,
                                                                    const std::string& continuing) {
  std::unordered_map<std::uint32_t, std::string> texts;
  for (const auto& [text, number] : numbers) {
    texts.emplace(number, text.starts_with(continuing) ? text.substr(continuing.size()) : " " + text);
  }
  return texts;
}

void read_model(const TokenizerPart& model, const TokenNumbers& numbers, TextTokenizer::Parts& parts) {
  const bool byte_level = parts.pre_tokenizer.byte_level();
  // Files from before do not name the type.
  const std::string type = model["type"].absent() && !model["merges"].absent() ? "BPE" : model["type"].text();
  if (type == "BPE") {
    parts.model = read_pairs(model, numbers, byte_level);
    const bool marks_spaces =
        parts.normalizer.marks_spaces_with(kSpaceMark) || parts.pre_tokenizer.marks_spaces_with(kSpaceMark);
    parts.texts = byte_level ? texts_of_byte_level(numbers)
                             : texts_of_characters(numbers, marks_spaces, model["byte_fallback"].flag(false));
  } else if (type == "WordPiece") {
    if (byte_level) model.refuse("is a WordPiece behind a ByteLevel, which is not built");
    parts.model = read_word_pieces(model, numbers);
    parts.texts = texts_of_word_pieces(numbers, model["continuing_subword_prefix"].text());
  } else {
    model["type"].refuse_kind(type, "BPE and WordPiece");
  }
}

void read_added(const TokenizerPart& added, Tokens& tokens, TextTokenizer::Parts& parts) {
  std::unordered_set<std::uint32_t> taken;
  for (const auto& [text, number] : tokens.model) taken.insert(number);
  std::vector<AddedToken> raw, normalized;
  for (const TokenizerPart& each : added.items()) {
    AddedToken token{.text = each["content"].text(),
                     .takes_left = each["lstrip"].flag(false),
                     .takes_right = each["rstrip"].flag(false)};
    const std::optional<std::uint32_t> number = each["id"].number();
    if (!number) each["id"].refuse("is not there");
    token.number = *number;
    if (each["single_word"].flag(false)) each["single_word"].refuse("is true, which is not built");
    if (const auto known = tokens.all.find(token.text); known != tokens.all.end()) {
      if (known->second != token.number) {
        each["id"].refuse(fmt::format("is {}, but \"{}\" is the token {}", token.number, token.text, known->second));
      }
    } else if (!taken.insert(token.number).second) {
      each["id"].refuse(fmt::format("is {}, which another token has", token.number));
    }
    tokens.all.insert_or_assign(token.text, token.number);
    parts.texts.insert_or_assign(token.number, token.text);
    if (each["normalized"].flag(!each["special"].flag(false))) {
      token.text = parts.normalizer.apply(token.text);
      normalized.push_back(std::move(token));
    } else {
      raw.push_back(std::move(token));
    }
  }
  parts.raw = AddedTokens(std::move(raw));
  parts.normalized = AddedTokens(std::move(normalized));
}

/// The tokens that a template puts around a single text.
void read_template(const TokenizerPart& part, TextTokenizer::Parts& parts) {
  bool behind = false;
  for (const TokenizerPart& each : part["single"].items()) {
    if (!each["Sequence"].absent()) {
      if (behind) each.refuse("is the text for the second time");
      behind = true;
      continue;
    }
    const TokenizerPart id = each["SpecialToken"]["id"];
    const TokenizerPart special = part["special_tokens"][id.text()];
    if (special.absent()) id.refuse(fmt::format("is \"{}\", which special_tokens does not have", id.text()));
    for (const TokenizerPart& number : special["ids"].items()) {
      if (!number.number()) number.refuse("is no number");
      (behind ? parts.behind : parts.before).push_back(*number.number());
    }
  }
  if (!behind) part["single"].refuse("has no Sequence: it leaves the text out");
}

void read_post_processor(const TokenizerPart& part, TextTokenizer::Parts& parts) {
  if (part.absent()) return;
  const std::string type = part["type"].text();
  if (type == "Sequence") {
    for (const TokenizerPart& each : part["processors"].items()) read_post_processor(each, parts);
  } else if (type == "TemplateProcessing") {
    if (!parts.before.empty() || !parts.behind.empty()) part.refuse("is a second template, which is not built");
    read_template(part, parts);
  } else if (type == "BertProcessing" || type == "RobertaProcessing") {
    const auto number_of = [&](const char* field) {
      const std::vector<TokenizerPart> pair = part[field].items();
      if (pair.size() != 2 || !pair[1].number()) part[field].refuse("is no token and its number");
      return *pair[1].number();
    };
    parts.before = {number_of("cls")};
    parts.behind = {number_of("sep")};
  } else if (type != "ByteLevel") {  // this one changes offsets alone
    part.refuse_kind(type, "TemplateProcessing, BertProcessing, RobertaProcessing, ByteLevel and Sequence");
  }
}

}  // namespace

std::unique_ptr<AnyTokenizer> read_tokenizer_json(const TokenizerFile& file) {
  const nlohmann::json value = parse_json(file.content);
  const TokenizerPart all(value, file.name, "");
  if (value.is_discarded()) all.refuse(fmt::format("is no JSON of at most {} levels", kMostJsonLevels));
  if (!value.is_object() || all["model"].absent()) {
    all.refuse("is no tokenizer", "It should be the tokenizer.json that save_pretrained() of a fast tokenizer writes.");
  }
  TextTokenizer::Parts parts;
  parts.normalizer = TextNormalizer(all["normalizer"]);
  parts.pre_tokenizer = PreTokenizer(all["pre_tokenizer"]);
  const TokenizerPart model = all["model"];
  Tokens tokens;
  tokens.model = read_numbers(model["vocab"]);
  tokens.all = tokens.model;
  read_model(model, tokens.model, parts);
  read_added(all["added_tokens"], tokens, parts);
  read_post_processor(all["post_processor"], parts);
  return std::make_unique<TextTokenizer>(std::move(parts));
}

}  // namespace lockstep::data
