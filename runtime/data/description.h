// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/data/dataset.h"

namespace lockstep::data {

/// The properties of a data set that are known without its samples.
struct Description {
  std::int64_t samples = 0;
  Shape sample_shape = {};                  ///< of one sample: channels last, or [T] tokens
  std::int64_t vocabulary = 0;              ///< 0: samples are numbers
  std::vector<InputSpec> more_inputs = {};  ///< beside the first
  std::int64_t classes = 0;                 ///< 0: targets are numbers
  Shape target_shape = {};                  ///< of one target; a scalar's where there is one label a sample
  std::int64_t targets_per_sample = 1;      ///< that count
  bool weighted = false;                    ///< each sample has a weight
  std::vector<std::int64_t> labels = {};    ///< of all samples; empty where only drawing them would tell
  TargetSummary target_summary = {};
  /// What is strange in the files and can be used, or what no sample is made of, a sentence each.
  std::vector<std::string> remarks = {};

  bool operator==(const Description&) const = default;

  /// All inputs, the first one of them.
  std::vector<InputSpec> inputs() const;
  /// "[8, 8, 3] and [5]": the shapes of all inputs.
  std::string inputs_text() const;
};

/// Describes an open data set, without the labels.
Description describe(const Dataset& dataset);

/// Throws FieldError where the evaluation data do not fit what the model is trained on.
void require_alike(const Description& eval, const Description& train);

/// `some` data with the classes, the vocabulary and the summary of the targets of the training data, which made the
/// model: an evaluation set may lack a class. Throws FieldError where they have more, or are of another kind.
Description as_trained(Description some, const Description& train);

/// The oddities of training labels, a sentence each: classes without a sample, or one label far above the others,
/// as a damaged byte gives it. `counted`: the number of classes was taken from the highest label.
std::vector<std::string> strange_labels(const Description& description, bool counted);

}  // namespace lockstep::data
