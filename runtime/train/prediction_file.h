// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

namespace lockstep::train {

/// What a model says of a data set's samples, in their order.
struct Predictions {
  std::int64_t columns = 0;   ///< classes, or values of a regression
  bool classifies = true;     ///< whether a row has probabilities
  std::vector<float> values;  ///< row after row
};

/// Throws UsageError unless the name ends in .csv, .jsonl or .npy.
void require_prediction_format(const std::filesystem::path& path);

/// Throws StorageError where a file could not be put there, before anything is computed for it.
void require_writable(const std::filesystem::path& path);

/// Writes a file, whole, in the format of its name. Numbers of text read back as the same float32.
///   .csv    sample,class,p0,p1,...     one line a sample; without classes sample,v0,v1,...
///   .jsonl  {"sample":0,"class":3,"probabilities":[...]}; without classes {"sample":0,"values":[...]}; null for a NaN
///   .npy    float32 [samples, columns], for numpy.load: the probabilities or values alone
/// The class of a row with a NaN is -1. Throws StorageError, and UsageError as above.
void write_predictions(const std::filesystem::path& path, const Predictions& predictions);

}  // namespace lockstep::train
