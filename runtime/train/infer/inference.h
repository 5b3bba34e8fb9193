// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "comm/group/world.h"
#include "runtime/data/make_dataset.h"
#include "runtime/tensor/device.h"
#include "runtime/tensor/dtype.h"
#include "runtime/train/infer/prediction_text.h"
#include "runtime/train/infer/sliding_window.h"
#include "runtime/train/saved_model.h"

namespace lockstep::job {
class Job;
}

namespace lockstep::train {

struct InferOptions {
  SavedModel saved;
  data::Split split = data::Split::kEval;
  std::vector<std::string> inputs = {};  ///< files and folders to predict in place of a data set: data::open_inputs()
  std::int64_t top = 0;                  ///< of classes, so many of the most probable; 0: all in their order
  bool half = false;                     ///< weights and operations in 16 bits: amp.dtype, or fp16 where that is FP32
  std::filesystem::path out;             ///< where the predictions go; empty: nowhere
  std::optional<TextFormat> text = {};   ///< InferResult::text holds them in this format
  SlidingWindowOptions windows = {};     ///< over inputs that are predicted as wholes; on `device`
  Device device = kCpu;
};

/// The memory and speed of a deployed model.
struct ModelCost {
  std::int64_t weight_bytes = 0;
  double samples_per_s = 0.0;  ///< of forward passes alone, of all ranks together
};

/// How 16 bits compare with float32 on the same samples.
struct Agreement {
  std::optional<double> equal_classes;  ///< share of the answers; of classification
  double largest_difference = 0.0;      ///< of a probability, or of a value of a regression
  ModelCost float32;
};

struct InferResult {
  std::int64_t samples = 0;
  DType dtype = DType::kFloat32;
  ModelCost cost;
  std::optional<double> accuracy;                     ///< of classification: share of the targets that count
  std::int64_t not_finite = 0;                        ///< samples with an inf or a NaN among their predictions
  std::map<std::int64_t, std::string> failures = {};  ///< samples that could not be read, and why; on rank 0
  std::optional<Agreement> agreement;
  std::string text = {};   ///< the predictions, a line a sample; on rank 0
  bool of_mean = false;    ///< predicted with the running mean of the weights, on rank 0
  std::string checkpoint;  ///< on rank 0
};

/// Throws UsageError where the run has no predictions for what `out`, `top`, `half` and `windows` ask for.
void require_destination(const job::Job& job, const InferOptions& options);

/// Predicts a data set of the job, without augmentation, or files without targets, with a checkpoint's weights. Files
/// that cannot be read are passed over, and with data.on_error: SKIP a data set's samples; else one throws. Blocks
/// of data.eval_batch samples are dealt to the ranks, so that each number is computed alike however many ranks there
/// are: the file is the same to the byte. Rank 0 writes it (prediction_file.h), whole, in the order of the samples.
/// Files that are predicted as wholes are answered by files instead: infer_wholes(). A collective; throws Error.
InferResult infer(comm::World& world, const job::Job& job, const InferOptions& options);

}  // namespace lockstep::train
