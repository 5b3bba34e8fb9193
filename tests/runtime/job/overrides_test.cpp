// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "tests/runtime/job/sample_job.h"

namespace lockstep::job {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Override, SetsScalarsEnumsTextsAndLists) {
  const Job job = sample({"train.steps=77", "amp.opt_level=O1", "name=other", "name=\"quoted\"", "optimizer.sgd.lr=-0",
                          "optimizer.sgd.lr=0.25", "model.mlp.hidden=[1, 2, 3]", "data.shuffle=false"});
  EXPECT_EQ(job.train().steps(), 77u);
  EXPECT_EQ(job.amp().opt_level(), O1);
  EXPECT_EQ(job.name(), "quoted");
  EXPECT_EQ(job.optimizer().sgd().lr(), 0.25);
  EXPECT_THAT(job.model().mlp().hidden(), ElementsAre(1, 2, 3));
  EXPECT_FALSE(job.data().shuffle());
}

TEST(Override, ReplacesMessagesAndSwitchesOneofs) {
  const Job job = sample({"schedule={ cosine { warmup_steps: 5 } }", "optimizer.adam.lr=1e-3",
                          "model={ convnet { block { channels: 8 } block { channels: 16 } } }",
                          "model.convnet.block[1].channels=64", "fault=[{ kill { step: 2 } }, { nan { step: 3 } }]"});
  EXPECT_EQ(job.schedule().cosine().warmup_steps(), 5u);
  EXPECT_FALSE(job.optimizer().has_sgd());
  EXPECT_EQ(job.optimizer().adam().lr(), 1e-3);
  EXPECT_EQ(job.model().convnet().block(1).channels(), 64u);
  EXPECT_EQ(job.model().convnet().block(0).channels(), 8u);
  EXPECT_EQ(job.fault_size(), 2);
}

TEST(Override, UnsetClears) {
  const Job job = sample({"seed=unset", "model.mlp.hidden=[]", "fault={ kill { step: 2 } }", "fault=unset",
                          "optimizer.clip_norm=1", "optimizer.clip_norm=unset", "name=unset"});
  EXPECT_EQ(job.seed(), 0u);
  EXPECT_FALSE(job.optimizer().has_clip_norm());
  EXPECT_EQ(job.name(), "unset") << "a text is a text";
  EXPECT_EQ(job.model().mlp().hidden_size(), 0);
  EXPECT_EQ(job.fault_size(), 0);
  EXPECT_THAT(
      errors_of(kSample, {"optimizer=unset"}),
      ElementsAre(testing::StartsWith("--set optimizer=unset: optimizer: is required: one of sgd, adam, adamw, ")));
}

TEST(Override, AnEmptyValueIsRefused) {
  for (const std::string path : {"amp.dtype", "train.steps", "name", "optimizer", "fault", "model.mlp.hidden"}) {
    EXPECT_THAT(errors_of(kSample, {path + "="}),
                ElementsAre(testing::StartsWith("--set " + path + "=: " + path + ": has no value behind '='")));
  }
}

TEST(Override, NamesTheBadComponent) {
  const auto error = [](const std::string& assignment) {
    const std::vector<std::string> lines = errors_of(kSample, {assignment});
    EXPECT_EQ(lines.size(), 1u) << testing::PrintToString(lines);
    return lines.at(0);
  };
  EXPECT_EQ(error("train.stepz=1"), "--set train.stepz=1: train: unknown field \"stepz\"; did you mean \"steps\"?");
  EXPECT_EQ(error("tran.steps=1"), "--set tran.steps=1: unknown field \"tran\"; did you mean \"train\"?");
  EXPECT_THAT(error("train.steps"), HasSubstr("expected path=value"));
  EXPECT_THAT(error("train.steps.x=1"), HasSubstr("train.steps: is a single value"));
  EXPECT_THAT(error("train[0].steps=1"), HasSubstr("train[0]: is no list"));
  EXPECT_THAT(error("fault[0].kill.step=1"), HasSubstr("fault[0]: the list has 0 elements"));
  EXPECT_THAT(error("fault.kill.step=1"), HasSubstr("fault: is a list of 0; name one as in fault[0]"));
  EXPECT_THAT(error("model.mlp.hidden[x]=1"), HasSubstr("expected an index"));
  EXPECT_THAT(error("model.mlp.hidden[0]=1"), HasSubstr("set the whole list, hidden=[...]"));
  EXPECT_THAT(error("=1"), HasSubstr("unknown field \"\""));
}

TEST(Override, ValuesAreCheckedLikeTheFiles) {
  EXPECT_THAT(
      errors_of(kSample, {"train.steps=many"}),
      ElementsAre("--set train.steps=many: train.steps: expected a whole number from 0 to 4294967295, found many"));
  EXPECT_THAT(errors_of(kSample, {"train.steps=1 2"}), ElementsAre(HasSubstr("unexpected \"2\" behind the value")));
  EXPECT_THAT(errors_of(kSample, {"optimizer.sgd.lr=-1"}),
              ElementsAre("--set optimizer.sgd.lr=-1: optimizer.sgd.lr: must be > 0, is -1"));
  EXPECT_THAT(errors_of(kSample, {"schedule={ cosin {} }"}), ElementsAre(HasSubstr("did you mean \"cosine\"?")));
  EXPECT_THAT(errors_of(kSample, {"schedule={ cosine {"}), ElementsAre(HasSubstr("never closed")));
}

}  // namespace
}  // namespace lockstep::job
