// SPDX-License-Identifier: Apache-2.0
#include "runtime/job/tokens.h"

#include <fmt/format.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <algorithm>

namespace lockstep::job {

namespace {

namespace io = google::protobuf::io;

class Collector : public io::ErrorCollector {
 public:
  Collector(const std::string& source, Diagnostics& diagnostics) : source_(source), diagnostics_(diagnostics) {}
  void AddError(int line, io::ColumnNumber column, const std::string& message) override {
    if (diagnostics_.size() >= kMaxErrors) return;
    diagnostics_.emplace_back(Position{source_, line + 1, column + 1}, "", message);
  }

 private:
  const std::string& source_;
  Diagnostics& diagnostics_;
};

/// Where the first character stands that no text has; the text's size where there is none.
std::size_t find_binary(std::string_view text) {
  const auto is_binary = [](unsigned char c) { return c == 0x7F || (c < 0x20 && (c < '\t' || c > '\r')); };
  return static_cast<std::size_t>(std::ranges::find_if(text, is_binary) - text.begin());
}

std::string hex(char byte) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  const auto value = static_cast<unsigned char>(byte);
  return {'0', 'x', kDigits[value / 16], kDigits[value % 16]};
}

bool opens(const std::string& text) { return text == "{" || text == "<" || text == "["; }
bool closes(const std::string& text) { return text == "}" || text == ">" || text == "]"; }

}  // namespace

TextTokens::TextTokens(std::string_view text, const std::string& source, Diagnostics& diagnostics) {
  const auto refuse = [&](int line, int column, const std::string& message) {
    diagnostics.emplace_back(Position{source, line, column}, "", message);
    tokens_.assign(1, {TokenType::TYPE_END, "", line, column});
  };
  if (text.size() > kMaxJobBytes) {
    refuse(0, 0, "a job has at most " + std::to_string(kMaxJobBytes) + " bytes");
    return;
  }
  if (const std::size_t at = find_binary(text); at < text.size()) {
    refuse(0, 0, fmt::format("is no text file, so no job: byte {} is {}", at, hex(text[at])));
    return;
  }
  io::ArrayInputStream input(text.data(), static_cast<int>(text.size()));
  Collector collector(source, diagnostics);
  io::Tokenizer tokenizer(&input, &collector);
  tokenizer.set_comment_style(io::Tokenizer::SH_COMMENT_STYLE);
  int depth = 0;
  while (tokenizer.Next()) {
    const io::Tokenizer::Token& token = tokenizer.current();
    tokens_.push_back({token.type, token.text, token.line + 1, token.column + 1});
    if (token.type != TokenType::TYPE_SYMBOL) continue;
    depth += opens(token.text) ? 1 : closes(token.text) ? -1 : 0;
    if (depth > kMaxNesting) {
      refuse(token.line + 1, token.column + 1, "nested deeper than " + std::to_string(kMaxNesting) + " levels");
      return;
    }
  }
  tokens_.push_back({TokenType::TYPE_END, "", tokenizer.current().line + 1, tokenizer.current().column + 1});
}

const Token& TextTokens::peek(std::size_t ahead) const { return tokens_[std::min(next_ + ahead, tokens_.size() - 1)]; }

const Token& TextTokens::take() {
  const Token& token = peek();
  if (!at_end()) ++next_;
  return token;
}

bool TextTokens::at(std::string_view symbol, std::size_t ahead) const {
  return peek(ahead).type == TokenType::TYPE_SYMBOL && peek(ahead).text == symbol;
}

bool TextTokens::take_if(std::string_view symbol) {
  if (!at(symbol)) return false;
  take();
  return true;
}

void TextTokens::skip_value() {
  take_if(":");
  if (peek().type == TokenType::TYPE_SYMBOL && opens(peek().text)) {
    int depth = 0;
    do {
      const Token& token = take();
      if (token.type == TokenType::TYPE_SYMBOL) depth += opens(token.text) ? 1 : closes(token.text) ? -1 : 0;
    } while (depth > 0 && !at_end());
    return;
  }
  if (peek().type == TokenType::TYPE_SYMBOL && closes(peek().text)) return;
  // A name with ':' or '{' behind it is the next field: the value is missing.
  if (peek().type == TokenType::TYPE_IDENTIFIER && (at(":", 1) || at("{", 1) || at("<", 1))) return;
  take_if("-");
  const TokenType type = take().type;
  while (type == TokenType::TYPE_STRING && peek().type == TokenType::TYPE_STRING) take();
}

}  // namespace lockstep::job
