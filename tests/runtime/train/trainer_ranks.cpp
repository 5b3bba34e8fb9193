// SPDX-License-Identifier: Apache-2.0
// A program's own model, data and loss in a run as the command makes it. Run as 1 to 3 ranks.
#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "model_zoo/build.h"
#include "runtime/checkpoint/store.h"
#include "runtime/data/make_dataset.h"
#include "runtime/job/job.h"
#include "runtime/tensor/stream.h"
#include "runtime/train/train.h"
#include "runtime/train/trainer.h"
#include "tests/runtime/data/several_inputs.h"

namespace lockstep::train {
namespace {

namespace fs = std::filesystem;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kRest =
    "data { global_batch: 12 } optimizer { sgd { lr: 0.1 } } amp { opt_level: O0 dtype: FP32 } checkpoint { "
    "every_steps: 0 }"
    "train { steps: 8 eval_every: 4 }";

/// The job's side of what the program gives in these tests: the same model, data and loss.
const std::vector<std::string> kStock{
    "model={ mlp { hidden: 8 } }", "data.train={ synthetic { samples: 48 shape: 6 classes: 3 } }",
    "data.eval={ synthetic { samples: 48 shape: 6 classes: 3 } }", "train.loss=CROSS_ENTROPY"};

data::DatasetPtr data_of(data::Split split) {
  const data::SyntheticOptions synthetic{.samples = 48, .shape = {6}, .classes = 3};
  return data::make_dataset({.train = synthetic, .eval = synthetic}, split);
}

/// Tells what it is told, a word a call.
class Words final : public RunObserver {
 public:
  void step(const StepReport& report) override {
    add("step " + std::to_string(report.step) + " " + std::to_string(report.loss));
    if (on_step) on_step(report.step);
  }
  void evaluation(std::uint64_t step, const EvalResult& result) override {
    add("eval " + std::to_string(step) + " " + std::to_string(result.loss));
    if (on_evaluation) on_evaluation(step);
  }
  void learning_rate_reduced(std::uint64_t step, double rate, const std::string& reason) override {
    add("reduced " + std::to_string(step) + " " + std::to_string(rate) + " " + reason);
  }
  void stopped_early(std::uint64_t step, const std::string& reason) override {
    add("ended " + std::to_string(step) + " " + reason);
  }

  std::string all;
  std::function<void(std::uint64_t)> on_step, on_evaluation;

 private:
  void add(const std::string& word) { all += word + "\n"; }
};

class TrainerRanks : public testing::Test {
 protected:
  TrainerRanks() {
    const std::string name = "lockstep-trainer-" + std::to_string(getpid());
    run_ = world_.communicator()->broadcast_text((fs::temp_directory_path() / name).string(), 0);
  }
  ~TrainerRanks() override { begin_anew(); }

  /// Removes the run once no rank needs it.
  void begin_anew() {
    world_.communicator()->barrier(Stream::current(kCpu));
    if (world_.rank() == 0) fs::remove_all(run_);
    world_.communicator()->barrier(Stream::current(kCpu));
  }

  /// All that a job needs and `kRest` does not say, given by the program.
  TrainerOptions options() const {
    return {.job = kRest,
            .run_dir = run_,
            .quiet = true,
            .model =
                [](const model_zoo::ModelInput& input) {
                  return model_zoo::build(model_zoo::MlpOptions{.hidden = {8}}, input, 1);
                },
            .train_data = data_of(data::Split::kTrain),
            .eval_data = data_of(data::Split::kEval),
            .loss = ops::cross_entropy};
  }
  static TrainerOptions with(TrainerOptions options, const std::string& more) {
    options.job += more;
    return options;
  }

  /// The words of an observer on this rank; every rank's must be the same.
  std::string agreed(const Words& words) const {
    EXPECT_THAT(world_.communicator()->all_gather_text(words.all), Each(words.all));
    return words.all;
  }

  /// The weights' digest of the newest checkpoint; every rank gets it.
  std::string digest() const {
    std::string found;
    if (world_.rank() == 0)
      found = checkpoint::Store((run_ / "checkpoints").string()).latest()->state.weights_digest(0);
    return world_.communicator()->broadcast_text(found, 0);
  }
  std::string text_of(const std::string& file) const {
    std::ostringstream text;
    text << std::ifstream(run_ / file).rdbuf();
    return text.str();
  }

  void expect_refused(TrainerOptions options, const std::string& expected) {
    try {
      const Trainer trainer(world_, std::move(options));
      ADD_FAILURE() << "taken; expected: " << expected;
    } catch (const UsageError& error) {
      EXPECT_THAT(error.what(), HasSubstr(expected));
    }
  }

  comm::World world_ = comm::World::from_environment();
  fs::path run_;
};

TEST_F(TrainerRanks, TrainsWhatTheProgramGivesAsTheCommandTrainsAJob) {
  const job::Job job = job::load_text(kRest, "stock", kStock, fs::current_path());
  TrainOptions command;
  command.job = job;
  command.run_dir = run_;
  command.output.quiet = true;
  ASSERT_EQ(train(world_, command), ExitCode::kDone);
  const std::string expected = digest();
  begin_anew();

  Trainer trainer(world_, options());
  const TrainerResult result = trainer.run();
  EXPECT_EQ(result.code, ExitCode::kDone);
  EXPECT_EQ(result.step, 8u);
  ASSERT_TRUE(result.evaluation);
  EXPECT_EQ(result.evaluation->samples, 48);
  EXPECT_EQ(digest(), expected);
  if (world_.rank() != 0) return;
  EXPECT_THAT(text_of("summary.json"), HasSubstr("\"status\": \"done\""));
  EXPECT_THAT(text_of("metrics.jsonl"), HasSubstr("\"event\":\"eval\""));
  EXPECT_THAT(text_of("job.pbtxt"), HasSubstr("program\\'s own"));
}

TEST_F(TrainerRanks, AJobAloneSuffices) {
  TrainerOptions given{.job = kRest, .overrides = kStock, .run_dir = run_, .quiet = true};
  given.overrides.emplace_back("data.eval=unset");
  given.overrides.emplace_back("train.eval_every=0");
  const TrainerResult result = Trainer(world_, std::move(given)).run();
  EXPECT_EQ(result.step, 8u);
  EXPECT_FALSE(result.evaluation);
}

TEST_F(TrainerRanks, RefusesAModelThatTakesOtherInputs) {
  TrainerOptions given = options();
  given.train_data = given.eval_data = std::make_shared<data::ImagesTablesAndTexts>();
  Trainer trainer(world_, given);
  try {
    trainer.run();
    ADD_FAILURE() << "an MLP took a table of numbers beside images";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("model.mlp: takes tokens beside its first input, but data.train has [3]"));
  }
}

TEST_F(TrainerRanks, ObserversOnEveryRankHearTheSame) {
  Trainer trainer(world_, options());
  Words words;
  trainer.observe(words);
  trainer.run();
  const std::string heard = agreed(words);
  for (const char* const word : {"step 1 ", "step 8 ", "eval 4 ", "eval 8 "}) EXPECT_THAT(heard, HasSubstr(word));
}

TEST_F(TrainerRanks, ObserversOnEveryRankHearOfAReducedLearningRate) {
  TrainerOptions given = options();
  given.overrides = {"train.steps=12",
                     "schedule={ reduce_on_plateau { patience: 0 threshold: 100 threshold_mode: ABSOLUTE } }"};
  Trainer trainer(world_, std::move(given));
  Words words;
  trainer.observe(words);
  trainer.run();
  EXPECT_THAT(agreed(words), HasSubstr("reduced 8 0.010000 eval.loss has not improved on "));
}

TEST_F(TrainerRanks, ALearningRateGoesAsTheProgramSays) {
  TrainerOptions given = options();
  given.schedule = [](std::int64_t applied_steps) { return applied_steps < 4 ? 1.0 : 0.5; };
  Trainer(world_, given).run();
  const std::string own = digest();
  begin_anew();
  given.schedule = nullptr;
  given.overrides = {"schedule={ step { milestones: 4 gamma: 0.5 } }"};
  Trainer(world_, given).run();
  EXPECT_EQ(digest(), own);
  begin_anew();
  given.overrides.clear();
  Trainer(world_, given).run();
  EXPECT_NE(digest(), own);
}

TEST_F(TrainerRanks, OneRankEndsTheRunAndAllOfThemSaveAndEvaluate) {
  Trainer trainer(world_, options());
  Words words;
  const bool ends = world_.rank() == world_.size() - 1;
  words.on_step = [&](std::uint64_t step) {
    if (ends && step == 2) trainer.end();
  };
  trainer.observe(words);
  const TrainerResult result = trainer.run();
  EXPECT_EQ(result.code, ExitCode::kDone);
  EXPECT_EQ(result.step, 3u);
  EXPECT_TRUE(result.evaluation);
  EXPECT_THAT(agreed(words), HasSubstr("ended 3 the program asked for it\neval 3 "));

  // Another run() goes on from there, to the bits of a run in one piece.
  words.on_step = nullptr;
  EXPECT_EQ(trainer.run().step, 8u);
  const std::string resumed = digest();
  begin_anew();
  Trainer(world_, options()).run();
  EXPECT_EQ(digest(), resumed);
}

TEST_F(TrainerRanks, AnEndThatAnEvaluationAsksForComesBeforeTheNextStep) {
  Trainer trainer(world_, options());
  Words words;
  words.on_evaluation = [&](std::uint64_t) { trainer.end(); };
  trainer.observe(words);
  EXPECT_EQ(trainer.run().step, 4u);
  EXPECT_THAT(agreed(words), Not(HasSubstr("step 5")));
}

TEST_F(TrainerRanks, AWishToEndIsOfOneRun) {
  Trainer trainer(world_, options());
  Words words;
  words.on_step = [&](std::uint64_t) {
    trainer.end();
    throw UsageError("the observer fails", "");
  };
  trainer.observe(words);
  EXPECT_THROW(trainer.run(), UsageError);
  words.on_step = nullptr;
  EXPECT_EQ(trainer.run().step, 8u);
}

TEST_F(TrainerRanks, AJobAndAProgramThatBothSpeakAreRefused) {
  expect_refused(with(options(), "model { mlp { hidden: 8 } }"), "model is given, and the program gives its own");
  for (const auto& [setting, field] : {std::pair{"model={ mlp { hidden: 8 } }", "model"},
                                       {"data.train={ synthetic { samples: 4 shape: 6 classes: 3 } }", "data.train"},
                                       {"data.eval={ synthetic { samples: 4 shape: 6 classes: 3 } }", "data.eval"},
                                       {"train.loss=MSE", "train.loss"},
                                       {"schedule={ cosine {} }", "schedule"},
                                       {"train.registered_loss={ name: \"x\" }", "train.registered_loss"}}) {
    TrainerOptions overridden = options();
    overridden.schedule = [](std::int64_t) { return 1.0; };
    overridden.overrides = {setting};
    expect_refused(std::move(overridden), std::string(field) + " is given, and the program gives its own");
  }
}

TEST_F(TrainerRanks, WrongJobsAreRefusedWithTheirPlaces) {
  expect_refused(with(options(), " optimizer { sgd { lr: -1 } }"), "train_trainer:1:");
  expect_refused(with(options(), " comm { timeout_s: 5 }"), "comm.timeout_s comes too late");
  expect_refused(with(options(), " comm { shared_memory: false }"), "comm.shared_memory comes too late");
  TrainerOptions lacking = options();
  lacking.model = nullptr;
  expect_refused(std::move(lacking), "model: ");
  TrainerOptions nowhere = options();
  nowhere.run_dir.clear();
  expect_refused(std::move(nowhere), "TrainerOptions::run_dir has to be given");
}

TEST_F(TrainerRanks, ThatGiveOtherJobsAreToldSo) {
  if (world_.size() == 1) GTEST_SKIP() << "needs two ranks";
  TrainerOptions mine = options();
  mine.overrides = {"train.steps=" + std::to_string(8 + world_.rank())};
  Trainer trainer(world_, std::move(mine));
  EXPECT_THROW(trainer.run(), PeerError);
}

}  // namespace
}  // namespace lockstep::train
