// SPDX-License-Identifier: Apache-2.0
// A resumed run is the run that was never interrupted, bit for bit; and it needs everything that a checkpoint holds.
#include <gmock/gmock.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/checkpoint/checksum.h"
#include "runtime/checkpoint/store.h"
#include "runtime/job/job.h"
#include "runtime/step/state_fields.h"
#include "runtime/train/train.h"

namespace lockstep::train {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::ThrowsMessage;

constexpr std::uint64_t kSteps = 50;

/// fp16 with dropout and augmentation; over two epochs of 24 steps; the scale grows and falls, and the run ends in
/// skips. It follows a metric, which never improves by so much: at steps 10 and 20 the rate stays, at 30 it is reduced.
const std::vector<std::string> kSettings = {
    "train.steps=50",
    "train.eval_every=10",
    "train.early_stopping.metric=eval.loss",
    "train.early_stopping.patience=50",
    "train.early_stopping.min_delta=100",
    "checkpoint.every_steps=0",
    "checkpoint.keep=0",
    "schedule={ reduce_on_plateau { warmup_steps: 5 factor: 0.5 patience: 1 threshold: 100 threshold_mode: ABSOLUTE "
    "cooldown: 1 } }",
    "amp.loss_scale.growth_interval=8",
    "fault=[{overflow{step:4}}, {overflow{step:11}}, {overflow{step:12}}, {nan{step:25}}, {overflow{step:48}}, "
    "{overflow{step:49}}, {overflow{step:50}}]",
};

class Resume : public testing::Test {
 protected:
  // One uninterrupted run serves every test of the process.
  static void SetUpTestSuite() {
    folder_ = fs::temp_directory_path() / ("lockstep-resume-" + std::to_string(getpid()));
    run("reference", "never", {"checkpoint.every_steps=1"});
  }
  static void TearDownTestSuite() { fs::remove_all(folder_); }

  static void run(const std::string& name, const std::string& resume, const std::vector<std::string>& more = {}) {
    std::vector<std::string> settings = kSettings;
    settings.insert(settings.end(), more.begin(), more.end());
    comm::World world = comm::World::from_environment();
    TrainOptions options;
    options.job = job::load(LOCKSTEP_SOURCE_DIR "/configs/digits_convnet.pbtxt", settings);
    options.run_dir = folder_ / name;
    options.resume = resume;
    if (train(world, options) != ExitCode::kDone) throw std::runtime_error("the run did not end");
  }

  static checkpoint::Store store(const std::string& name) {
    return checkpoint::Store((folder_ / name / "checkpoints").string());
  }
  static checkpoint::Checkpoint load(const std::string& name, std::uint64_t step) {
    char file[32];
    std::snprintf(file, sizeof file, "step-%08llu", static_cast<unsigned long long>(step));
    return store(name).load(store(name).directory() + "/" + file);
  }

  /// All that a run came to: every tensor of its last checkpoint, and every field but how often it saved.
  static std::string outcome(const std::string& name) {
    checkpoint::Checkpoint last = load(name, kSteps);
    last.state.clear_job();
    last.state.clear_job_hash();
    std::string text = last.state.ShortDebugString();
    for (const auto& [tensor_name, tensor] : last.tensors) {
      const auto* bytes = static_cast<const std::byte*>(tensor.data());
      text += "\n" + tensor_name + " " + checkpoint::digest_of({bytes, tensor.bytes()}).checksum;
    }
    return text;
  }

  /// Resumes the run from the checkpoint of `step`, changed by `edit`, in a directory of its own. Its name.
  static std::string resume_edited(std::uint64_t step, const std::function<void(checkpoint::Checkpoint&)>& edit,
                                   const std::vector<std::string>& more = {}) {
    checkpoint::Checkpoint saved = load("reference", step);
    edit(saved);
    static int count = 0;
    const std::string name = "edited-" + std::to_string(count++);
    const std::string path = store(name + "-from").save(saved.state, saved.tensors);
    run(name, path, more);
    return name;
  }
  static std::string outcome_after(std::uint64_t step, const std::function<void(checkpoint::Checkpoint&)>& edit) {
    return outcome(resume_edited(step, edit));
  }

  static fs::path folder_;
};

fs::path Resume::folder_;

TEST_F(Resume, FromEveryStepGivesTheSameBits) {
  const std::string expected = outcome("reference");
  for (std::uint64_t step = 1; step < kSteps; ++step) {
    const std::string name = "from-" + std::to_string(step);
    run(name, load("reference", step).path);
    EXPECT_EQ(outcome(name), expected) << "resumed from step " << step;
    fs::remove_all(folder_ / name);
  }
}

/// "sampler.cursor": every field of the state down to scalars, but for the job and the bucket plan.
void collect_fields(const google::protobuf::Descriptor& message, const std::string& prefix,
                    std::set<std::string>& names) {
  for (int i = 0; i < message.field_count(); ++i) {
    const google::protobuf::FieldDescriptor& field = *message.field(i);
    const std::string name = prefix + field.name();
    if (field.message_type() == nullptr || name == "job" || name == "bucket_plan" || name == "environment" ||
        name == "data_digest") {
      names.insert(name);
    } else {
      collect_fields(*field.message_type(), name + ".", names);
    }
  }
}

TEST_F(Resume, NeedsEveryFieldOfTheState) {
  const std::string expected = outcome("reference");
  // Step 40: in the middle of the second epoch and of a growth interval, after skips. Step 49: amid skips.
  EXPECT_EQ(outcome_after(40, [](auto&) {}), expected) << "an unchanged copy";
  using State = checkpoint::TrainingState;
  const std::vector<std::tuple<const char*, std::uint64_t, std::function<void(State&)>>> omissions = {
      {"step", 40, [](State& state) { state.clear_step(); }},
      {"schedule.applied_steps", 40, [](State& state) { state.mutable_schedule(0)->clear_applied_steps(); }},
      {"sampler.epoch", 40, [](State& state) { state.mutable_sampler()->clear_epoch(); }},
      {"sampler.cursor", 40, [](State& state) { state.mutable_sampler()->clear_cursor(); }},
      {"scaler.growth_tracker", 40, [](State& state) { state.mutable_scaler(0)->clear_growth_tracker(); }},
      {"scaler.skipped_steps", 40, [](State& state) { state.mutable_scaler(0)->clear_skipped_steps(); }},
      {"scaler.consecutive_skips", 49, [](State& state) { state.mutable_scaler(0)->clear_consecutive_skips(); }},
      {"scaler.scale", 40, [](State& state) { state.mutable_scaler(0)->set_scale(65536); }},
      {"skipped_samples", 40, [](State& state) { state.clear_skipped_samples(); }},
      {"epoch_skipped_samples", 49, [](State& state) { state.clear_epoch_skipped_samples(); }},
      {"evaluated_step", 40, [](State& state) { state.clear_evaluated_step(); }},
      {"early_stopping.metric", 40, [](State& state) { state.mutable_early_stopping()->clear_metric(); }},
      {"early_stopping.best", 40, [](State& state) { state.mutable_early_stopping()->clear_best(); }},
      {"early_stopping.evaluations_since", 40,
       [](State& state) { state.mutable_early_stopping()->clear_evaluations_since(); }},
      {"reduce_on_plateau.metric", 20, [](State& state) { state.mutable_reduce_on_plateau()->clear_metric(); }},
      {"reduce_on_plateau.best", 20, [](State& state) { state.mutable_reduce_on_plateau()->clear_best(); }},
      {"reduce_on_plateau.bad_evaluations", 20,
       [](State& state) { state.mutable_reduce_on_plateau()->clear_bad_evaluations(); }},
      {"reduce_on_plateau.cooldown_left", 30,
       [](State& state) { state.mutable_reduce_on_plateau()->clear_cooldown_left(); }},
      {"reduce_on_plateau.reductions", 40, [](State& state) { state.mutable_reduce_on_plateau()->clear_reductions(); }},
  };
  // What a run goes on without: records for people and tools (inspect, the list of what changed), and what is checked
  // against the job instead of being taken over.
  std::set<std::string> known = {"lockstep_version",
                                 "format",
                                 "epoch",
                                 "rng_seed",
                                 "job",
                                 "job_hash",
                                 "world_size",
                                 "weights_digest",
                                 "environment",
                                 "data_digest",
                                 "bucket_plan",
                                 "schedule.last_learning_rate",
                                 "schedule.name",
                                 "scaler.name",
                                 "sampler.seed",
                                 "optimizer",
                                 "scaler.enabled",
                                 "scaler.growth_factor",
                                 "scaler.backoff_factor",
                                 "scaler.growth_interval"};
  // The state in best/ is asked instead: WithoutWholeBestWeightsTheNextEvaluationIsTheBest.
  known.insert({"best.metric", "best.best", "best.evaluations_since"});
  for (const auto& [field, step, drop] : omissions) known.insert(field);
  std::set<std::string> all;
  collect_fields(*State::descriptor(), "", all);
  // A resumed run takes it from its training data again.
  std::erase_if(all, [](const std::string& field) { return field.starts_with("preparation."); });
  EXPECT_EQ(known, all) << "a new field is either needed or a record";
  // This run skips no sample by itself.
  const auto skip = [](checkpoint::Checkpoint& saved) {
    saved.state.set_skipped_samples(5);
    saved.state.set_epoch_skipped_samples(3);
  };
  std::map<std::uint64_t, std::string> with_all;
  for (const std::uint64_t step : {20, 30, 40, 49}) with_all[step] = outcome_after(step, skip);
  for (const auto& [field, step, drop] : omissions) {
    const auto edit = [&](checkpoint::Checkpoint& saved) {
      skip(saved);
      drop(saved.state);
      saved.state.clear_format();  // which would have the omission refused
    };
    EXPECT_NE(outcome_after(step, edit), with_all.at(step)) << field;
  }
}

/// As a run saves it that keeps the best weights; no loss is better.
void keep_best(checkpoint::TrainingState& state) {
  state.mutable_job()->mutable_checkpoint()->set_best("eval.loss");
  state.mutable_best()->set_metric("eval.loss");
  state.mutable_best()->set_best(-1);
  state.mutable_best()->set_evaluations_since(2);
}

const std::vector<std::string> kKeepBest = {"checkpoint.best=eval.loss"};

// The bits would be others without a word.
TEST_F(Resume, RefusesAStateThatLacksAField) {
  using State = checkpoint::TrainingState;
  const std::vector<std::pair<const char*, std::function<void(State&)>>> omissions = {
      {"step", [](State& state) { state.clear_step(); }},
      {"skipped_samples", [](State& state) { state.clear_skipped_samples(); }},
      {"epoch_skipped_samples", [](State& state) { state.clear_epoch_skipped_samples(); }},
      {"evaluated_step", [](State& state) { state.clear_evaluated_step(); }},
      {"best", [](State& state) { state.clear_best(); }},
      {"best.metric", [](State& state) { state.mutable_best()->clear_metric(); }},
      {"best.best", [](State& state) { state.mutable_best()->clear_best(); }},
      {"best.evaluations_since", [](State& state) { state.mutable_best()->clear_evaluations_since(); }},
      {"early_stopping", [](State& state) { state.clear_early_stopping(); }},
      {"early_stopping", [](State& state) { state.clear_early_stopping(), state.clear_format(); }},
      {"early_stopping", [](State& state) { state.mutable_early_stopping()->set_metric(""); }},
      {"early_stopping.metric", [](State& state) { state.mutable_early_stopping()->clear_metric(); }},
      {"early_stopping.best", [](State& state) { state.mutable_early_stopping()->clear_best(); }},
      {"early_stopping.evaluations_since",
       [](State& state) { state.mutable_early_stopping()->clear_evaluations_since(); }},
      {"reduce_on_plateau", [](State& state) { state.clear_reduce_on_plateau(); }},
      {"reduce_on_plateau.metric", [](State& state) { state.mutable_reduce_on_plateau()->clear_metric(); }},
      {"reduce_on_plateau.best", [](State& state) { state.mutable_reduce_on_plateau()->clear_best(); }},
      {"reduce_on_plateau.bad_evaluations",
       [](State& state) { state.mutable_reduce_on_plateau()->clear_bad_evaluations(); }},
      {"reduce_on_plateau.cooldown_left",
       [](State& state) { state.mutable_reduce_on_plateau()->clear_cooldown_left(); }},
      {"reduce_on_plateau.reductions", [](State& state) { state.mutable_reduce_on_plateau()->clear_reductions(); }},
      {"sampler", [](State& state) { state.clear_sampler(); }},
      {"sampler.seed", [](State& state) { state.mutable_sampler()->clear_seed(); }},
      {"sampler.epoch", [](State& state) { state.mutable_sampler()->clear_epoch(); }},
      {"sampler.cursor", [](State& state) { state.mutable_sampler()->clear_cursor(); }},
      {"scaler[0].enabled", [](State& state) { state.mutable_scaler(0)->clear_enabled(); }},
      {"scaler[0].scale", [](State& state) { state.mutable_scaler(0)->clear_scale(); }},
      {"scaler[0].growth_factor", [](State& state) { state.mutable_scaler(0)->clear_growth_factor(); }},
      {"scaler[0].backoff_factor", [](State& state) { state.mutable_scaler(0)->clear_backoff_factor(); }},
      {"scaler[0].growth_interval", [](State& state) { state.mutable_scaler(0)->clear_growth_interval(); }},
      {"scaler[0].growth_tracker", [](State& state) { state.mutable_scaler(0)->clear_growth_tracker(); }},
      {"scaler[0].consecutive_skips", [](State& state) { state.mutable_scaler(0)->clear_consecutive_skips(); }},
      {"scaler[0].skipped_steps", [](State& state) { state.mutable_scaler(0)->clear_skipped_steps(); }},
      {"a schedule of each optimizer", [](State& state) { state.clear_schedule(), state.clear_format(); }},
      {"schedule[0].applied_steps", [](State& state) { state.mutable_schedule(0)->clear_applied_steps(); }},
  };
  const auto resume_without = [](const std::function<void(State&)>& drop) {
    const auto edit = [&](checkpoint::Checkpoint& saved) {
      keep_best(saved.state);
      drop(saved.state);
    };
    resume_edited(40, edit, kKeepBest);
  };
  EXPECT_NO_THROW(resume_without([](State&) {}));
  for (const auto& [field, drop] : omissions) {
    const auto resumed = [&] { resume_without(drop); };
    EXPECT_THAT(resumed, ThrowsMessage<StorageError>(HasSubstr(std::string(" lacks ") + field + "; lockstep ")));
  }
}

// As saved by the version before: what is 0 of an evaluation is not there, nor the seed.
TEST_F(Resume, GoesOnFromAStateOfTheFormatBefore) {
  const auto edit = [](checkpoint::Checkpoint& saved) {
    EXPECT_EQ(saved.state.evaluated_step(), 0u);
    EXPECT_EQ(saved.state.early_stopping().evaluations_since(), 0u);
    saved.state.set_format(1);
    saved.state.clear_evaluated_step();
    saved.state.mutable_early_stopping()->clear_evaluations_since();
    saved.state.mutable_sampler()->clear_seed();
  };
  EXPECT_EQ(outcome_after(9, edit), outcome("reference"));
}

// As saved by a loop of a user's own, whose scale is the run's from there on.
TEST_F(Resume, GoesOnWithTheScaleOfAStateWithoutAJob) {
  const auto edit = [](checkpoint::Checkpoint& saved) {
    saved.state.clear_job();
    saved.state.clear_job_hash();
  };
  EXPECT_EQ(outcome_after(40, edit), outcome("reference"));
}

TEST_F(Resume, WithoutWholeBestWeightsTheNextEvaluationIsTheBest) {
  const std::string name = resume_edited(
      40, [](auto& saved) { keep_best(saved.state); }, kKeepBest);
  const checkpoint::Store best((folder_ / name / "best").string());
  std::optional<checkpoint::Checkpoint> kept = best.latest();
  ASSERT_TRUE(kept) << "the value to beat is that of weights which are not there";
  EXPECT_EQ(kept->state.step(), kSteps);

  fs::remove_all(kept->path);
  kept->state.set_step(30);
  kept->state.mutable_best()->clear_best();  // 0, which no loss is better than
  best.save(kept->state, kept->tensors);
  run(name, "auto", kKeepBest);
  EXPECT_EQ(best.latest()->state.step(), kSteps);
  EXPECT_TRUE(best.latest()->state.best().has_best());
}

// As saved by a later version: fields of the state, of messages in it and of the job that this one does not know.
TEST_F(Resume, GoesOnFromAStateWithUnknownFields) {
  const auto add = [](google::protobuf::Message& message) {
    message.GetReflection()->MutableUnknownFields(&message)->AddVarint(1999, 7);
  };
  const auto edit = [&](checkpoint::Checkpoint& saved) {
    add(saved.state);
    add(*saved.state.mutable_sampler());
    add(*saved.state.mutable_job());
    add(*saved.state.mutable_job()->mutable_model());
  };
  EXPECT_EQ(outcome_after(40, edit), outcome("reference"));
}

// As saved by an earlier version: fields that were removed, and none that came since.
TEST_F(Resume, GoesOnFromAStateThatKnowsTheDataByTheirFiles) {
  const auto edit = [](checkpoint::Checkpoint& saved) {
    EXPECT_EQ(saved.state.data_digest_size(), 2);
    saved.state.clear_data_digest();
    const auto unknown = saved.state.GetReflection()->MutableUnknownFields(&saved.state);
    unknown->AddLengthDelimited(19, "a file");
    EXPECT_THAT(step::unknown_fields(saved.state), testing::IsEmpty());
    unknown->AddVarint(1999, 7);
    EXPECT_THAT(step::unknown_fields(saved.state), testing::ElementsAre("field 1999"));
  };
  EXPECT_EQ(outcome_after(40, edit), outcome("reference"));
}

TEST_F(Resume, NeedsEveryTensor) {
  const std::string expected = outcome("reference");
  for (const auto& [name, tensor] : load("reference", 20).tensors) {
    const auto drop = [&](checkpoint::Checkpoint& saved) {
      std::memset(saved.tensors.at(name).data(), 0, saved.tensors.at(name).bytes());
    };
    try {
      EXPECT_NE(outcome_after(20, drop), expected) << name;
    } catch (const NumericsError&) {  // what an evaluation says of weights that diverge: they are others
    }
  }
}

}  // namespace
}  // namespace lockstep::train
