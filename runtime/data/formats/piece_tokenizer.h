// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "runtime/data/formats/tokenizer.h"

namespace lockstep::data {

/// A SentencePiece *.model of the types UNIGRAM (Kudo: arXiv 1804.10959) and BPE. Tokens are those of its library's
/// EncodeAsIds(): none stands before or behind the text. Throws StorageError as read_piece_model().
std::unique_ptr<AnyTokenizer> read_piece_tokenizer(const TokenizerFile& file);

}  // namespace lockstep::data
