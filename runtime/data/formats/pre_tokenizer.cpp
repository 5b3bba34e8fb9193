// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/formats/pre_tokenizer.h"

#include <fmt/format.h>

#include "runtime/data/formats/characters.h"

namespace lockstep::data {

namespace {

constexpr std::string_view kBuiltPreTokenizers =
    "ByteLevel, Split by the patterns of GPT-2, Llama 3 and Qwen2, Metaspace, Digits, BertPreTokenizer, "
    "WhitespaceSplit "
    "and Sequence";

using Next = std::function<void(std::string_view, bool first)>;

void cut_by(CutPattern pattern, std::string_view text, bool first, const Next& next) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = end_of_piece(pattern, text, at);
    next(text.substr(at, end - at), first && at == 0);
    at = end;
  }
}

/// What becomes of a character at which a text is cut.
enum class Cut { kNone, kBefore, kAlone, kDropped };

/// Cuts where `kind` says so, of each character and the one before it (-1: none).
template <class Kind>
void cut_at(std::string_view text, bool first, const Next& next, const Kind& kind) {
  std::size_t begin = 0;
  const auto give = [&](std::size_t end) {
    if (end > begin) next(text.substr(begin, end - begin), first && begin == 0);
    begin = end;
  };
  std::int32_t before = -1;
  for (std::size_t at = 0; at < text.size();) {
    const Character character = character_at(text, at);
    const std::size_t end = at + character.text.size();
    const Cut cut = kind(before, character.code);
    if (cut != Cut::kNone) give(at);
    if (cut == Cut::kAlone) give(end);
    if (cut == Cut::kDropped) begin = end;
    before = character.code;
    at = end;
  }
  give(text.size());
}

bool is_number(std::int32_t code) { return character_kind(code) == CharacterKind::kNumber; }

Cut cut_of_words(std::int32_t, std::int32_t code) { return is_space(code) ? Cut::kDropped : Cut::kNone; }

Cut cut_of_bert(std::int32_t, std::int32_t code) {
  if (is_space(code)) return Cut::kDropped;
  return is_punctuation(code) ? Cut::kAlone : Cut::kNone;
}

}  // namespace

PreTokenizer::PreTokenizer(CutPattern pattern) : byte_level_(true) {
  steps_.emplace_back(
      [pattern](std::string_view text, bool first, const Next& next) { cut_by(pattern, text, first, next); });
}

PreTokenizer::PreTokenizer(const TokenizerPart& part) {
  if (!part.absent()) add(part);
}

void PreTokenizer::add(const TokenizerPart& part) {
  if (byte_level_) part.refuse("stands behind a ByteLevel, which has to be the last one");
  const std::string type = part["type"].text();
  if (type == "Sequence") {
    for (const TokenizerPart& each : part["pretokenizers"].items()) add(each);
  } else if (type == "Split") {
    add_split(part);
  } else if (type == "ByteLevel") {
    byte_level_ = true;
    if (part["add_prefix_space"].flag(true)) {
      steps_.emplace_back([](std::string_view text, bool first, const Next& next) {
        text.starts_with(' ') ? next(text, first) : next(" " + std::string(text), first);
      });
    }
    if (part["use_regex"].flag(true)) {
      steps_.emplace_back(
          [](std::string_view text, bool first, const Next& next) { cut_by(CutPattern::kGpt2, text, first, next); });
    }
  } else if (type == "Metaspace") {
    add_metaspace(part);
  } else if (type == "Digits") {
    const bool alone = part["individual_digits"].flag(false);
    steps_.emplace_back([alone](std::string_view text, bool first, const Next& next) {
      cut_at(text, first, next, [alone](std::int32_t before, std::int32_t code) {
        if (alone && is_number(code)) return Cut::kAlone;
        return before >= 0 && is_number(before) != is_number(code) ? Cut::kBefore : Cut::kNone;
      });
    });
  } else if (type == "BertPreTokenizer") {
    steps_.emplace_back(
        [](std::string_view text, bool first, const Next& next) { cut_at(text, first, next, cut_of_bert); });
  } else if (type == "WhitespaceSplit") {
    steps_.emplace_back(
        [](std::string_view text, bool first, const Next& next) { cut_at(text, first, next, cut_of_words); });
  } else {
    part.refuse_kind(type, kBuiltPreTokenizers);
  }
}

void PreTokenizer::add_split(const TokenizerPart& part) {
  const TokenizerPart text = part["pattern"]["Regex"];
  if (text.absent()) part["pattern"].refuse_kind("String", kBuiltPreTokenizers);
  const std::optional<CutPattern> pattern = cut_pattern(text.text());
  if (!pattern) text.refuse_kind(text.text(), kBuiltPreTokenizers);
  // The patterns leave nothing between their matches, so that what is kept of matches or of the rest is the same.
  const std::string behavior = part["behavior"].text();
  const bool inverted = part["invert"].flag(false);
  if (behavior != (inverted ? "Removed" : "Isolated")) {
    part["behavior"].refuse_kind(behavior, inverted ? "Removed where the pattern is inverted" : "Isolated");
  }
  steps_.emplace_back([chosen = *pattern](std::string_view piece, bool first, const Next& next) {
    cut_by(chosen, piece, first, next);
  });
}

void PreTokenizer::add_metaspace(const TokenizerPart& part) {
  space_mark_ = part["replacement"].text();
  const std::string mark = space_mark_;
  const Character character = character_at(mark + " ", 0);
  if (mark.empty() || character.text.size() != mark.size()) part["replacement"].refuse("is not one character");
  // Files from before have add_prefix_space.
  std::string scheme = part["add_prefix_space"].flag(true) ? "always" : "never";
  if (!part["prepend_scheme"].absent()) scheme = part["prepend_scheme"].text();
  if (scheme != "always" && scheme != "first" && scheme != "never") {
    part["prepend_scheme"].refuse_kind(scheme, "always, first and never");
  }
  const bool cuts = part["split"].flag(true);
  steps_.emplace_back([mark, scheme, cuts, code = character.code](std::string_view text, bool first, const Next& next) {
    std::string marked = map_characters(
        text, [&mark](const Character& each) { return each.code == ' ' ? mark : std::string(each.text); });
    const bool prepends = scheme == "always" || (scheme == "first" && first);
    if (prepends && !marked.starts_with(mark)) marked.insert(0, mark);
    if (!cuts) return next(marked, first);
    cut_at(marked, first, next,
           [code](std::int32_t, std::int32_t each) { return each == code ? Cut::kBefore : Cut::kNone; });
  });
}

void PreTokenizer::run(std::size_t step, std::string_view text, bool first, const Emit& emit) const {
  if (text.empty()) return;
  if (step == steps_.size()) return emit(text);
  steps_[step](text, first, [&](std::string_view piece, bool leads) { run(step + 1, piece, leads, emit); });
}

}  // namespace lockstep::data
