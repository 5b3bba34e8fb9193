// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/infer/predictor.h"

#include <gmock/gmock.h>

#include <algorithm>
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

}  // namespace
}  // namespace lockstep::train
