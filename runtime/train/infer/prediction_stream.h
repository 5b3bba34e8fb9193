// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "runtime/train/infer/prediction_text.h"
#include "runtime/train/infer/predictor.h"

namespace lockstep::train {

struct StreamCounts {
  std::int64_t inputs = 0;
  std::int64_t failures = 0;  ///< inputs that could not be read
};

/// Predicts what lines name, until their end: a line that comes is answered before the next one is waited for, and
/// lines that wait together are predicted together. `input`: a descriptor, whose lines are paths, or of a table its
/// rows behind the line that names the columns. `emit` is given the header, and then the lines of each answer. What
/// cannot be predicted is a failure, whatever is wrong with it. Throws StorageError where the descriptor cannot be read
/// or a line is longer than 1 MiB, UsageError that names the columns that are lacking.
StreamCounts predict_lines(Predictor& predictor, int input, PredictionLine line,
                           const std::function<void(std::string_view)>& emit);

}  // namespace lockstep::train
