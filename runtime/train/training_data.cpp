// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/training_data.h"

#include "runtime/data/description.h"
#include "runtime/data/make_dataset.h"
#include "runtime/job/data_options.h"

namespace lockstep::train {

TrainingData::TrainingData(const job::Job& job)
    : train_(data::make_dataset(job::data_options(job.data()), data::Split::kTrain)),
      micro_batches_(job.train().accumulate()) {
  if (!job.data().has_eval()) return;
  eval_ = data::make_dataset(job::data_options(job.data()), data::Split::kEval);
  data::require_alike(data::describe(*eval_), data::describe(*train_));
}

void TrainingData::begin(const job::Job& job, const comm::World& world, std::uint64_t first_step,
                         const data::SamplerState& start) {
  data::LoaderOptions options = job::loader_options(job);
  options.rank = world.rank();
  options.world_size = world.size();
  options.start = start;
  options.first_step = first_step;
  loader_.emplace(train_, options);
}

std::vector<data::Batch> TrainingData::next_step() {
  std::vector<data::Batch> batches;
  for (std::uint32_t m = 0; m < micro_batches_; ++m) batches.push_back(loader_->next());
  return batches;
}

}  // namespace lockstep::train
