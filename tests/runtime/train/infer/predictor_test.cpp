// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/infer/predictor.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <fstream>
#include <numeric>

#include "runtime/base/error.h"
#include "runtime/job/job.h"
#include "runtime/train/train.h"
#include "tests/support/folder.h"

namespace lockstep::train {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

class PredictorTest : public ::testing::Test {
 protected:
  PredictorTest() {
    TrainOptions options;
    const std::vector<std::string> settings = {"train.steps=3", "train.eval_every=0"};
    options.job = job::load(LOCKSTEP_SOURCE_DIR "/configs/digits_convnet.pbtxt", settings);
    options.run_dir = run_;
    options.output.quiet = true;
    comm::World world = comm::World::from_environment();
    EXPECT_EQ(train(world, options), ExitCode::kDone);
  }
  Folder folder_;
  std::filesystem::path run_ = folder_ / "run";
};

TEST_F(PredictorTest, GivesTheProbabilitiesOfItsClasses) {
  Predictor predictor(run_);
  EXPECT_EQ(predictor.kind(), PredictionKind::kProbabilities);
  EXPECT_EQ(predictor.shape(), Shape{10});
  EXPECT_EQ(predictor.sample_shape(), (Shape{8, 8, 1}));
  EXPECT_THAT(predictor.checkpoint(), HasSubstr("step-00000003"));
  const Tensor samples = Tensor::zeros({5, 8, 8, 1}, DType::kFloat32);
  samples.mutable_as<float>()[70] = 2;
  const Tensor predictions = predictor.predict(samples);
  ASSERT_EQ(predictions.shape(), (Shape{5, 10}));
  for (std::size_t i = 0; i < 5; ++i) {
    const auto row = predictions.as<float>().subspan(i * 10, 10);
    EXPECT_NEAR(std::accumulate(row.begin(), row.end(), 0.0), 1, 1e-5);
    EXPECT_EQ(std::ranges::equal(row, predictions.as<float>().first(10)), i != 1);
  }
}

TEST_F(PredictorTest, RefusesWhatIsNoBatchOfSamples) {
  Predictor predictor(run_);
  for (const Shape& shape : {Shape{8, 8, 1}, Shape{2, 8, 8}, Shape{2, 8, 8, 3}}) {
    EXPECT_THAT([&] { predictor.predict(Tensor::zeros(shape, DType::kFloat32)); },
                ThrowsMessage<ShapeError>(HasSubstr("a Predictor of samples [8, 8, 1]")));
  }
  EXPECT_THAT([&] { Predictor none(folder_ / "none"); }, ThrowsMessage<StorageError>(HasSubstr("none")));
}

TEST(PredictorOfTables, TakesRowsWhoseWordsAreEmbedded) {
  const Folder folder;
  const auto write = [&](const char* name, const std::string& text) { std::ofstream(folder / name) << text; };
  std::string table = "size,town,price\n";
  for (int i = 0; i < 40; ++i) table += fmt::format("{},town{},{}\n", i % 3, i % 5, i % 3 + 10 * (i % 5));
  write("train.csv", table);
  write("job.pbtxt",
        "model { mlp { hidden: 8 } } data { global_batch: 8 train { csv { files: 'train.csv' target_kind: NUMBERS "
        "words: ONE_HOT one_hot_up_to: 2 } } } optimizer { adamw { lr: 0.02 } } train { steps: 20 }");
  TrainOptions options;
  options.job = job::load(folder / "job.pbtxt");
  options.run_dir = folder / "run";
  options.output.quiet = true;
  comm::World world = comm::World::from_environment();
  ASSERT_EQ(train(world, options), ExitCode::kDone);

  Predictor predictor(folder / "run");
  EXPECT_EQ(predictor.sample_shape(), Shape{1});
  EXPECT_THAT(predictor.inputs(), ::testing::ElementsAre(InputSpec{{1}, 0}, InputSpec{{1}, 6}));
  const std::vector<Prediction> lines = predictor.predict_lines("town,size\ntown3,2\nelsewhere,1\ntown0,x\n");
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_THAT(lines[2].error, HasSubstr("expected a number, found \"x\""));
  const std::vector<Tensor> inputs{Tensor::from(std::vector<float>{2, 1}, {2, 1}),
                                   Tensor::from(std::vector<std::int64_t>{4, 0}, {2, 1})};
  const Tensor same = predictor.predict(inputs);
  for (std::size_t i = 0; i < 2; ++i) EXPECT_NEAR(lines[i].numbers[0], same.as<float>()[i], 1e-4);
  EXPECT_THAT(
      [&] { predictor.predict(inputs[0]); },
      ThrowsMessage<ShapeError>(HasSubstr("a Predictor of samples [1] and [1] tokens below 6 was given [2, 1]")));
}

}  // namespace
}  // namespace lockstep::train
