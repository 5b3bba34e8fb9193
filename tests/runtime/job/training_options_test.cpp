// SPDX-License-Identifier: Apache-2.0
#include "runtime/job/training_options.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>

#include "runtime/job/defaults.h"
#include "runtime/job/make_optimizer.h"
#include "runtime/job/message_options.h"
#include "runtime/nn/layers.h"
#include "tests/runtime/job/sample_job.h"

namespace lockstep::job {
namespace {

using ::testing::HasSubstr;

/// A part of a job, with its defaults written out.
Job resolved(const std::string& text) {
  Job job;
  if (!google::protobuf::TextFormat::ParseFromString(text, &job)) throw UsageError("not a job: " + text);
  fill_defaults(job, "test.pbtxt", ".");
  return job;
}

// The defaults that fill_defaults() writes into a job are those of the option structs, field by field.

TEST(Defaults, OfALossScaleAreThoseOfItsOptions) {
  EXPECT_EQ(grad_scaler_options(resolved("amp { opt_level: O1 }").amp().loss_scale()), amp::GradScalerOptions{});
  EXPECT_EQ(grad_scaler_options(resolved("amp { opt_level: O2 }").amp().loss_scale()), amp::GradScalerOptions{});
  EXPECT_EQ(grad_scaler_options({}), amp::GradScalerOptions{});
}

TEST(Defaults, OfPrecisionAreThoseOfItsOptions) {
  EXPECT_EQ(amp_options({}), amp::AmpOptions{});
  EXPECT_EQ(amp_options(resolved("").amp()).opt_level, amp::AmpOptions{}.opt_level);
  for (const auto& [text, level] : {std::pair{"O0", amp::OptLevel::kO0}, std::pair{"O1", amp::OptLevel::kO1},
                                    std::pair{"O2", amp::OptLevel::kO2}, std::pair{"O3", amp::OptLevel::kO3}}) {
    const Amp amp = resolved(std::string("amp { opt_level: ") + text + " }").amp();
    EXPECT_EQ(amp::properties_of(amp_options(amp)), amp::properties_of({.opt_level = level})) << text;
  }
}

TEST(Defaults, OfCommunicationAreThoseOfItsOptions) {
  EXPECT_EQ(ddp_options({}), comm::DdpOptions{});
  comm::DdpOptions options = ddp_options(resolved("").comm());
  EXPECT_EQ(options.wire_dtype, DType::kFloat32) << "the job says which one the compute dtype is";
  options.wire_dtype = std::nullopt;
  EXPECT_EQ(options, comm::DdpOptions{});
}

TEST(Defaults, OfOptimizersAreThoseOfTheirOptions) {
  const auto of = [](const char* kind) {
    return resolved(std::string("optimizer { ") + kind + " { lr: 0.5 } }").optimizer();
  };
  EXPECT_EQ(options_of<optim::SgdOptions>(of("sgd").sgd()), optim::SgdOptions{.lr = 0.5});
  EXPECT_EQ(options_of<optim::AdamOptions>(of("adam").adam()), optim::AdamOptions{.lr = 0.5});
  EXPECT_EQ(options_of<optim::AdamwOptions>(of("adamw").adamw()), optim::AdamwOptions{.lr = 0.5});
  EXPECT_EQ(options_of<optim::AdagradOptions>(of("adagrad").adagrad()), optim::AdagradOptions{.lr = 0.5});
  EXPECT_EQ(options_of<optim::LambOptions>(of("lamb").lamb()), optim::LambOptions{.lr = 0.5});
  EXPECT_EQ(options_of<optim::NovogradOptions>(of("novograd").novograd()), optim::NovogradOptions{.lr = 0.5});
  EXPECT_EQ(options_of<optim::LarsOptions>(of("lars").lars()), optim::LarsOptions{.lr = 0.5});
  EXPECT_EQ(optimizer_options(of("sgd")), optim::OptimizerOptions{});
  EXPECT_EQ(options_of<optim::SgdOptions>(Sgd()), optim::SgdOptions{});
  EXPECT_EQ(options_of<optim::AdamOptions>(Adam()), optim::AdamOptions{});
  EXPECT_EQ(options_of<optim::AdamwOptions>(Adam()), optim::AdamwOptions{});
  EXPECT_EQ(options_of<optim::AdagradOptions>(Adagrad()), optim::AdagradOptions{});
  EXPECT_EQ(options_of<optim::LambOptions>(Lamb()), optim::LambOptions{});
  EXPECT_EQ(options_of<optim::NovogradOptions>(Novograd()), optim::NovogradOptions{});
  EXPECT_EQ(options_of<optim::LarsOptions>(Lars()), optim::LarsOptions{});
  const auto larc = optim::OptimizerOptions{.larc = optim::LarcOptions{}};
  EXPECT_EQ(optimizer_options(resolved("optimizer { sgd { lr: 1 } larc { } }").optimizer()), larc);
  const auto grouped = optimizer_options(resolved("optimizer { group { match: \"a\" } }").optimizer());
  EXPECT_EQ(grouped, (optim::OptimizerOptions{.groups = {{.match = "a"}}}));
}

TEST(Defaults, OfSchedulesAreThoseOfTheirOptions) {
  const auto of = [](const std::string& kind) {
    return schedule_options(resolved("schedule { " + kind + " }").schedule());
  };
  EXPECT_EQ(of(""), optim::ScheduleOptions{});
  EXPECT_EQ(of("constant {}"), optim::ScheduleOptions(optim::ConstantSchedule{}));
  EXPECT_EQ(of("step {}"), optim::ScheduleOptions(optim::StepSchedule{}));
  EXPECT_EQ(of("cosine {}"), optim::ScheduleOptions(optim::CosineSchedule{}));
  EXPECT_EQ(of("linear {}"), optim::ScheduleOptions(optim::LinearSchedule{}));
}

TEST(Translation, TakesEveryFieldOfPrecision) {
  const Amp amp = resolved(R"(amp { opt_level: O3 dtype: BF16 keep_batch_norm_fp32: true master_weights: true
      cast_model_type: BF16 autocast: true cast_model_outputs: FP16
      loss_scale { init: 8 growth_factor: 3 backoff_factor: 0.25 growth_interval: 7 min: 2 max: 64
                   max_consecutive_skips: 5 dynamic: false } })")
                      .amp();
  EXPECT_EQ(amp_options(amp), (amp::AmpOptions{.opt_level = amp::OptLevel::kO3,
                                               .dtype = DType::kBFloat16,
                                               .keep_batch_norm_fp32 = true,
                                               .master_weights = true,
                                               .cast_model_type = DType::kBFloat16,
                                               .autocast = true,
                                               .cast_model_outputs = DType::kFloat16}));
  EXPECT_EQ(grad_scaler_options(amp.loss_scale()), (amp::GradScalerOptions{.dynamic = false,
                                                                           .init = 8,
                                                                           .growth_factor = 3,
                                                                           .backoff_factor = 0.25,
                                                                           .growth_interval = 7,
                                                                           .min = 2,
                                                                           .max = 64,
                                                                           .max_consecutive_skips = 5}));
}

TEST(Translation, TakesEveryFieldOfCommunication) {
  const Comm comm = resolved(R"(comm { bucket_mb: 3 first_bucket_mb: 2 wire_dtype: FP16 sync_batch_norm: false
      gradient_average: false gradient_predivide_factor: 4 find_unused: true bucket_ends: ["a.weight", "b.bias"]
      delay_reduction: true reduction_streams: 2 reduce_in_float32: true sync_batch_norm_group: 3 })")
                        .comm();
  EXPECT_EQ(ddp_options(comm), (comm::DdpOptions{.bucket_mb = 3,
                                                 .first_bucket_mb = 2,
                                                 .bucket_ends = {"a.weight", "b.bias"},
                                                 .delay_reduction = true,
                                                 .reduction_streams = 2,
                                                 .wire_dtype = DType::kFloat16,
                                                 .reduce_in_float32 = true,
                                                 .sync_batch_norm = false,
                                                 .sync_batch_norm_group = 3,
                                                 .gradient_average = false,
                                                 .gradient_predivide_factor = 4,
                                                 .find_unused = true}));
}

TEST(Translation, TakesEveryFieldOfOptimizers) {
  const Optimizer sgd =
      resolved(R"(optimizer { sgd { lr: 1 momentum: 0.5 weight_decay: 2 nesterov: true dampening: 0.25 }
      clip_norm: 3 clip_value: 4 group { match: "x" lr_scale: 5 weight_decay: 6 } })")
          .optimizer();
  EXPECT_EQ(options_of<optim::SgdOptions>(sgd.sgd()),
            (optim::SgdOptions{.lr = 1, .momentum = 0.5, .weight_decay = 2, .nesterov = true, .dampening = 0.25}));
  EXPECT_EQ(optimizer_options(sgd),
            (optim::OptimizerOptions{
                .clip_norm = 3, .clip_value = 4, .groups = {{.match = "x", .lr_scale = 5, .weight_decay = 6}}}));
  const Adam adam =
      resolved("optimizer { adam { lr: 1 beta1: 0.5 beta2: 0.25 epsilon: 2 weight_decay: 3 amsgrad: true } }")
          .optimizer()
          .adam();
  EXPECT_EQ(
      options_of<optim::AdamOptions>(adam),
      (optim::AdamOptions{.lr = 1, .beta1 = 0.5, .beta2 = 0.25, .epsilon = 2, .weight_decay = 3, .amsgrad = true}));
  EXPECT_EQ(
      options_of<optim::AdamwOptions>(adam),
      (optim::AdamwOptions{.lr = 1, .beta1 = 0.5, .beta2 = 0.25, .epsilon = 2, .weight_decay = 3, .amsgrad = true}));
  const Adagrad adagrad = resolved(R"(optimizer { adagrad { lr: 1 lr_decay: 2 weight_decay: 3
      initial_accumulator_value: 4 epsilon: 5 adagrad_w_mode: true } })")
                              .optimizer()
                              .adagrad();
  EXPECT_EQ(options_of<optim::AdagradOptions>(adagrad), (optim::AdagradOptions{.lr = 1,
                                                                               .lr_decay = 2,
                                                                               .weight_decay = 3,
                                                                               .initial_accumulator_value = 4,
                                                                               .epsilon = 5,
                                                                               .adagrad_w_mode = true}));
  const Lamb lamb = resolved(R"(optimizer { lamb { lr: 1 beta1: 0.5 beta2: 0.25 epsilon: 2 weight_decay: 3
      bias_correction: false grad_averaging: false max_grad_norm: 4 use_nvlamb: true adam_w_mode: false } })")
                        .optimizer()
                        .lamb();
  EXPECT_EQ(options_of<optim::LambOptions>(lamb), (optim::LambOptions{.lr = 1,
                                                                      .beta1 = 0.5,
                                                                      .beta2 = 0.25,
                                                                      .epsilon = 2,
                                                                      .weight_decay = 3,
                                                                      .bias_correction = false,
                                                                      .grad_averaging = false,
                                                                      .max_grad_norm = 4,
                                                                      .use_nvlamb = true,
                                                                      .adam_w_mode = false}));
  const Novograd novograd = resolved(R"(optimizer { novograd { lr: 1 beta1: 0.5 beta2: 0.25 epsilon: 2 weight_decay: 3
      bias_correction: false grad_averaging: false reg_inside_moment: true norm: LARGEST init_zero: true } })")
                                .optimizer()
                                .novograd();
  EXPECT_EQ(options_of<optim::NovogradOptions>(novograd), (optim::NovogradOptions{.lr = 1,
                                                                                  .beta1 = 0.5,
                                                                                  .beta2 = 0.25,
                                                                                  .epsilon = 2,
                                                                                  .weight_decay = 3,
                                                                                  .bias_correction = false,
                                                                                  .grad_averaging = false,
                                                                                  .reg_inside_moment = true,
                                                                                  .norm = optim::NovogradNorm::kLargest,
                                                                                  .init_zero = true}));
  const Optimizer lars = resolved(R"(optimizer { lars { lr: 1 momentum: 0.5 weight_decay: 2 trust_coefficient: 3
      epsilon: 4 nesterov: true } larc { trust_coefficient: 5 clip: false epsilon: 6 }
      group { match: "x" layer_adaptation: false } })")
                             .optimizer();
  EXPECT_EQ(options_of<optim::LarsOptions>(lars.lars()),
            (optim::LarsOptions{
                .lr = 1, .momentum = 0.5, .weight_decay = 2, .trust_coefficient = 3, .epsilon = 4, .nesterov = true}));
  EXPECT_EQ(optimizer_options(lars),
            (optim::OptimizerOptions{.groups = {{.match = "x", .layer_adaptation = false}},
                                     .larc = optim::LarcOptions{.trust_coefficient = 5, .clip = false, .epsilon = 6}}));
}

TEST(Translation, TakesEveryFieldOfSchedules) {
  const auto of = [](const std::string& kind) {
    return schedule_options(resolved("schedule { " + kind + " }").schedule());
  };
  EXPECT_EQ(of("constant { warmup_steps: 3 }"), optim::ScheduleOptions(optim::ConstantSchedule{.warmup_steps = 3}));
  EXPECT_EQ(of("step { warmup_steps: 3 milestones: [4, 5] gamma: 0.5 }"),
            optim::ScheduleOptions(optim::StepSchedule{.warmup_steps = 3, .milestones = {4, 5}, .gamma = 0.5}));
  EXPECT_EQ(of("cosine { warmup_steps: 3 final_fraction: 0.5 }"),
            optim::ScheduleOptions(optim::CosineSchedule{.warmup_steps = 3, .final_fraction = 0.5}));
  EXPECT_EQ(of("linear { warmup_steps: 3 final_fraction: 0.5 }"),
            optim::ScheduleOptions(optim::LinearSchedule{.warmup_steps = 3, .final_fraction = 0.5}));
}

/// The path of the FieldError that making the optimizer gives, and its message.
std::string refusal(const std::string& text) {
  const nn::Linear layer(2, 2);
  try {
    make_optimizer(resolved("optimizer { " + text + " }").optimizer(), layer.parameters());
  } catch (const FieldError& error) {
    return error.path() + ": " + error.message();
  }
  return "";
}

TEST(MakeOptimizer, MakesTheOneThatTheJobNames) {
  const nn::Linear layer(2, 2);
  for (const std::string kind : {"sgd", "adam", "adamw", "adagrad", "lamb", "novograd", "lars"}) {
    const Optimizer optimizer = resolved("optimizer { " + kind + " { lr: 0.5 } }").optimizer();
    const auto made = make_optimizer(optimizer, layer.parameters());
    EXPECT_EQ(made->name(), kind);
    EXPECT_EQ(made->learning_rate(), 0.5);
    EXPECT_EQ(learning_rate_of(optimizer), 0.5);
  }
}

TEST(MakeOptimizer, NamesTheJobsField) {
  EXPECT_THAT(refusal(""), HasSubstr("optimizer: none is named"));
  EXPECT_EQ(refusal("sgd {}"), "optimizer.sgd.lr: must be > 0, is 0");
  EXPECT_EQ(refusal("adam { lr: 1 beta1: 2 }"), "optimizer.adam.beta1: must be >= 0 and < 1, is 2");
  EXPECT_EQ(refusal("adamw { lr: 1 epsilon: 0 }"), "optimizer.adamw.epsilon: must be > 0, is 0");
  EXPECT_EQ(refusal("adagrad { lr: 1 epsilon: 0 }"), "optimizer.adagrad.epsilon: must be > 0, is 0");
  EXPECT_EQ(refusal("lamb { lr: 1 max_grad_norm: -1 }"), "optimizer.lamb.max_grad_norm: must be >= 0, is -1");
  EXPECT_EQ(refusal("novograd { lr: 1 beta2: 1 }"), "optimizer.novograd.beta2: must be >= 0 and < 1, is 1");
  EXPECT_EQ(refusal("lars { lr: 1 trust_coefficient: 0 }"), "optimizer.lars.trust_coefficient: must be > 0, is 0");
  EXPECT_THAT(refusal("lamb { lr: 1 } larc { }"), HasSubstr("optimizer.larc: needs sgd, adam"));
  EXPECT_EQ(refusal("sgd { lr: 1 } clip_norm: -1"), "optimizer.clip_norm: must be > 0, is -1");
  EXPECT_THAT(refusal("sgd { lr: 1 } group { match: \"weight\" } group { match: \"gamma\" }"),
              HasSubstr("optimizer.group[1].match: \"gamma\" matches no parameter"));
}

/// A message that nobody resolved has the defaults of the options, not protobuf's zeros.
TEST(HalfFilledMessages, HaveTheDefaultsOfTheOptions) {
  Comm comm;
  comm.set_bucket_mb(4);
  EXPECT_EQ(ddp_options(comm), comm::DdpOptions{.bucket_mb = 4});
  Adam adam;
  adam.set_lr(0.5);
  EXPECT_EQ(options_of<optim::AdamOptions>(adam), optim::AdamOptions{.lr = 0.5});
}

}  // namespace
}  // namespace lockstep::job
