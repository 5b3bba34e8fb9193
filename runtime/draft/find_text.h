// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/draft/files.h"
#include "runtime/draft/find_data.h"

namespace lockstep::draft {

/// How the files of find_text() hold tokens.
struct TextKind {
  bool tokens = false;           ///< the files are numbers of 2 bytes
  std::string vocab_file = {};   ///< of a text that byte pairs encode; empty: a token a byte
  std::string merges_file = {};  ///< beside it
};

/// Texts or tokens. Without files to evaluate on the last tenth of the text serves. The context
/// that is asked for is halved until the evaluation data hold a sample. Throws UsageError for a text that is too short
/// for any.
FoundData find_text(const Split& files, const TextKind& kind, const FindOptions& asked);

}  // namespace lockstep::draft
