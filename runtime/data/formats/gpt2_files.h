// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "runtime/data/formats/tokenizer.h"

namespace lockstep::data {

/// GPT-2's byte-level byte-pair encoding (Radford et al., 2019) of its vocab.json and merges.txt. As in the
/// `transformers` library, "<|endoftext|>" is one token where the vocabulary has it. Throws StorageError that names the
/// file and, in merges.txt, the line.
std::unique_ptr<AnyTokenizer> read_gpt2_files(const TokenizerFile& vocab, const TokenizerFile& merges);

}  // namespace lockstep::data
