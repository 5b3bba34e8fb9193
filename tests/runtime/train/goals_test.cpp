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

job::Job job_with_plateau(const std::string& metric, double factor = 0.5) {
  job::Job job;
  job.mutable_optimizer()->mutable_sgd()->set_lr(0.8);
  job::ReduceOnPlateauSchedule& plateau = *job.mutable_schedule()->mutable_reduce_on_plateau();
  plateau.set_metric(metric);
  plateau.set_factor(factor);
  plateau.set_patience(1);
  return job;
}

TEST(Goals, ReduceTheLearningRateOnAPlateau) {
  Goals loss(job_with_plateau("eval.loss"));
  EXPECT_TRUE(loss.any());
  for (const double value : {3.0, 4.0, 2.0, 2.0}) {
    EXPECT_FALSE(loss.add(1, with_loss(value)));
    EXPECT_EQ(loss.reductions(), 0);
  }
  loss.add(5, with_loss(2.5));
  EXPECT_EQ(loss.reductions(), 1);
  EXPECT_EQ(loss.reason_to_reduce(), "eval.loss has not improved on 2 for 2 evaluations");
  Goals accuracy(job_with_plateau("eval.accuracy"));
  for (const double value : {0.5, 0.6, 0.7, 0.6, 0.7}) accuracy.add(1, with_accuracy(value));
  EXPECT_EQ(accuracy.reductions(), 1) << "higher is better";
}

TEST(Goals, GoOnWithAPlateauFromACheckpoint) {
  const job::Job job = job_with_plateau("eval.loss");
  Goals goals(job);
  for (const double value : {2.0, 3.0, 3.0, 3.0}) goals.add(10, with_loss(value));
  checkpoint::TrainingState state;
  goals.save(state);
  Goals resumed(job);
  resumed.load(state);
  EXPECT_EQ(resumed.reductions(), 1);
  resumed.add(20, with_loss(2));
  EXPECT_EQ(resumed.reductions(), 2) << "the second one that is no better than 2";
  Goals others(job_with_plateau("eval.accuracy"));
  others.load(state);
  EXPECT_EQ(others.reductions(), 1) << "the rate stays reduced";
  others.add(20, with_accuracy(0.1));
  others.add(30, with_accuracy(0.1));
  EXPECT_EQ(others.reductions(), 1) << "another metric begins anew";
}

TEST(Goals, RefuseACheckpointThatLacksItsPlateau) {
  const job::Job job = job_with_plateau("eval.loss");
  checkpoint::Checkpoint saved;
  *saved.state.mutable_job() = job;
  EXPECT_THAT([&] { Goals::require_saved(saved, job); },
              testing::ThrowsMessage<StorageError>(testing::HasSubstr(" lacks reduce_on_plateau; ")));
  EXPECT_NO_THROW(Goals::require_saved(saved, {})) << "another schedule";
  Goals(job).save(saved.state);
  EXPECT_NO_THROW(Goals::require_saved(saved, job_with_plateau("eval.loss", 0.25)));
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
  EXPECT_NO_THROW(Goals::require_known(job_with_plateau("eval.accuracy"), {"accuracy"}));
  EXPECT_THAT(
      [] { Goals::require_known(job_with_plateau("eval.dice"), {"accuracy"}); },
      testing::ThrowsMessage<FieldError>("schedule.reduce_on_plateau.metric: \"eval.dice\" is no metric of this "
                                         "job's evaluation; there are eval.loss, eval.accuracy"));
}

}  // namespace
}  // namespace lockstep::train
