// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "runtime/data/formats/tokenizer.h"

namespace lockstep::data {

/// Hugging Face's tokenizer.json, which encodes as the library `tokenizers` does with its special tokens: byte-pair
/// encoding of bytes (GPT-2, Llama 3, Qwen2) or of characters with bytes for the rest (Llama 2), and word pieces
/// (BERT). "truncation" and "padding" are not followed: a sample is as long as its data set says. Throws StorageError
/// that names what is damaged, and what the file asks for and is not built.
std::unique_ptr<AnyTokenizer> read_tokenizer_json(const TokenizerFile& file);

}  // namespace lockstep::data
