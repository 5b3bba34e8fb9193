// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/derived_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/data/dataset.h"
#include "runtime/data/sampler.h"

namespace lockstep::train {

namespace {

/// 1.1 epochs of 10 steps are 11 steps, though their product is a bit more.
constexpr double kRounding = 1e-9;

}  // namespace

job::Job with_steps(job::Job job, std::int64_t steps_per_epoch) {
  if (job.train().length_case() != job::Train::kEpochs || steps_per_epoch == 0) return job;
  const double product = job.train().epochs() * static_cast<double>(steps_per_epoch);
  const double steps = std::max(1.0, std::ceil(product * (1 - kRounding)));
  if (steps > std::numeric_limits<std::uint32_t>::max()) {
    throw FieldError("train.epochs", fmt::format("{} epochs of {} steps are more steps than can be counted",
                                                 job.train().epochs(), steps_per_epoch));
  }
  job.mutable_train()->set_steps(static_cast<std::uint32_t>(steps));
  return job;
}

job::Job with_steps(job::Job job, const data::Dataset& data) {
  const std::int64_t steps = data::steps_per_epoch(data.size(), job.data().global_batch(), job.data().drop_last());
  return with_steps(std::move(job), steps);
}

}  // namespace lockstep::train
