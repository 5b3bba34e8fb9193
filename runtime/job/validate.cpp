// SPDX-License-Identifier: Apache-2.0
#include "runtime/job/validate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>

#include "configs/job.pb.h"
#include "runtime/base/name_pattern.h"
#include "runtime/job/check_given.h"
#include "runtime/job/data_options.h"
#include "runtime/job/fault_point.h"
#include "runtime/job/training_options.h"
#include "runtime/job/validate_parts.h"

namespace lockstep::job {

namespace {

constexpr std::size_t kLongestName = 128;
/// Four months. Clocks count nanoseconds in 64 bits, and some limits are many times the timeout.
constexpr double kLongestTimeout = 1e7;

void validate_name(const std::string& name, Checker& checker) {
  const auto allowed = [](unsigned char c) { return std::isalnum(c) || c == '_' || c == '-' || c == '.'; };
  if (!std::ranges::all_of(name, allowed) || name.starts_with('.') || name.size() > kLongestName) {
    checker.error("name", fmt::format("must be at most {} letters, digits, '_', '-' or '.', the first one not '.'; is "
                                      "\"{}\"",
                                      kLongestName, name));
  }
}

void validate_comm(const Comm& comm, Checker& checker) {
  checker.adopt(problems_of(ddp_options(comm)), "comm");
  const double timeout = comm.timeout_s();
  checker.check(timeout > 0 && timeout <= kLongestTimeout, "comm.timeout_s", "> 0 and <= 1e7", timeout);
}

void validate_init_from(const InitFrom& from, Checker& checker) {
  if (checker.require(!from.path().empty(), "init_from.path", "a checkpoint, a run directory or a file of weights")) {
    const bool there = std::filesystem::exists(from.path());
    if (!there) checker.error("init_from.path", "there is nothing at \"" + from.path() + "\"");
  }
  const auto check = [&checker](const auto& patterns, const std::string& field) {
    for (int i = 0; i < patterns.size(); ++i) {
      const std::string problem = NamePattern::problem_of(patterns[i]);
      if (!problem.empty()) {
        checker.error(element_path("init_from." + field, i), "is no regular expression: " + problem);
      }
    }
  };
  check(from.match(), "match");
  check(from.except(), "except");
}

/// For what follows the evaluations.
void require_evaluations(const Job& job, const std::string& path, Checker& checker) {
  if (job.train().eval_every() == 0 && checker.trusts({"train.eval_every"})) {
    checker.error(path, "needs train.eval_every");
  }
}

void validate_early_stopping(const Job& job, Checker& checker) {
  const EarlyStopping& early = job.train().early_stopping();
  checker.require(!early.metric().empty(), "train.early_stopping.metric", "a metric of the evaluations, \"eval.loss\"");
  checker.at_least_one(early.patience(), "train.early_stopping.patience");
  checker.not_negative(early.min_delta(), "train.early_stopping.min_delta");
  require_evaluations(job, "train.early_stopping", checker);
}

void validate_train(const Job& job, Checker& checker) {
  const Train& train = job.train();
  const data::Targets targets = targets_of(job.data().train());
  const bool regression = targets != data::Targets::kClasses;
  if (train.length_case() == Train::kEpochs) {
    checker.positive(train.epochs(), "train.epochs");
  } else {
    checker.required_positive(train.steps(), "train.steps", "the number of optimizer steps, or train.epochs");
  }
  checker.at_least_one(train.accumulate(), "train.accumulate");
  checker.at_least_one(train.log_every(), "train.log_every");
  if (job.data().global_batch() > 0 && checker.trusts({"train.accumulate", "data.global_batch"})) {
    checker.check(train.accumulate() <= job.data().global_batch(), "train.accumulate", "<= data.global_batch",
                  train.accumulate());
  }
  if (train.eval_every() > 0 && !evaluates(job.data()) && checker.trusts({"data.eval", "data.eval_share"}))
    checker.error("train.eval_every", "needs data.eval or data.eval_share");
  if (train.has_early_stopping()) validate_early_stopping(job, checker);
  if (!job.checkpoint().best().empty() && !evaluates(job.data()) && checker.trusts({"data.eval", "data.eval_share"})) {
    checker.error("checkpoint.best", "needs data.eval or data.eval_share");
  }
  checker.fraction(train.label_smoothing(), "train.label_smoothing");
  if (train.has_ema()) checker.adopt(optim::problems_of(weight_mean_options(train.ema())), "train.ema");
  for (int i = 0; i < train.class_weight_size(); ++i) {
    checker.not_negative(train.class_weight(i), element_path("train.class_weight", i));
  }
  if (const auto own = registered_loss(train)) {
    const std::string path = "train.registered_loss";
    check_given<RegisteredOptions>(train.registered_loss(), path, checker);
    checker.adopt(problems_of(*own), path);
    if (train.loss() != LOSS_DEFAULT) checker.error(path, "stands in place of train.loss: give one");
  }
  if (!checker.trusts({"train.loss", "data.train"})) return;
  const bool registered = train.has_registered_loss();
  const bool of_classes = train.loss() == CROSS_ENTROPY && !registered;
  if (of_classes && regression) {
    checker.error("train.loss", "CROSS_ENTROPY needs classes, but data.train is regression data; use " +
                                    std::string(targets == data::Targets::kMasks ? "BCE_DICE" : "MSE"));
  } else if (!of_classes && !registered && !regression && job.data().has_train()) {
    checker.error("train.loss", LossKind_Name(train.loss()) +
                                    " needs regression data, but data.train has classes; use CROSS_ENTROPY");
  }
  if (!of_classes && train.label_smoothing() > 0) {
    checker.error("train.label_smoothing", "needs loss CROSS_ENTROPY");
  }
  if (!of_classes && train.class_weight_size() > 0) {
    checker.error("train.class_weight", "needs loss CROSS_ENTROPY");
  }
}

void validate_fault(const Fault& fault, const std::string& path, const Train& train, Checker& checker) {
  const FaultPoint* point = point_of(fault);
  if (!checker.require(point != nullptr, path, "one of overflow, nan, kill, stop, delay, bit_flip")) return;
  const auto* kind = Fault::descriptor()->FindOneofByName("kind");
  const std::string at = join_path(path, fault.GetReflection()->GetOneofFieldDescriptor(fault, kind)->name());
  const bool has_step = point->phase() != INIT;
  if (has_step) checker.required_positive(point->step(), at + ".step", "the step, counted from 1");
  const bool happens_to_the_rank = fault.has_kill() || fault.has_stop() || fault.has_delay();
  if (happens_to_the_rank && point->phase() == LOSS) {
    checker.error(at + ".phase", "LOSS is for nan; expected INIT, FORWARD, BACKWARD, ALL_REDUCE or SAVE");
  }
  if (!checker.trusts({at + ".micro_batch", "train.accumulate"})) return;
  checker.check(point->micro_batch() < std::max(train.accumulate(), 1u), at + ".micro_batch", "< train.accumulate",
                point->micro_batch());
}

}  // namespace

void validate(const Job& resolved, const Job& written, const Locations& locations, Diagnostics& diagnostics) {
  Checker checker(locations, diagnostics);
  validate_name(resolved.name(), checker);
  validate_model(resolved.model(), written.model(), checker);
  if (checker.require(resolved.has_data(), "data", "global_batch and a train data set")) {
    validate_data(resolved.data(), written.data(), checker);
  }
  validate_amp(resolved.amp(), checker);
  validate_comm(resolved.comm(), checker);
  validate_optimizer(resolved.optimizer(), written.optimizer(), checker);
  validate_schedule(resolved.schedule(), written.schedule(), checker);
  if (resolved.schedule().has_reduce_on_plateau()) {
    require_evaluations(resolved, "schedule.reduce_on_plateau", checker);
  }
  validate_train(resolved, checker);
  if (resolved.has_init_from()) validate_init_from(resolved.init_from(), checker);
  for (int i = 0; i < resolved.fault_size(); ++i) {
    validate_fault(resolved.fault(i), element_path("fault", i), resolved.train(), checker);
  }
}

}  // namespace lockstep::job
