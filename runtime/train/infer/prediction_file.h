// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/data/inputs/inputs.h"
#include "runtime/tensor/shape.h"
#include "runtime/train/infer/prediction_text.h"

namespace lockstep::train {

/// The predictions of a model on a data set's samples, in their order.
struct Predictions {
  /// The shape of one sample's prediction: [classes] for kProbabilities, else the shape of the sample's target.
  Shape shape = {};
  PredictionKind kind = PredictionKind::kProbabilities;
  std::vector<float> values;                  ///< sample after sample
  std::vector<std::string> class_names = {};  ///< in the order of the probabilities; none where they are not known
  std::int64_t top = 0;                       ///< PredictionLine::top
  std::shared_ptr<const data::Inputs> inputs = {};    ///< the samples, where these are no data set's
  std::map<std::int64_t, std::string> failures = {};  ///< why samples could not be read; their values mean nothing
};

/// Throws UsageError unless the name ends in .csv, .jsonl or .npy.
void require_prediction_format(const std::filesystem::path& path);

/// Throws UsageError where the format has no place for answers of this shape: .csv and .jsonl hold a row of numbers a
/// sample.
void require_prediction_shape(const std::filesystem::path& path, const Shape& shape);

/// Throws StorageError where a file could not be put there, before anything is computed for it.
void require_writable(const std::filesystem::path& path);

/// The lines of a text file of predictions.
std::string text_of(const Predictions& predictions, TextFormat format);

/// Writes a file, whole, in the format of its name: .csv and .jsonl hold a line a sample (prediction_text.h), .npy
/// [samples, shape...], for numpy.load: the probabilities or values alone, float32, or the classes, int64; NaN and -1
/// where a sample could not be read. Throws StorageError, and UsageError as the two above.
void write_predictions(const std::filesystem::path& path, const Predictions& predictions);

}  // namespace lockstep::train
