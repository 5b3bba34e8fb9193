// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/formats/piece_model.h"

#include <fmt/format.h>

#include <unordered_set>

#include "runtime/base/error.h"
#include "runtime/data/formats/message_fields.h"

namespace lockstep::data {

namespace {

class PieceModelReader {
 public:
  explicit PieceModelReader(const TokenizerFile& file) : file_(file) {}

  PieceModel read() {
    for_each_field(file_.content, [this](const Field& field) {
      if (!field.is_bytes) return;
      if (field.number == 1) read_piece(field.bytes);
      if (field.number == 2) read_trainer(field.bytes);
      if (field.number == 3) read_normalizer(field.bytes);
    });
    if (model_.pieces.empty()) refuse("has no pieces");
    check_pieces();
    return std::move(model_);
  }

 private:
  using Field = MessageFields::Field;

  [[noreturn]] void refuse(const std::string& why) const {
    throw StorageError(file_.name + ": " + why, "It should be a *.model that SentencePiece's trainer wrote.");
  }

  template <class Take>
  void for_each_field(std::string_view bytes, const Take& take) const {
    MessageFields fields(bytes);
    while (const std::optional<Field> field = fields.next()) take(*field);
    if (fields.damaged()) refuse("is no SentencePiece model, or is cut off");
  }

  void read_piece(std::string_view bytes) {
    PieceModel::Piece& piece = model_.pieces.emplace_back();
    for_each_field(bytes, [&](const Field& field) {
      if (field.number == 1 && field.is_bytes) piece.text = field.bytes;
      if (field.number == 2 && field.is_float) piece.score = field.as_float();
      if (field.number != 3) return;
      if (field.value < 1 || field.value > 6) refuse(fmt::format("has a piece of the type {}", field.value));
      piece.type = static_cast<PieceModel::Type>(field.value);
    });
  }

  void read_trainer(std::string_view bytes) {
    for_each_field(bytes, [&](const Field& field) {
      if (field.number == 3) {
        if (field.value != 1 && field.value != 2) {
          refuse(fmt::format("is a model of the type {}, and 1 (UNIGRAM) and 2 (BPE) are built", field.value));
        }
        model_.kind = static_cast<PieceModel::Kind>(field.value);
      }
      if (field.number == 24) model_.spaces_are_suffixes = field.as_bool();
      if (field.number == 35) model_.byte_fallback = field.as_bool();
      if (field.number == 44 && field.is_bytes) model_.unknown_text = field.bytes;
    });
  }

  void read_normalizer(std::string_view bytes) {
    for_each_field(bytes, [&](const Field& field) {
      if (field.number == 2 && field.is_bytes) model_.character_map = field.bytes;
      if (field.number == 3) model_.adds_space = field.as_bool();
      if (field.number == 4) model_.removes_spaces = field.as_bool();
      if (field.number == 5) model_.escapes_spaces = field.as_bool();
    });
  }

  void check_pieces() {
    std::unordered_set<std::string_view> texts;
    std::optional<std::uint32_t> unknown;
    std::unordered_set<std::string> bytes;
    for (unsigned byte = 0; byte < 256; ++byte) bytes.insert(fmt::format("<0x{:02X}>", byte));
    std::size_t found = 0;
    for (std::size_t i = 0; i < model_.pieces.size(); ++i) {
      const PieceModel::Piece& piece = model_.pieces[i];
      if (piece.text.empty()) refuse(fmt::format("has an empty piece, {}", i));
      if (!texts.insert(piece.text).second) refuse(fmt::format("has the piece \"{}\" twice", piece.text));
      if (piece.type == PieceModel::Type::kByte) {
        if (!bytes.contains(piece.text)) refuse(fmt::format("has the piece \"{}\" of a byte", piece.text));
        ++found;
      }
      if (piece.type != PieceModel::Type::kUnknown) continue;
      if (unknown) refuse("has two pieces for what is unknown");
      unknown = static_cast<std::uint32_t>(i);
    }
    if (!unknown) refuse("has no piece for what is unknown");
    const std::size_t expected = model_.byte_fallback ? bytes.size() : 0;
    if (found != expected) refuse(fmt::format("has {} pieces of bytes, expected {}", found, expected));
    model_.unknown = *unknown;
  }

  const TokenizerFile& file_;
  PieceModel model_;
};

}  // namespace

PieceModel read_piece_model(const TokenizerFile& file) { return PieceModelReader(file).read(); }

}  // namespace lockstep::data
