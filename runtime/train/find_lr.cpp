// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/find_lr.h"

#include <utility>

#include "runtime/base/error.h"
#include "runtime/data/description.h"
#include "runtime/job/job.h"
#include "runtime/train/derived_steps.h"
#include "runtime/train/initial_weights.h"
#include "runtime/train/job_step.h"
#include "runtime/train/network.h"
#include "runtime/train/rank_status.h"
#include "runtime/train/same_data.h"
#include "runtime/train/training_data.h"

namespace lockstep::train {

namespace {

/// The job without its faults and its evaluation data.
job::Job trained_part(job::Job job) {
  job.clear_fault();
  job.mutable_data()->clear_eval();
  return job;
}

/// One step at the test's rate; adds its loss unless it was skipped.
void take_step(optim::LrRangeTest& test, Network& network, JobStep& step, TrainingData& data) {
  network.optimizer().set_learning_rate(test.rate());
  step.step().run(data.next_step());
  try {
    const step::StepOutcome outcome = step.step().outcome();
    // With a dynamic scale a bad loss may be an overflow that a lower scale cures.
    if (outcome.skipped() && step.scaler().dynamic()) return;
    if (outcome.skipped()) return test.end_not_finite();
    test.add(static_cast<double>(outcome.loss));
  } catch (const NumericsError&) {
    // The scale has fallen as often as it may. Without one good step it is the job's error, and no rate's.
    if (test.points().empty()) throw;
    test.end_not_finite();
  }
}

}  // namespace

optim::LrRangeTest find_lr(comm::World& world, const job::Job& given, const optim::LrRangeTestOptions& options,
                           Device device) {
  optim::LrRangeTest test(options);
  job::Job job = trained_part(given);
  TrainingData data(job);
  job = with_steps(std::move(job), *data.train());
  comm::Communicator& communicator = *world.communicator();
  require_same_data([&] { return data.digests(); }, communicator);
  Network network(job, data::describe(*data.train()), device);
  RankStatus status(world.rank());
  JobStep step(job, world, network, status);
  take_initial_weights(job, network, step, communicator);
  data.begin(job, world, 1, {}, device);
  while (!test.done()) take_step(test, network, step, data);
  return test;
}

}  // namespace lockstep::train
