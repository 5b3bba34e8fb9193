// SPDX-License-Identifier: Apache-2.0
#include "runtime/job/training_options.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>

#include "runtime/job/defaults.h"
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
  // Two kinds that share a message, and a default that differs.
  const Optimizer adam = resolved("optimizer { adam { lr: 0.5 } }").optimizer();
  const Optimizer adamw = resolved("optimizer { adamw { lr: 0.5 } }").optimizer();
  EXPECT_EQ(optimizer_kind(adam), optim::AnyOptions(optim::AdamOptions{.lr = 0.5}));
  EXPECT_EQ(optimizer_kind(adamw), optim::AnyOptions(optim::AdamwOptions{.lr = 0.5}));
  EXPECT_EQ(adamw.adamw().weight_decay(), optim::AdamwOptions().weight_decay);
  const auto larc = optim::OptimizerOptions{.larc = optim::LarcOptions{}};
  EXPECT_EQ(optimizer_options(resolved("optimizer { sgd { lr: 1 } larc { } }").optimizer()), larc);
  const auto grouped = optimizer_options(resolved("optimizer { group { match: \"a\" } }").optimizer());
  EXPECT_EQ(grouped, (optim::OptimizerOptions{.groups = {{.match = "a"}}}));
}

TEST(Defaults, OfAScheduleThatIsNotNamedIsAConstantOne) {
  EXPECT_EQ(schedule_options(resolved("").schedule()), optim::ScheduleOptions{});
  EXPECT_EQ(schedule_options(Schedule()), optim::ScheduleOptions(optim::ConstantSchedule{}));
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
  EXPECT_THAT(refusal(""), HasSubstr("optimizer: names no kind"));
  EXPECT_EQ(refusal("sgd {}"), "optimizer.sgd.lr: must be > 0, is 0");
  EXPECT_EQ(refusal("adam { lr: 1 beta1: 2 }"), "optimizer.adam.beta1: must be >= 0 and < 1, is 2");
  EXPECT_EQ(refusal("adamw { lr: 1 epsilon: 0 }"), "optimizer.adamw.epsilon: must be > 0, is 0");
  EXPECT_EQ(refusal("adagrad { lr: 1 epsilon: 0 }"), "optimizer.adagrad.epsilon: must be > 0, is 0");
  EXPECT_EQ(refusal("lamb { lr: 1 max_grad_norm: -1 }"), "optimizer.lamb.max_grad_norm: must be >= 0, is -1");
  EXPECT_EQ(refusal("novograd { lr: 1 beta2: 1 }"), "optimizer.novograd.beta2: must be >= 0 and < 1, is 1");
  EXPECT_EQ(refusal("lars { lr: 1 trust_coefficient: 0 }"), "optimizer.lars.trust_coefficient: must be > 0, is 0");
  EXPECT_THAT(refusal("lamb { lr: 1 } larc { }"), HasSubstr("optimizer.larc: cannot be used with lamb"));
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
