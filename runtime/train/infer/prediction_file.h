// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "runtime/tensor/shape.h"

namespace lockstep::train {

/// The meaning of a sample's numbers.
enum class PredictionKind {
  kProbabilities,  ///< of each class
  kClasses,        ///< the most probable class of each position; -1 where there is none for a NaN
  kMask,           ///< probabilities of each element to belong to a mask
  kValues,         ///< of a regression
};

/// The predictions of a model on a data set's samples, in their order.
struct Predictions {
  /// The shape of one sample's prediction: [classes] for kProbabilities, else the shape of the sample's target.
  Shape shape = {};
  PredictionKind kind = PredictionKind::kProbabilities;
  std::vector<float> values;                  ///< sample after sample
  std::vector<std::string> class_names = {};  ///< in the order of the probabilities; none where they are not known
};

/// Throws UsageError unless the name ends in .csv, .jsonl or .npy.
void require_prediction_format(const std::filesystem::path& path);

/// Throws UsageError where the format has no place for answers of this shape: .csv and .jsonl hold a row of numbers a
/// sample.
void require_prediction_shape(const std::filesystem::path& path, const Shape& shape);

/// Throws StorageError where a file could not be put there, before anything is computed for it.
void require_writable(const std::filesystem::path& path);

/// Writes a file, whole, in the format of its name. Numbers of text read back as the same float32.
///   .csv    sample,class,p0,p1,...     one line a sample; without probabilities sample,v0,v1,...
///   .jsonl  {"sample":0,"class":3,"probabilities":[...]}; without classes {"sample":0,"values":[...]}; null for a NaN
///   .npy    [samples, shape...], for numpy.load: the probabilities or values alone, float32, or the classes, int64
/// Where classes have names, .csv and .jsonl hold the class's name behind its number, as `name`.
/// The class of a row with a NaN is -1, without a name. Throws StorageError, and UsageError as the two above.
void write_predictions(const std::filesystem::path& path, const Predictions& predictions);

}  // namespace lockstep::train
