// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/draft/files.h"
#include "runtime/draft/find_data.h"

namespace lockstep::draft {

/// Texts as bytes, or tokens of 2 bytes. Without files to evaluate on the last tenth of the text serves. The context
/// that is asked for is halved until the evaluation data hold a sample. Throws UsageError for a text that is too short
/// for any.
FoundData find_text(const Split& files, bool tokens, const FindOptions& asked);

}  // namespace lockstep::draft
