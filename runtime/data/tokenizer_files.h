// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "runtime/data/formats/tokenizer.h"
#include "runtime/data/tokens_options.h"

namespace lockstep::data {

/// The files of a tokenizer with their content: all that a run has to carry to know its texts. vocab.json and
/// merges.txt in this order, or one tokenizer.json or SentencePiece *.model; none where a token is a byte.
using TokenizerFiles = std::vector<TokenizerFile>;

/// Reads the files that the options name. Throws StorageError for one that cannot be read, or is larger than 64 MiB.
TokenizerFiles read_tokenizer_files(const TokensOptions& options);

/// None of no files. Throws StorageError that names the file and what is wrong with it, or is not built.
std::unique_ptr<AnyTokenizer> make_tokenizer(const TokenizerFiles& files);

}  // namespace lockstep::data
