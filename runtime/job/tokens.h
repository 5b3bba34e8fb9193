// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <google/protobuf/io/tokenizer.h>

#include <string>
#include <string_view>
#include <vector>

#include "runtime/job/diagnostic.h"

namespace lockstep::job {

inline constexpr std::size_t kMaxJobBytes = std::size_t{1} << 20;
inline constexpr int kMaxNesting = 100;

using TokenType = google::protobuf::io::Tokenizer::TokenType;

struct Token {
  TokenType type;
  std::string text;
  int line;
  int column;
};

/// The tokens of a protobuf text, in order, and a place in them. The last one is TYPE_END and is never passed.
class TextTokens {
 public:
  /// Adds what is wrong with the characters to `diagnostics`, positions naming `source`. A text that is too long,
  /// not a text at all or too deeply nested gives no tokens: reading it recursively could overflow the stack.
  TextTokens(std::string_view text, const std::string& source, Diagnostics& diagnostics);

  const Token& peek(std::size_t ahead = 0) const;
  const Token& take();
  bool at_end() const { return peek().type == TokenType::TYPE_END; }
  bool at(std::string_view symbol, std::size_t ahead = 0) const;
  bool take_if(std::string_view symbol);
  /// Passes one value of any kind, the ':' before it included; used behind an error.
  void skip_value();

 private:
  std::vector<Token> tokens_;
  std::size_t next_ = 0;
};

}  // namespace lockstep::job
