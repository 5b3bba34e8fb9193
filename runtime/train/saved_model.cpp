// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/saved_model.h"

#include "runtime/job/data_options.h"
#include "runtime/job/job.h"
#include "runtime/job/training_options.h"

namespace lockstep::train {

data::DataOptions data_of(const job::Job& job, const SavedModel& saved) {
  data::DataOptions options = job::data_options(job.data());
  if (saved.preparation) data::prepare(options, *saved.preparation);
  return options;
}

DType inference_dtype(const job::Job& job, bool half) {
  if (!half) return DType::kFloat32;
  const DType compute = job::amp_options(job.amp()).dtype.value_or(DType::kFloat32);
  return is_reduced(compute) ? compute : DType::kFloat16;
}

data::DataOptions known_data_of(const job::Job& job, const SavedModel& saved) {
  data::DataOptions options = data_of(job, saved);
  if (!options.prepared) {
    data::prepare(options, data::preparation_of(options, *data::make_dataset(options, data::Split::kTrain)));
  }
  return options;
}

}  // namespace lockstep::train
