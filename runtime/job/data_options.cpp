// SPDX-License-Identifier: Apache-2.0
#include "runtime/job/data_options.h"

#include "configs/job.pb.h"
#include "runtime/job/message_options.h"
#include "runtime/job/training_options.h"

namespace lockstep::job {

namespace {

data::DatasetOptions dataset_options(const Dataset& dataset, const std::string& path) {
  return kind_options_of<data::DatasetOptions>(dataset, path);
}

}  // namespace

data::AugmentOptions augment_options(const Augment& augment) {
  auto options = options_of<data::AugmentOptions>(augment);
  options.volume = options_of<data::VolumeAugmentOptions>(augment);
  return options;
}

data::DataOptions data_options(const Data& data) {
  data::DataOptions options;
  options.train = dataset_options(data.train(), "data.train");
  if (data.has_eval()) options.eval = dataset_options(data.eval(), "data.eval");
  options.normalize = options_of<data::NormalizeOptions>(data.normalize());
  options.normalize_target = options_of<data::NormalizeOptions>(data.normalize_target());
  options.augment = augment_options(data.augment());
  options.hold_out = options_of<data::HoldOutOptions>(data);
  return options;
}

bool evaluates(const Data& data) { return data.has_eval() || data.eval_share() > 0; }

data::Targets targets_of(const Dataset& dataset) {
  if (kind_of(dataset) == nullptr) return data::Targets::kClasses;
  return data::targets_of(dataset_options(dataset, "data.train"));
}

data::SampleErrors sample_errors(const Data& data) { return options_of<data::SampleErrors>(data); }

data::LoaderOptions loader_options(const Job& job) {
  auto options = options_of<data::LoaderOptions>(job.data());
  if (job.train().has_accumulate()) options.accumulate = job.train().accumulate();
  options.seed = job.seed();
  options.errors = sample_errors(job.data());
  options.input_dtype = amp::properties_of(amp_options(job.amp())).input_dtype();
  return options;
}

}  // namespace lockstep::job
