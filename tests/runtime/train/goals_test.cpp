// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/goals.h"

#include <gmock/gmock.h>

#include <cmath>

#include "runtime/base/error.h"
#include "runtime/checkpoint/checkpoint.h"
#include "runtime/job/job.h"

namespace lockstep::train {
namespace {

EvalResult with_loss(double loss) { return {.samples = 1, .loss = loss}; }
EvalResult with_accuracy(double value) { return {.samples = 1, .loss = 1, .metrics = {{"accuracy", value}}}; }

TEST(Improvement, OfALossIsDownwards) {
  Improvement loss("eval.loss");
  EXPECT_TRUE(loss.add(with_loss(2)));
  EXPECT_FALSE(loss.add(with_loss(2)));
  EXPECT_FALSE(loss.add(with_loss(3)));
  EXPECT_EQ(loss.evaluations_since(), 2u);
  EXPECT_TRUE(loss.add(with_loss(1)));
  EXPECT_EQ(loss.evaluations_since(), 0u);
  EXPECT_EQ(loss.best(), 1);
}

TEST(Improvement, OfAShareIsUpwards) {
  Improvement accuracy("eval.accuracy");
  EXPECT_TRUE(accuracy.add(with_accuracy(0.5)));
  EXPECT_FALSE(accuracy.add(with_accuracy(0.25)));
  EXPECT_TRUE(accuracy.add(with_accuracy(0.75)));
}

TEST(Improvement, ASmallOneIsNone) {
  Improvement loss("eval.loss", 0.5);
  EXPECT_TRUE(loss.add(with_loss(2)));
  EXPECT_FALSE(loss.add(with_loss(1.75)));
  EXPECT_FALSE(loss.add(with_loss(1.625))) << "measured from the best, not from the last";
  EXPECT_TRUE(loss.add(with_loss(1.5)));
}

TEST(Improvement, NaNIsNeverBetter) {
  Improvement loss("eval.loss");
  EXPECT_FALSE(loss.add(with_loss(NAN)));
  EXPECT_TRUE(loss.add(with_loss(5)));
  EXPECT_FALSE(loss.add(with_loss(NAN)));
  EXPECT_EQ(loss.best(), 5);
}

job::Job job_with(const std::string& best, const std::string& early, std::uint32_t patience) {
  job::Job job;
  job.mutable_checkpoint()->set_best(best);
  if (early.empty()) return job;
  job.mutable_train()->mutable_early_stopping()->set_metric(early);
  job.mutable_train()->mutable_early_stopping()->set_patience(patience);
  return job;
}

TEST(Goals, EndsARunAfterSoManyEvaluationsWithoutAnImprovement) {
  Goals goals(job_with("", "eval.loss", 2));
  for (const double loss : {3.0, 4.0, 2.0, 2.5}) {
    EXPECT_FALSE(goals.add(1, with_loss(loss))) << "keeps no best checkpoint";
    EXPECT_FALSE(goals.reached());
  }
  goals.add(5, with_loss(2.25));
  EXPECT_TRUE(goals.reached());
  EXPECT_EQ(goals.reason(), "eval.loss has not improved on 2 for 2 evaluations");
}

TEST(Goals, GoOnFromACheckpoint) {
  const job::Job job = job_with("eval.accuracy", "eval.loss", 2);
  Goals goals(job);
  EXPECT_TRUE(goals.add(10, with_accuracy(0.5)));
  EXPECT_FALSE(goals.add(20, with_accuracy(0.5)));
  checkpoint::TrainingState state;
  goals.save(state);
  Goals resumed(job);
  resumed.load(state);
  EXPECT_EQ(resumed.evaluated_step(), 20u);
  EXPECT_FALSE(resumed.add(30, with_accuracy(0.5)));
  EXPECT_TRUE(resumed.reached());
  Goals others(job_with("eval.loss", "", 0));
  others.load(state);
  EXPECT_TRUE(others.add(30, with_loss(9))) << "another metric begins anew";
}

TEST(Goals, RefuseACheckpointThatLacksWhatGoesOn) {
  const job::Job job = job_with("eval.accuracy", "eval.loss", 2);
  checkpoint::Checkpoint saved;
  *saved.state.mutable_job() = job;
  EXPECT_THAT([&] { Goals::require_saved(saved, job); },
              testing::ThrowsMessage<StorageError>(testing::HasSubstr(" lacks best, early_stopping; ")));
  EXPECT_NO_THROW(Goals::require_saved(saved, job_with("eval.loss", "eval.accuracy", 2))) << "others begin anew";
  EXPECT_NO_THROW(Goals::require_saved(saved, {}));
  Goals(job).save(saved.state);
  EXPECT_NO_THROW(Goals::require_saved(saved, job_with("eval.accuracy", "eval.loss", 3)));
  EXPECT_NO_THROW(Goals::require_saved({}, job)) << "followed from here on";
}

TEST(Goals, NameAMetricThatTheEvaluationGives) {
  EXPECT_NO_THROW(Goals::require_known(job_with("eval.loss", "eval.accuracy", 1), {"accuracy"}));
  EXPECT_NO_THROW(Goals::require_known({}, {}));
  EXPECT_THROW(Goals::require_known(job_with("eval.accuracy", "", 1), {}), FieldError);
  EXPECT_THROW(Goals::require_known(job_with("", "accuracy", 1), {"accuracy"}), FieldError);
}

}  // namespace
}  // namespace lockstep::train
