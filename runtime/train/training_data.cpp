// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/training_data.h"

#include <memory>

#include "runtime/data/description.h"
#include "runtime/data/make_dataset.h"
#include "runtime/job/data_options.h"
#include "runtime/job/job.h"
#include "runtime/tensor/trace_range.h"
#include "runtime/train/loading.h"

namespace lockstep::train {

TrainingData::TrainingData(const job::Job& job) : micro_batches_(job.train().accumulate()) {
  data::DataOptions options = job::data_options(job.data());
  options.contents = std::make_shared<data::SampleContents>();
  train_ = data::make_dataset(options, data::Split::kTrain);
  preparation_ = data::preparation_of(options, *train_);
  if (!job::evaluates(job.data())) return;
  data::prepare(options, preparation_);
  eval_ = data::make_dataset(options, data::Split::kEval);
  data::require_alike(data::describe(*eval_), data::describe(*train_));
}

std::vector<data::DataDigest> TrainingData::digests() const {
  std::vector<data::DataDigest> digests{data::digest_of("data.train", *train_)};
  if (eval_) digests.push_back(data::digest_of("data.eval", *eval_));
  return digests;
}

void TrainingData::begin(const job::Job& job, const comm::World& world, std::uint64_t first_step,
                         const data::SamplerState& start, Device device) {
  data::LoaderOptions options = training_loader(job, world, device);
  if (job.data().train().synthetic().resident()) {
    options.steps = 1;
    options.device = kCpu;
    data::Loader loader(train_, options);
    std::vector<data::Batch> batches;
    for (std::uint32_t m = 0; m < micro_batches_; ++m) batches.push_back(loader.next().to(device));
    resident_ = Resident{.batches = std::move(batches),
                         .sampler = data::Sampler(data::sampler_options(options, train_->size()), start),
                         .place = {start.epoch, start.cursor, job.seed()},
                         .step = first_step};
    return;
  }
  options.start = start;
  options.first_step = first_step;
  loader_.emplace(train_, options);
}

std::vector<data::Batch> TrainingData::next_step() {
  const TraceRange range("wait for data", RangeKind::kData);
  if (resident_) return next_resident();
  std::vector<data::Batch> batches;
  for (std::uint32_t m = 0; m < micro_batches_; ++m) batches.push_back(loader_->next());
  return batches;
}

std::vector<data::Batch> TrainingData::next_resident() {
  const data::StepPlan plan = resident_->sampler.next();
  resident_->place = plan.after;
  for (data::Batch& batch : resident_->batches) {
    batch.step = resident_->step;
    batch.epoch = plan.epoch;
  }
  ++resident_->step;
  return resident_->batches;
}

}  // namespace lockstep::train
