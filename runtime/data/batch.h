// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/tensor/tensor.h"

namespace lockstep::data {

/// A sample that could not be read, and why.
struct UnreadSample {
  std::int64_t index = 0;  ///< in the data set
  std::string error;
};

/// One rank's share of one micro-batch. A rank may have no sample: then the first extents are 0.
struct Batch {
  Tensor input = {};  ///< float32 or LoaderOptions::input_dtype, or int64 tokens [n, sample shape...]
  std::vector<Tensor> more_inputs = {};  ///< likewise, of Dataset::more_inputs()
  Tensor target = {};                    ///< int64 class indices, or float32 [n, target shape...]
  Tensor weight = {};                    ///< float32 [n]: what each sample's loss is multiplied by; undefined: 1
  Tensor other_target = {};              ///< of mixtures, the second label: int64 [n]; undefined without
  Tensor other_weight = {};              ///< float32 [n]: what the loss of the second label is multiplied by
  std::uint64_t step = 0;                ///< that it belongs to, counted from 1; 0: not known
  std::uint64_t epoch = 0;               ///< counted from 0
  std::int64_t first_sample = 0;         ///< position of row 0 in the step's global batch: names dropout masks
  std::int64_t global_samples = 0;       ///< of this micro-batch, over all ranks
  std::int64_t step_samples = 0;         ///< of the whole step, over all ranks and micro-batches
  /// The number of samples in this rank's share that could not be read, so that others took their place:
  /// OnError::kSkip.
  std::int64_t skipped_samples = 0;
  /// The samples that were tried and could not be read, in any order.
  std::vector<UnreadSample> unread = {};
  /// Whether a Loader dealt the batch: every rank has its share() of the micro-batch's global_samples, of one shape, so
  /// that each rank knows all ranks' shapes. Whoever gives a loader's batch another shape clears this flag on every
  /// rank, from the first step on: the ranks then agree before each step (step::StepGraph).
  bool dealt = false;

  /// The batch with its tensors on `device`, where a model's forward pass needs them.
  Batch to(Device device) const {
    Batch there = *this;
    for (Tensor* const tensor : there.tensors()) *tensor = tensor->to(device);
    return there;
  }

  /// All inputs of the model's forward pass, the first one at the front.
  std::vector<Tensor> inputs() const {
    std::vector<Tensor> all{input};
    all.insert(all.end(), more_inputs.begin(), more_inputs.end());
    return all;
  }

  /// The tensors that it has, in the order in which a loader's batch has them in memory.
  std::vector<Tensor*> tensors() {
    std::vector<Tensor*> all{&target, &input};
    for (Tensor& more : more_inputs) all.push_back(&more);
    for (Tensor* const tensor : {&weight, &other_target, &other_weight}) {
      if (tensor->defined()) all.push_back(tensor);
    }
    return all;
  }
};

}  // namespace lockstep::data
