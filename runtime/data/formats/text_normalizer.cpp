// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/formats/text_normalizer.h"

#include <algorithm>
#include <array>
#include <utility>

#include "runtime/data/formats/characters.h"

namespace lockstep::data {

namespace {

constexpr std::string_view kBuilt =
    "NFC, NFD, NFKC, NFKD, Prepend, Replace of a String, Lowercase, StripAccents, BertNormalizer and Sequence";

constexpr std::array kForms{
    std::pair{std::string_view("NFC"), NormalForm::kNfc}, std::pair{std::string_view("NFD"), NormalForm::kNfd},
    std::pair{std::string_view("NFKC"), NormalForm::kNfkc}, std::pair{std::string_view("NFKD"), NormalForm::kNfkd}};

std::string replaced(std::string_view text, std::string_view old, std::string_view by) {
  std::string out;
  for (;;) {
    const std::size_t at = text.find(old);
    out += text.substr(0, at);
    if (at == std::string_view::npos) return out;
    out += by;
    text.remove_prefix(at + old.size());
  }
}

std::string lower(std::string_view text) {
  return map_characters(text, [](const Character& character) { return lower_case(character.code); });
}

std::string without(std::string_view text, bool (*drops)(std::int32_t)) {
  return map_characters(text, [drops](const Character& character) {
    return drops(character.code) ? std::string() : std::string(character.text);
  });
}

// BERT's own (github.com/google-research/bert, tokenization.py, as Hugging Face's library follows it).

std::string clean(std::string_view text) {
  return map_characters(text, [](const Character& character) -> std::string {
    const std::int32_t code = character.code;
    if (code == '\t' || code == '\n' || code == '\r') return " ";
    if (code == 0 || code == 0xfffd || is_other(code)) return "";
    return is_space(code) ? " " : std::string(character.text);
  });
}

bool is_ideograph(std::int32_t code) {
  constexpr std::array kRanges{std::pair{0x4E00, 0x9FFF},   std::pair{0x3400, 0x4DBF},   std::pair{0x20000, 0x2A6DF},
                               std::pair{0x2A700, 0x2B73F}, std::pair{0x2B740, 0x2B81F}, std::pair{0x2B920, 0x2CEAF},
                               std::pair{0xF900, 0xFAFF},   std::pair{0x2F800, 0x2FA1F}};
  return std::ranges::any_of(kRanges,
                             [code](const auto& range) { return code >= range.first && code <= range.second; });
}

std::string with_lone_ideographs(std::string_view text) {
  return map_characters(text, [](const Character& character) {
    const std::string own(character.text);
    return is_ideograph(character.code) ? " " + own + " " : own;
  });
}

}  // namespace

TextNormalizer::TextNormalizer(const TokenizerPart& part) {
  if (!part.absent()) add(part);
}

void TextNormalizer::add(const TokenizerPart& part) {
  const std::string type = part["type"].text();
  const auto form = std::ranges::find(kForms, type, &std::pair<std::string_view, NormalForm>::first);
  if (form != kForms.end()) {
    steps_.emplace_back([form = form->second](std::string_view text) { return normal_form(text, form); });
  } else if (type == "Sequence") {
    for (const TokenizerPart& each : part["normalizers"].items()) add(each);
  } else if (type == "Prepend") {
    steps_.emplace_back([prefix = part["prepend"].text()](std::string_view text) {
      return text.empty() ? std::string() : prefix + std::string(text);
    });
  } else if (type == "Replace") {
    const TokenizerPart pattern = part["pattern"];
    if (pattern["String"].absent()) pattern.refuse("is no String, and no other is built");
    const std::string old = pattern["String"].text();
    if (old.empty()) pattern.refuse("is an empty String");
    const std::string by = part["content"].text();
    if (old == " ") space_mark_ = by;
    steps_.emplace_back([old, by](std::string_view text) { return replaced(text, old, by); });
  } else if (type == "Lowercase") {
    steps_.emplace_back(lower);
  } else if (type == "StripAccents") {
    steps_.emplace_back([](std::string_view text) { return without(text, is_mark); });
  } else if (type == "BertNormalizer") {
    const bool lowers = part["lowercase"].flag(true);
    if (part["clean_text"].flag(true)) steps_.emplace_back(clean);
    if (part["handle_chinese_chars"].flag(true)) steps_.emplace_back(with_lone_ideographs);
    if (part["strip_accents"].flag(lowers)) {
      steps_.emplace_back(
          [](std::string_view text) { return without(normal_form(text, NormalForm::kNfd), is_nonspacing); });
    }
    if (lowers) steps_.emplace_back(lower);
  } else {
    part.refuse_kind(type, kBuilt);
  }
}

std::string TextNormalizer::apply(std::string_view text) const {
  std::string changed(text);
  for (const Step& step : steps_) changed = step(changed);
  return changed;
}

}  // namespace lockstep::data
