// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>

#include <chrono>
#include <fstream>
#include <random>

#include "runtime/job/differences.h"
#include "tests/runtime/job/sample_job.h"

namespace lockstep::job {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;

TEST(Reader, AcceptsASoundJob) { EXPECT_THAT(errors_of(kSample), IsEmpty()); }

TEST(Reader, ReportsEveryErrorAtOnceWithLineAndColumn) {
  const std::string text =
      "sed: 3\n"
      "model { mlp { hidden: [16, x] activation: RELUU } }\n"
      "data { global_batch: -8 train { synthetic { samples: 64 shape: [4] classes: 3 } } }\n"
      "optimizer { sgd { lr: \"fast\" momentun: 0.9 momentum: 1.5 } }\n"
      "train { steps: 10.5 }\n";
  EXPECT_THAT(
      errors_of(text),
      ElementsAre("1:1: unknown field \"sed\"; did you mean \"seed\"?",
                  "2:28: model.mlp.hidden[1]: expected a whole number from 0 to 4294967295, found x",
                  "2:43: model.mlp.activation: expected one of RELU, GELU, GELU_TANH, found RELUU; did you mean RELU?",
                  "3:22: data.global_batch: expected a whole number from 0 to 4294967295, found -8",
                  "4:23: optimizer.sgd.lr: expected a number, found \"fast\"",
                  "4:30: optimizer.sgd: unknown field \"momentun\"; did you mean \"momentum\"?",
                  "5:16: train.steps: expected a whole number from 0 to 4294967295, found 10.5",
                  "4:44: optimizer.sgd.momentum: must be >= 0 and < 1, is 1.5"));
}

TEST(Reader, NamesTheKnownFieldsWhenNothingIsClose) {
  EXPECT_THAT(errors_of(kSample + "augment_everything_now: 1"),
              ElementsAre(HasSubstr("unknown field \"augment_everything_now\"; known: name, seed, model, data, amp")));
}

TEST(Reader, NamesALineOfTheKnownFields) {
  const std::vector<std::string> errors = errors_of("comm { everything_that_there_is: 1 }");
  const std::string& error = errors.front();
  EXPECT_THAT(error, StartsWith("1:8: comm: unknown field \"everything_that_there_is\"; known: "));
  EXPECT_THAT(error, EndsWith(" more: docs/job.md lists them"));
  EXPECT_LT(error.size(), 240u);
}

TEST(Reader, PassesOverTheValueOfAnUnknownField) {
  EXPECT_THAT(errors_of(kSample + "zzzzzzzzz { a { b: [1, { c: 2 }] } }\nyyyyyyyyy: [1, 2]\nxxxxxxxxx: -3 name: \"!\""),
              ElementsAre(HasSubstr("6:1: unknown field"), HasSubstr("7:1: unknown field"),
                          HasSubstr("8:1: unknown field"), HasSubstr("8:15: name: must be")));
}

TEST(Reader, RefusesAFieldGivenTwiceAndTwoMembersOfAOneof) {
  EXPECT_THAT(errors_of(kSample + "seed: 4 optimizer { }"),
              ElementsAre("6:1: seed: is given twice; first at job.pbtxt:1:1",
                          "6:9: optimizer: is given twice; first at job.pbtxt:4:1"));
  EXPECT_THAT(errors_of(kSample + "schedule { constant {} step {} }"),
              ElementsAre("6:24: schedule.step: cannot stand beside \"constant\": only one of them can be used"));
}

TEST(Reader, SaysWhatIsMissing) {
  EXPECT_THAT(errors_of(kSample + "name"), ElementsAre(HasSubstr("6:1: name: expected ':' and a value")));
  EXPECT_THAT(errors_of(kSample + "name: comm {}"), ElementsAre(HasSubstr("6:7: name: expected a text in quotes")));
  EXPECT_THAT(errors_of(kSample + "comm: 3"), ElementsAre("6:7: comm: expected { ... }, found \"3\""));
  EXPECT_THAT(errors_of(kSample + "amp {\n  opt_level: O1"), ElementsAre("6:5: amp: \"{\" is never closed"));
  EXPECT_THAT(errors_of(kSample + "}\n"), ElementsAre("6:1: unexpected \"}\""));
  EXPECT_THAT(errors_of(kSample + "name: \"a\nb\""), Not(IsEmpty()));
}

TEST(Reader, ReadsWhatProtobufReads) {
  const std::string text = R"(
    name: "a" 'b'  # a comment
    seed: 0x10
    model < convnet: { block: [{ channels: 1 }, { channels: 2; kernel: 5, }] } >
    data { normalize { mean: -0.5 mean: 1 std: [1e-1, 2f] } augment { flip: t } }
    optimizer { sgd { lr: .5 nesterov: 1 } clip_norm: inf }
    amp { opt_level: O1 dtype: BF16 }
    fault { kill { step: 017 } } fault { nan { } })";
  Job expected;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &expected));
  for (const Difference& difference : differences(check_text(text, "x", {}, "/").job, expected)) {
    EXPECT_EQ(difference.after, "(unset)") << "more than a default differs: " << difference.path;
  }
}

TEST(Reader, RefusesDeepNestingAndLongFilesFast) {
  const auto start = std::chrono::steady_clock::now();
  std::string known = "model { convnet ";
  for (int i = 0; i < 80000; ++i) known += "{a";
  EXPECT_THAT(errors_of(known), ElementsAre(HasSubstr("nested deeper than 100 levels")));
  EXPECT_THAT(errors_of(std::string(160000, '{')), ElementsAre("1:101: nested deeper than 100 levels"));
  EXPECT_THAT(errors_of(std::string(160000, '[')), ElementsAre("1:101: nested deeper than 100 levels"));
  EXPECT_THAT(errors_of(std::string(3 << 20, ' ')), ElementsAre(HasSubstr("at most 1048576 bytes")));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(2));
}

TEST(Reader, StopsAfterManyErrors) {
  std::string text;
  for (int i = 0; i < 100000; ++i) text += "x: 1\n";
  EXPECT_THAT(errors_of(text), SizeIs(testing::Ge(kMaxErrors)));
  EXPECT_THAT(errors_of(text), SizeIs(testing::Le(kMaxErrors + 10)));
  EXPECT_THAT(errors_of(std::string(100000, '\1') + std::string(100000, '@')), SizeIs(testing::Le(kMaxErrors + 10)));
}

TEST(Reader, RefusesTextThatIsNotUtf8) {
  EXPECT_THAT(errors_of(kSample + "name: \"\\377\""), ElementsAre(HasSubstr("expected UTF-8 text")));
  EXPECT_THAT(errors_of(kSample + "name: \"a\\000b\""), ElementsAre(HasSubstr("expected UTF-8 text")));
  EXPECT_THAT(errors_of("data { train { csv { delimiter: \"\\033\" } } }"),
              testing::Contains(HasSubstr("expected UTF-8 text")));
  EXPECT_THAT(errors_of("data { train { csv { delimiter: \"\\t\" } } }"),
              testing::Not(testing::Contains(HasSubstr("expected UTF-8 text"))));
}

// Noise, cut and changed jobs give errors or a job, never a crash or a hang.
TEST(Reader, SurvivesDamage) {
  std::mt19937 random(1);
  const std::string job = to_text(sample());
  for (std::size_t length = 0; length < job.size(); ++length) errors_of(job.substr(0, length));
  for (int round = 0; round < 3000; ++round) {
    std::string text = job;
    for (int k = 0; k < 3; ++k) text[random() % text.size()] = static_cast<char>(random());
    errors_of(text);
  }
}

TEST(Load, ThrowsOneUsageErrorWithAllLines) {
  try {
    load_text("seed: x\ntrain { steps: 5 }", "bad.pbtxt", {}, "/data");
    FAIL() << "a wrong job was loaded";
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), HasSubstr("bad.pbtxt:1:7: seed: expected a whole number"));
    EXPECT_THAT(error.what(), HasSubstr("\nbad.pbtxt: model: is required: one of mlp, convnet, resnet"));
    EXPECT_THAT(error.advice(), HasSubstr("lockstep validate bad.pbtxt"));
  }
}

TEST(Reader, AcceptsAByteOrderMark) {
  EXPECT_THAT(errors_of("\xef\xbb\xbf" + kSample), IsEmpty());
  EXPECT_THAT(errors_of("\xef\xbb\xbf"
                        "sed: 3\n" +
                        kSample),
              ElementsAre(HasSubstr("1:1: unknown field \"sed\"")));
}

TEST(Reader, SaysInOneLineThatAFileIsNoText) {
  EXPECT_THAT(errors_of(std::string("\x1f\x8b\x08\x00", 4) + kSample),
              ElementsAre(" is no text file, so no job: byte 0 is 0x1f"));
  EXPECT_THAT(errors_of(kSample + std::string(1, '\0') + "@@@@"), ElementsAre(HasSubstr("is no text file")));
  EXPECT_THAT(errors_of("# tab\t, form feed\f and carriage return\r\n" + kSample), IsEmpty());
}

// A value that could not be read is one error: what it contradicts is not known.
TEST(Reader, DrawsNoFalseErrorFromAMisreadValue) {
  const auto alone = [](const std::string& text, const std::vector<std::string>& overrides = {}) {
    EXPECT_THAT(errors_of(text, overrides), SizeIs(1)) << text << testing::PrintToString(overrides);
  };
  const std::string mixed = kSample + "amp { opt_level: O1 dtype: FP16 }\n";
  alone(mixed, {"amp.opt_level=O7"});
  alone(kSample + "amp { opt_level: O7 dtype: FP16 master_weights: false }\n");
  alone(kSample + "amp { opt_levl: O1 dtype: FP16 }\n");
  alone(kSample, {"amp.opt_level=O1", "amp.dtype=FP17"});
  alone(kSample, {"data.train.synthetic={ samples: 4 shape: 4 classes: few }"});
  alone(kSample, {"optimizer.sgd={ lr: 1 momentum: much nesterov: true }"});
  alone(kSample, {"data={ global_batch: 4 evl {} train { synthetic { samples: 4 shape: 4 classes: 2 } } }",
                  "train.eval_every=5"});
  alone(kSample, {"train.accumulate=many", "fault={ nan { step: 1 micro_batch: 1 } }"});
  alone(kSample, {"train.loss=MSF", "train.label_smoothing=0.1"});
}

TEST(Load, NamesAFileThatCannotBeRead) {
  EXPECT_THAT(check("/nowhere/job.pbtxt").diagnostics.at(0).str(),
              HasSubstr("/nowhere/job.pbtxt: cannot read the job: No such file"));
  try {
    load("/nowhere/job.pbtxt");
    FAIL() << "a job that is not there was loaded";
  } catch (const UsageError& error) {
    EXPECT_THAT(error.advice(), testing::Not(HasSubstr("validate")));
  }
  EXPECT_THAT(check("/tmp").diagnostics.at(0).str(), HasSubstr("it is a directory"));
}

}  // namespace
}  // namespace lockstep::job
