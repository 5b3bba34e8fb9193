// SPDX-License-Identifier: Apache-2.0
#include "runtime/job/training_options.h"

#include "runtime/job/precision.h"

namespace lockstep::job {

namespace {

/// Gives an option the value of a field that has one.
template <class Value, class Option>
void take(bool has_value, const Value& value, Option& option) {
  if (has_value) option = static_cast<Option>(value);
}

std::optional<DType> dtype_of(Precision precision) {
  if (precision == PRECISION_DEFAULT) return std::nullopt;
  return dtype_of(precision, DType::kFloat32);
}

amp::OptLevel opt_level_of(OptLevel level) {
  switch (level) {
    case O1:
      return amp::OptLevel::kO1;
    case O2:
      return amp::OptLevel::kO2;
    case O3:
      return amp::OptLevel::kO3;
    default:  // an open enum: O0, the default, or a number that reading has refused
      return amp::OptLevel::kO0;
  }
}

template <class Options>
Options adam_like(const Adam& adam) {
  Options options;
  options.lr = adam.lr();
  take(adam.has_beta1(), adam.beta1(), options.beta1);
  take(adam.has_beta2(), adam.beta2(), options.beta2);
  take(adam.has_epsilon(), adam.epsilon(), options.epsilon);
  take(adam.has_weight_decay(), adam.weight_decay(), options.weight_decay);
  return options;
}

}  // namespace

amp::AmpOptions amp_options(const Amp& amp) {
  amp::AmpOptions options;
  options.opt_level = opt_level_of(amp.opt_level());
  options.dtype = dtype_of(amp.dtype());
  take(amp.has_keep_batch_norm_fp32(), amp.keep_batch_norm_fp32(), options.keep_batch_norm_fp32);
  take(amp.has_master_weights(), amp.master_weights(), options.master_weights);
  return options;
}

amp::GradScalerOptions grad_scaler_options(const LossScale& scale) {
  amp::GradScalerOptions options;
  take(scale.has_dynamic(), scale.dynamic(), options.dynamic);
  take(scale.has_init(), scale.init(), options.init);
  take(scale.has_growth_factor(), scale.growth_factor(), options.growth_factor);
  take(scale.has_backoff_factor(), scale.backoff_factor(), options.backoff_factor);
  take(scale.has_growth_interval(), scale.growth_interval(), options.growth_interval);
  take(scale.has_min(), scale.min(), options.min);
  take(scale.has_max(), scale.max(), options.max);
  take(scale.has_max_consecutive_skips(), scale.max_consecutive_skips(), options.max_consecutive_skips);
  return options;
}

comm::DdpOptions ddp_options(const Comm& comm) {
  comm::DdpOptions options;
  take(comm.has_bucket_mb(), comm.bucket_mb(), options.bucket_mb);
  take(comm.has_first_bucket_mb(), comm.first_bucket_mb(), options.first_bucket_mb);
  options.wire_dtype = dtype_of(comm.wire_dtype());
  take(comm.has_sync_batch_norm(), comm.sync_batch_norm(), options.sync_batch_norm);
  take(comm.has_gradient_average(), comm.gradient_average(), options.gradient_average);
  take(comm.has_gradient_predivide_factor(), comm.gradient_predivide_factor(), options.gradient_predivide_factor);
  take(comm.has_find_unused(), comm.find_unused(), options.find_unused);
  options.bucket_ends.assign(comm.bucket_ends().begin(), comm.bucket_ends().end());
  take(comm.has_delay_reduction(), comm.delay_reduction(), options.delay_reduction);
  take(comm.has_reduction_streams(), comm.reduction_streams(), options.reduction_streams);
  take(comm.has_reduce_in_float32(), comm.reduce_in_float32(), options.reduce_in_float32);
  take(comm.has_sync_batch_norm_group(), comm.sync_batch_norm_group(), options.sync_batch_norm_group);
  return options;
}

optim::ScheduleOptions schedule_options(const Schedule& schedule) {
  switch (schedule.kind_case()) {
    case Schedule::kStep: {
      optim::StepSchedule options;
      options.warmup_steps = schedule.step().warmup_steps();
      options.milestones.assign(schedule.step().milestones().begin(), schedule.step().milestones().end());
      take(schedule.step().has_gamma(), schedule.step().gamma(), options.gamma);
      return options;
    }
    case Schedule::kCosine: {
      optim::CosineSchedule options;
      options.warmup_steps = schedule.cosine().warmup_steps();
      take(schedule.cosine().has_final_fraction(), schedule.cosine().final_fraction(), options.final_fraction);
      return options;
    }
    case Schedule::kLinear: {
      optim::LinearSchedule options;
      options.warmup_steps = schedule.linear().warmup_steps();
      take(schedule.linear().has_final_fraction(), schedule.linear().final_fraction(), options.final_fraction);
      return options;
    }
    case Schedule::kConstant:
    case Schedule::KIND_NOT_SET:
      break;
  }
  return optim::ConstantSchedule{.warmup_steps = schedule.constant().warmup_steps()};
}

optim::SgdOptions sgd_options(const Sgd& sgd) {
  optim::SgdOptions options;
  options.lr = sgd.lr();
  take(sgd.has_momentum(), sgd.momentum(), options.momentum);
  take(sgd.has_weight_decay(), sgd.weight_decay(), options.weight_decay);
  take(sgd.has_nesterov(), sgd.nesterov(), options.nesterov);
  take(sgd.has_dampening(), sgd.dampening(), options.dampening);
  return options;
}

optim::AdamOptions adam_options(const Adam& adam) { return adam_like<optim::AdamOptions>(adam); }

optim::AdamwOptions adamw_options(const Adam& adamw) { return adam_like<optim::AdamwOptions>(adamw); }

optim::OptimizerOptions optimizer_options(const Optimizer& optimizer) {
  optim::OptimizerOptions options;
  take(optimizer.has_clip_norm(), optimizer.clip_norm(), options.clip_norm);
  take(optimizer.has_clip_value(), optimizer.clip_value(), options.clip_value);
  for (const ParameterGroup& group : optimizer.group()) {
    optim::ParameterGroup& own = options.groups.emplace_back();
    own.match = group.match();
    take(group.has_lr_scale(), group.lr_scale(), own.lr_scale);
    take(group.has_weight_decay(), group.weight_decay(), own.weight_decay);
  }
  return options;
}

}  // namespace lockstep::job
