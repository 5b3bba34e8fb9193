// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/data/inputs/inputs.h"
#include "runtime/tensor/device.h"
#include "runtime/tensor/input_spec.h"
#include "runtime/tensor/shape.h"
#include "runtime/tensor/tensor.h"
#include "runtime/train/infer/prediction_text.h"

namespace lockstep::train {

struct PreparedInputs;
struct TrainedRun;

struct PredictorOptions {
  bool latest = false;       ///< the newest weights, also where the run keeps its best ones
  bool raw_weights = false;  ///< not their running mean, where the checkpoint has one
  bool half = false;         ///< weights and operations in 16 bits: amp.dtype, or fp16 where that is FP32
  Device device = kCpu;
};

/// The prediction of one input.
struct Prediction {
  data::InputPlace place;
  std::vector<float> numbers;  ///< Predictor::shape().numel(): probabilities, classes or values, as kind() says
  std::string error;           ///< why the input could not be read; there are no numbers then
};

/// A trained run in use: with the run alone, without its training data, its job's file or the training loop. A
/// Predictor is one process's and one thread's.
class Predictor {
 public:
  /// `run`: a run directory, a checkpoint or a bundle. Throws UsageError, StorageError.
  explicit Predictor(const std::filesystem::path& run, const PredictorOptions& options = {});
  /// Of a run that is open.
  Predictor(const TrainedRun& run, const PredictorOptions& options);
  ~Predictor();
  Predictor(Predictor&&) noexcept;
  Predictor& operator=(Predictor&&) noexcept;

  PredictionKind kind() const;
  /// Of a prediction: [classes] for kProbabilities, else the shape of a target.
  const Shape& shape() const;
  /// In the order of the probabilities; none where classes are numbers.
  const std::vector<std::string>& class_names() const;
  /// Of a sample, channels last, or [T] tokens: its first input.
  const Shape& sample_shape() const;
  /// All inputs of a sample, as the model takes them.
  std::vector<InputSpec> inputs() const;
  /// The checkpoint that was read.
  const std::string& checkpoint() const;
  /// How a line of text tells of this run's predictions.
  PredictionLine line(TextFormat format, std::int64_t top = 0) const;

  /// Files and folders, in their order: prepared as the training data were and predicted in batches.
  std::vector<Prediction> predict(std::span<const std::string> paths);
  /// Whether samples are lines of a table, which predict_lines() takes.
  bool takes_lines() const;
  /// Whether the first line names the columns.
  bool names_columns() const;
  /// Lines of a table, behind the line that names their columns where the training files had one. Their places have the
  /// path "-". Throws UsageError that names the columns that are lacking.
  std::vector<Prediction> predict_lines(std::string lines);
  /// Samples [n, sample_shape()...], prepared by the caller as the model is to see them, float32 or int64 tokens ->
  /// float32 [n, shape()...] on the CPU. Throws ShapeError.
  Tensor predict(const Tensor& samples) { return predict(std::span(&samples, 1)); }
  /// Of samples of several inputs(), [n, its shape...] of each.
  Tensor predict(std::span<const Tensor> inputs);

 private:
  std::vector<Prediction> predict_prepared(const PreparedInputs& prepared);

  struct Deployed;
  std::unique_ptr<Deployed> deployed_;
};

}  // namespace lockstep::train
