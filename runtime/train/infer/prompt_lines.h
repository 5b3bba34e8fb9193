// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "runtime/train/infer/generation.h"
#include "runtime/train/infer/prediction_stream.h"
#include "runtime/train/infer/prediction_text.h"

namespace lockstep::train {

/// Writes on from each line of texts: of *.txt files and of "-", which is stdin, each line is a prompt; of *.jsonl each
/// is an object with a "prompt" or a "text", or a string. `emit` is given the header, and a line an answer as soon as
/// it is whole:
///   CSV   path,line,text
///   JSON  {"path":"a.txt","line":0,"prompt":"...","text":"..."}, or "error" in place of "text"
/// Lines count from 0, empty ones are passed over, and `text` is what was added. Each line is continued as if it were
/// alone, with the draws of options.seed. A line that cannot be continued is a failure. Throws UsageError for a path
/// that is not there or has another ending, StorageError.
StreamCounts continue_lines(Generator& generator, const GenerateOptions& options, std::span<const std::string> paths,
                            TextFormat format, const std::function<void(std::string_view)>& emit);

}  // namespace lockstep::train
