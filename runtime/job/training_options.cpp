// SPDX-License-Identifier: Apache-2.0
#include "runtime/job/training_options.h"

#include "configs/job.pb.h"

namespace lockstep::job {

namespace {

/// Gives an option the value of a field that has one.
template <class Value, class Option>
void take(bool has_value, const Value& value, Option& option) {
  if (has_value) option = static_cast<Option>(value);
}

std::optional<DType> dtype_of(Precision precision) {
  switch (precision) {
    case PRECISION_DEFAULT:
      return std::nullopt;
    case FP16:
      return DType::kFloat16;
    case BF16:
      return DType::kBFloat16;
    default:  // an open enum: FP32, or a number that validation has refused
      return DType::kFloat32;
  }
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
  take(adam.has_amsgrad(), adam.amsgrad(), options.amsgrad);
  return options;
}

}  // namespace

amp::AmpOptions amp_options(const Amp& amp) {
  amp::AmpOptions options;
  options.opt_level = opt_level_of(amp.opt_level());
  options.dtype = dtype_of(amp.dtype());
  take(amp.has_keep_batch_norm_fp32(), amp.keep_batch_norm_fp32(), options.keep_batch_norm_fp32);
  take(amp.has_master_weights(), amp.master_weights(), options.master_weights);
  options.cast_model_type = dtype_of(amp.cast_model_type());
  take(amp.has_autocast(), amp.autocast(), options.autocast);
  options.cast_model_outputs = dtype_of(amp.cast_model_outputs());
  return options;
}

optim::WeightMeanOptions weight_mean_options(const Ema& ema) {
  optim::WeightMeanOptions options;
  if (ema.has_decay()) options.decay = ema.decay();
  options.warmup = ema.warmup();
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

optim::AdagradOptions adagrad_options(const Adagrad& adagrad) {
  optim::AdagradOptions options;
  options.lr = adagrad.lr();
  take(adagrad.has_lr_decay(), adagrad.lr_decay(), options.lr_decay);
  take(adagrad.has_weight_decay(), adagrad.weight_decay(), options.weight_decay);
  take(adagrad.has_initial_accumulator_value(), adagrad.initial_accumulator_value(), options.initial_accumulator_value);
  take(adagrad.has_epsilon(), adagrad.epsilon(), options.epsilon);
  take(adagrad.has_adagrad_w_mode(), adagrad.adagrad_w_mode(), options.adagrad_w_mode);
  return options;
}

optim::LambOptions lamb_options(const Lamb& lamb) {
  optim::LambOptions options;
  options.lr = lamb.lr();
  take(lamb.has_beta1(), lamb.beta1(), options.beta1);
  take(lamb.has_beta2(), lamb.beta2(), options.beta2);
  take(lamb.has_epsilon(), lamb.epsilon(), options.epsilon);
  take(lamb.has_weight_decay(), lamb.weight_decay(), options.weight_decay);
  take(lamb.has_bias_correction(), lamb.bias_correction(), options.bias_correction);
  take(lamb.has_grad_averaging(), lamb.grad_averaging(), options.grad_averaging);
  take(lamb.has_max_grad_norm(), lamb.max_grad_norm(), options.max_grad_norm);
  take(lamb.has_use_nvlamb(), lamb.use_nvlamb(), options.use_nvlamb);
  take(lamb.has_adam_w_mode(), lamb.adam_w_mode(), options.adam_w_mode);
  return options;
}

optim::NovogradOptions novograd_options(const Novograd& novograd) {
  optim::NovogradOptions options;
  options.lr = novograd.lr();
  take(novograd.has_beta1(), novograd.beta1(), options.beta1);
  take(novograd.has_beta2(), novograd.beta2(), options.beta2);
  take(novograd.has_epsilon(), novograd.epsilon(), options.epsilon);
  take(novograd.has_weight_decay(), novograd.weight_decay(), options.weight_decay);
  take(novograd.has_bias_correction(), novograd.bias_correction(), options.bias_correction);
  take(novograd.has_grad_averaging(), novograd.grad_averaging(), options.grad_averaging);
  take(novograd.has_reg_inside_moment(), novograd.reg_inside_moment(), options.reg_inside_moment);
  take(novograd.norm() == LARGEST, optim::NovogradNorm::kLargest, options.norm);
  take(novograd.has_init_zero(), novograd.init_zero(), options.init_zero);
  return options;
}

optim::LarsOptions lars_options(const Lars& lars) {
  optim::LarsOptions options;
  options.lr = lars.lr();
  take(lars.has_momentum(), lars.momentum(), options.momentum);
  take(lars.has_weight_decay(), lars.weight_decay(), options.weight_decay);
  take(lars.has_trust_coefficient(), lars.trust_coefficient(), options.trust_coefficient);
  take(lars.has_epsilon(), lars.epsilon(), options.epsilon);
  take(lars.has_nesterov(), lars.nesterov(), options.nesterov);
  return options;
}

double learning_rate_of(const Optimizer& optimizer) {
  switch (optimizer.kind_case()) {
    case Optimizer::kSgd:
      return optimizer.sgd().lr();
    case Optimizer::kAdam:
      return optimizer.adam().lr();
    case Optimizer::kAdamw:
      return optimizer.adamw().lr();
    case Optimizer::kAdagrad:
      return optimizer.adagrad().lr();
    case Optimizer::kLamb:
      return optimizer.lamb().lr();
    case Optimizer::kNovograd:
      return optimizer.novograd().lr();
    case Optimizer::kLars:
      return optimizer.lars().lr();
    case Optimizer::KIND_NOT_SET:
      break;
  }
  return 0;
}

optim::OptimizerOptions optimizer_options(const Optimizer& optimizer) {
  optim::OptimizerOptions options;
  take(optimizer.has_clip_norm(), optimizer.clip_norm(), options.clip_norm);
  take(optimizer.has_clip_value(), optimizer.clip_value(), options.clip_value);
  if (optimizer.has_larc()) {
    const Larc& larc = optimizer.larc();
    optim::LarcOptions& own = options.larc.emplace();
    take(larc.has_trust_coefficient(), larc.trust_coefficient(), own.trust_coefficient);
    take(larc.has_clip(), larc.clip(), own.clip);
    take(larc.has_epsilon(), larc.epsilon(), own.epsilon);
  }
  for (const ParameterGroup& group : optimizer.group()) {
    optim::ParameterGroup& own = options.groups.emplace_back();
    own.match = group.match();
    take(group.has_lr_scale(), group.lr_scale(), own.lr_scale);
    take(group.has_weight_decay(), group.weight_decay(), own.weight_decay);
    take(group.has_layer_adaptation(), group.layer_adaptation(), own.layer_adaptation);
    take(group.has_frozen(), group.frozen(), own.frozen);
  }
  return options;
}

}  // namespace lockstep::job
