// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/data/formats/tokenizer.h"

namespace lockstep::data {

/// The content of a SentencePiece model (Kudo, Richardson: arXiv 1808.06226): the message ModelProto of its
/// sentencepiece_model.proto.
struct PieceModel {
  enum class Kind : std::uint64_t { kUnigram = 1, kBpe = 2 };
  enum class Type : std::uint64_t { kNormal = 1, kUnknown, kControl, kUserDefined, kUnused, kByte };
  struct Piece {
    std::string text = {};
    float score = 0;
    Type type = Type::kNormal;
  };

  std::vector<Piece> pieces = {};  ///< by their number
  std::uint32_t unknown = 0;
  Kind kind = Kind::kUnigram;
  bool byte_fallback = false;        ///< a character that is no piece becomes its bytes
  bool spaces_are_suffixes = false;  ///< the added space stands behind the text
  std::string unknown_text = " \u2047 ";

  std::string character_map = {};  ///< what the normaliser changes: CharacterMap's bytes
  bool adds_space = true;          ///< before the text
  bool removes_spaces = true;      ///< at both ends, and of several all but one
  bool escapes_spaces = true;      ///< spaces become U+2581
};

/// Throws StorageError that names the file and what is damaged in it, or is not built: models of words or characters.
PieceModel read_piece_model(const TokenizerFile& file);

}  // namespace lockstep::data
