// SPDX-License-Identifier: Apache-2.0
#include "runtime/job/job.h"

#include <gmock/gmock.h>
#include <google/protobuf/descriptor.h>

#include <set>

#include "runtime/job/differences.h"
#include "tests/runtime/job/sample_job.h"

namespace lockstep::job {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> lines_of(const std::vector<Difference>& differences) {
  std::vector<std::string> lines;
  for (const Difference& d : differences) lines.push_back(d.path + ": " + d.before + " -> " + d.after);
  return lines;
}

/// The fields that can be told from unset and are unset, as "Message.field".
void collect_unset(const google::protobuf::Message& message, std::set<std::string>& unset) {
  const auto* type = message.GetDescriptor();
  for (int i = 0; i < type->field_count(); ++i) {
    const auto* field = type->field(i);
    const bool is_message = field->cpp_type() == google::protobuf::FieldDescriptor::CPPTYPE_MESSAGE;
    const bool is_enum = field->cpp_type() == google::protobuf::FieldDescriptor::CPPTYPE_ENUM;
    if (field->is_repeated()) {
      for (int k = 0; is_message && k < message.GetReflection()->FieldSize(message, field); ++k) {
        collect_unset(message.GetReflection()->GetRepeatedMessage(message, field, k), unset);
      }
    } else if (message.GetReflection()->HasField(message, field)) {
      if (is_message) collect_unset(message.GetReflection()->GetMessage(message, field), unset);
    } else if (!is_message && (field->has_optional_keyword() || is_enum)) {
      unset.insert(type->name() + "." + field->name());
    }
  }
}

TEST(Defaults, EveryFieldWithADefaultHasAValue) {
  std::set<std::string> unset;
  for (const std::string model : {"mlp {}", "convnet { block { channels: 1 } }", "resnet { depth: 18 }"}) {
    for (const std::string optimizer :
         {"sgd { lr: 1 } larc { } group { match: \"bias\" }", "adam { lr: 1 }", "adamw { lr: 1 }", "adagrad { lr: 1 }",
          "lamb { lr: 1 }", "novograd { lr: 1 }", "lars { lr: 1 }"}) {
      for (const std::string schedule : {"", "step { milestones: 1 }", "cosine {}", "linear {}"}) {
        collect_unset(sample({"model={" + model + "}", "optimizer={" + optimizer + "}", "schedule={" + schedule + "}",
                              "fault={ delay { step: 1 } }"}),
                      unset);
      }
    }
  }
  // The amp section's overrides follow from the others, so that an error names the field that was written.
  EXPECT_THAT(unset, ElementsAre("Amp.autocast", "Amp.cast_model_outputs", "Amp.cast_model_type", "ConvBlock.max_pool",
                                 "Data.decode_threads", "Mlp.outputs", "Optimizer.clip_norm", "Optimizer.clip_value",
                                 "ParameterGroup.layer_adaptation", "ParameterGroup.weight_decay"));
}

TEST(Defaults, FollowFromOneAnother) {
  const Job plain = sample();
  EXPECT_EQ(plain.name(), "sample");
  EXPECT_EQ(plain.amp().dtype(), FP32);
  EXPECT_EQ(plain.comm().wire_dtype(), FP32);
  EXPECT_FALSE(plain.amp().loss_scale().dynamic());
  EXPECT_EQ(plain.amp().loss_scale().init(), 1);
  EXPECT_EQ(plain.train().loss(), CROSS_ENTROPY);
  EXPECT_EQ(plain.data().eval_batch(), 8u);
  const Job mixed = sample({"amp.opt_level=O1"});
  EXPECT_EQ(mixed.amp().dtype(), FP16);
  EXPECT_EQ(mixed.comm().wire_dtype(), FP16);
  EXPECT_TRUE(mixed.amp().loss_scale().dynamic());
  EXPECT_EQ(mixed.amp().loss_scale().init(), 65536);
  EXPECT_TRUE(mixed.amp().master_weights());
  const Job pure = sample({"amp.opt_level=O3", "amp.dtype=BF16"});
  EXPECT_FALSE(pure.amp().loss_scale().dynamic());
  EXPECT_FALSE(pure.amp().master_weights());
  EXPECT_FALSE(pure.amp().keep_batch_norm_fp32());
  EXPECT_EQ(sample({"data.train.synthetic={ samples: 4 shape: 2 target_size: 1 }"}).train().loss(), MSE);
  EXPECT_EQ(sample({"optimizer={ adamw { lr: 1 } }"}).optimizer().adamw().weight_decay(), 0.01);
  EXPECT_EQ(sample({"fault={ nan { step: 1 } }", "train.accumulate=4"}).fault(0).nan().micro_batch(), 3u);
}

TEST(Text, ReadsBackAsTheSameJob) {
  const Job job = load(LOCKSTEP_SOURCE_DIR "/configs/digits_convnet.pbtxt");
  const Job again = load_text(to_text(job), "elsewhere.pbtxt", {}, "/other");
  EXPECT_THAT(differences(job, again), IsEmpty());
  EXPECT_EQ(to_text(job), to_text(again));
  EXPECT_EQ(hash(job), hash(again));
  EXPECT_EQ(hash(job).size(), 32u);
}

TEST(Hash, FollowsEveryFieldButFaults) {
  EXPECT_EQ(hash(sample()), hash(sample({"fault={ kill { step: 2 } }"})));
  EXPECT_NE(hash(sample()), hash(sample({"train.steps=11"})));
  EXPECT_NE(hash(sample()), hash(sample({"seed=4"})));
}

TEST(Differences, NameFieldsAndBothValues) {
  EXPECT_THAT(differences(sample(), sample()), IsEmpty());
  EXPECT_THAT(lines_of(differences(sample(), sample({"train.steps=11", "amp.opt_level=O3", "amp.dtype=FP16",
                                                     "model.mlp.hidden=[16]", "optimizer.clip_norm=2"}))),
              testing::IsSupersetOf({"train.steps: 10 -> 11", "amp.opt_level: O0 -> O3",
                                     "model.mlp.hidden[1]: 8 -> (unset)", "optimizer.clip_norm: (unset) -> 2"}));
}

TEST(Differences, AreValuesAndNeverWholeMessages) {
  const std::vector<std::string> lines =
      lines_of(differences(sample(), sample({"optimizer={ adamw { lr: 1 } group { match: \"bias\" lr_scale: 2 } }",
                                             "schedule={ cosine { warmup_steps: 5 } }"})));
  EXPECT_THAT(
      lines, testing::IsSupersetOf({"optimizer.sgd.lr: 0.1 -> (unset)", "optimizer.adamw.lr: (unset) -> 1",
                                    "optimizer.group[0].match: (unset) -> \"bias\"", "schedule.constant: {} -> (unset)",
                                    "schedule.cosine.warmup_steps: (unset) -> 5"}));
  for (const std::string& line : lines) EXPECT_THAT(line, testing::Not(testing::HasSubstr("{ ")));
  EXPECT_THAT(lines_of(differences(sample({"schedule={ cosine { warmup_steps: 5 final_fraction: 0 } }"}),
                                   sample({"schedule={ cosine { final_fraction: 0 } }"}))),
              testing::ElementsAre("schedule.cosine.warmup_steps: 5 -> (unset)"));
}

}  // namespace
}  // namespace lockstep::job
