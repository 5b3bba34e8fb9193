// SPDX-License-Identifier: Apache-2.0
// validate and train give the same verdict on a job, in the same words.
#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "tests/launcher/program.h"

namespace lockstep::launcher {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr int kSamples = 20;

std::string big_endian(std::uint32_t value) {
  std::string bytes;
  for (const int shift : {24, 16, 8, 0}) bytes += static_cast<char>(value >> shift & 0xff);
  return bytes;
}

std::string images(std::uint32_t count, std::uint32_t height, std::uint32_t width) {
  return big_endian(0x803) + big_endian(count) + big_endian(height) + big_endian(width) +
         std::string(std::size_t{count} * height * width, '\x40');
}

std::string labels(const std::vector<int>& values) {
  std::string bytes = big_endian(0x801) + big_endian(static_cast<std::uint32_t>(values.size()));
  for (const int value : values) bytes += static_cast<char>(value);
  return bytes;
}

/// 0, 1, 2, 3, 0, 1, ... with some of them exchanged.
std::string four_classes(const std::vector<std::pair<std::size_t, int>>& exchanged = {}, std::size_t count = kSamples) {
  std::vector<int> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<int>(i % 4);
  for (const auto& [at, label] : exchanged) values[at] = label;
  return labels(values);
}

/// A job of 20 images of 4 x 4 pixels; its files are written beside it.
constexpr const char* kJob = R"(name: "small"
model {
  convnet { block { channels: 2 } }
}
data {
  global_batch: 4
  train { idx { images: "images" labels: "labels" } }
  eval { idx { images: "eval-images" labels: "eval-labels" } }
}
optimizer { sgd { lr: 0.1 } }
train { steps: 2 }
)";

struct Case {
  std::string name;
  std::vector<std::string> overrides;
  std::map<std::string, std::string> files;  ///< in place of sound ones
  int code = 0;
  std::string message;
  std::vector<std::string> options = {};
};

std::ostream& operator<<(std::ostream& out, const Case& a_case) { return out << a_case.name; }

class Verdict : public testing::TestWithParam<Case> {
 protected:
  Verdict() {
    write_text(folder_ / "job.pbtxt", kJob);
    write_text(folder_ / "images", images(kSamples, 4, 4));
    write_text(folder_ / "labels", four_classes());
    write_text(folder_ / "eval-images", images(4, 4, 4));
    write_text(folder_ / "eval-labels", four_classes({}, 4));
  }

  Ended run(const std::string& command, std::vector<std::string> more = {}) const {
    std::vector<std::string> arguments{command, "job.pbtxt"};
    for (const std::string& assignment : GetParam().overrides) arguments.insert(arguments.end(), {"--set", assignment});
    arguments.insert(arguments.end(), GetParam().options.begin(), GetParam().options.end());
    arguments.insert(arguments.end(), more.begin(), more.end());
    return lockstep_command(arguments, folder_);
  }

  Folder folder_;
};

/// The lines that name the job or an override.
std::vector<std::string> findings(const std::string& text) {
  std::vector<std::string> found;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    line.erase(0, line.find_first_not_of(' '));
    const bool names_the_job = line.starts_with("job.pbtxt:") || line.starts_with("--set ");
    if (names_the_job && line.find(" error") == std::string::npos) found.push_back(line);
  }
  return found;
}

class Refused : public Verdict {};

TEST_P(Refused, ByValidateAndTrainAlike) {
  for (const auto& [file, content] : GetParam().files) write_text(folder_ / file, content);
  const Ended validated = run("validate");
  EXPECT_EQ(validated.code, GetParam().code) << validated.err;
  EXPECT_THAT(validated.err, HasSubstr(GetParam().message));
  EXPECT_THAT(validated.out, IsEmpty());
  const Ended trained = run("train");
  EXPECT_EQ(trained.code, GetParam().code) << trained.err;
  EXPECT_EQ(count(trained.err, "lockstep: error"), 1u) << trained.err;
  EXPECT_THAT(findings(validated.err), Not(IsEmpty()));
  EXPECT_EQ(findings(trained.err), findings(validated.err));
  // A refusal makes nothing; data that cannot be read are a failure, and on record.
  EXPECT_EQ(std::filesystem::exists(folder_ / "runs"), GetParam().code != 2);

  const json told = json::parse(run("validate", {"--json"}).out);
  EXPECT_FALSE(told["valid"]);
  EXPECT_EQ(told["exit_code"], GetParam().code);
  EXPECT_FALSE(told.contains("plan"));
  EXPECT_THAT(told["diagnostics"], Not(IsEmpty()));
}

INSTANTIATE_TEST_SUITE_P(
    Jobs, Refused,
    testing::Values(
        Case{"pool",
             {"model.convnet.block[0].max_pool=40"},
             {},
             2,
             "--set model.convnet.block[0].max_pool=40: model.convnet.block[0].max_pool: does not fit its input [1, 4, "
             "4, 2]"},
        Case{"bucket_ends",
             {"comm.bucket_ends=\"nobody\""},
             {},
             2,
             "comm.bucket_ends: the model has no parameter \"nobody\""},
        Case{"sync_batch_norm_group",
             {"comm.sync_batch_norm_group=2"},
             {},
             2,
             "comm.sync_batch_norm_group: must divide the number of ranks, 1, is 2"},
        Case{"means",
             {"data.normalize={ mean: [0.1, 0.2, 0.3] }"},
             {},
             2,
             "data.normalize.mean: has 3 values, but samples of shape [4, 4, 1] have 1 channel"},
        Case{"pad_crop",
             {"data.augment.pad_crop=1000"},
             {},
             2,
             "data.augment.pad_crop: 1000 is more than the images' extent, [4, 4, 1]"},
        Case{"group",
             {"optimizer.group={ match: \"embedding\" }"},
             {},
             2,
             "optimizer.group[0].match: \"embedding\" matches no parameter"},
        Case{"label_count", {}, {{"labels", four_classes({}, kSamples - 1)}}, 4, "job.pbtxt:7:11: data.train.idx: "},
        Case{"magic", {}, {{"images", big_endian(0x80300) + std::string(100, '\0')}}, 4, "has the wrong magic number"},
        Case{"short",
             {},
             {{"images", images(kSamples, 4, 4).substr(0, 100)}},
             4,
             "is too short: expected 336 bytes, found 100"},
        Case{"long", {}, {{"images", images(kSamples, 4, 4) + "x"}}, 4, "is too long"},
        Case{"no_samples", {}, {{"images", images(0, 4, 4)}, {"labels", labels({})}}, 4, "holds no samples"},
        Case{"label", {"data.train.idx.classes=3"}, {}, 4, "label 3 of sample 3 is outside the 3 classes"},
        Case{"eval_shape",
             {},
             {{"eval-images", images(4, 4, 5)}},
             2,
             "job.pbtxt:8:3: data.eval: its samples are [4, 5, 1], but those of data.train [4, 4, 1]"},
        Case{"eval_label",
             {},
             {{"eval-labels", four_classes({{1, 9}}, 4)}},
             4,
             "label 9 of sample 1 is outside the 4 classes"},
        Case{"eval_and_augment",
             {"data.augment.pad_crop=5"},
             {{"eval-images", images(4, 5, 5)}},
             2,
             "data.augment.pad_crop: 5 is more"},
        Case{"outputs",
             {"model={ mlp { outputs: 3 } }"},
             {},
             2,
             "model.mlp.outputs: 3 are fewer than the data needs: 4"},
        Case{"regression",
             {"data.train={ synthetic { samples: 8 shape: 4 target_size: 2 } }", "data.eval=unset",
              "model={ mlp { outputs: 5 } }"},
             {},
             2,
             "model: mse of"},
        Case{"vectors",
             {"data.train={ synthetic { samples: 8 shape: 4 classes: 2 } }", "data.eval=unset"},
             {},
             2,
             "model.convnet: needs samples [height, width, channels], the data has [4]"},
        Case{"fault_rank",
             {"fault={ kill { step: 1 rank: 7 } }"},
             {},
             2,
             "fault[0].kill.rank: there is no rank 7 among 1"},
        Case{"fault_rank_of_two",
             {"fault={ kill { step: 1 rank: 7 } }"},
             {},
             2,
             "fault[0].kill.rank: there is no rank 7 among 2",
             {"--nproc", "2"}},
        Case{"fault_parameter",
             {"fault={ nan { step: 1 parameter: \"weight\" } }"},
             {},
             2,
             "fault[0].nan.parameter: the model has no parameter 'weight'"},
        Case{"graph", {"train.cuda_graph=ON"}, {}, 2, "train.cuda_graph: ON needs a GPU", {"--device", "cpu"}},
        Case{"empty", {"amp.dtype="}, {}, 2, "--set amp.dtype=: amp.dtype: has no value"},
        Case{"several",
             {"model.convnet.block[0].max_pool=40", "data.augment.pad_crop=9", "train.cuda_graph=ON"},
             {},
             2,
             "data.augment.pad_crop: 9 is more",
             {"--device", "cpu"}},
        Case{"level", {"amp.opt_level=O7"}, {}, 2, "expected one of O0, O1, O2, O3, found O7"}),
    [](const auto& which) { return which.param.name; });

class Warned : public Verdict {};

TEST_P(Warned, ByValidateAndTrainAlike) {
  for (const auto& [file, content] : GetParam().files) write_text(folder_ / file, content);
  const Ended validated = run("validate");
  EXPECT_EQ(validated.code, 0) << validated.err;
  EXPECT_THAT(validated.err, AllOf(HasSubstr("lockstep: warning: "), HasSubstr(GetParam().message)));
  const Ended trained = run("train");
  EXPECT_EQ(trained.code, 0) << trained.err;
  EXPECT_EQ(trained.err, validated.err);
  const json told = json::parse(run("validate", {"--json"}).out);
  EXPECT_TRUE(told["valid"]);
  ASSERT_EQ(told["warnings"].size(), 1u);
  EXPECT_THAT(validated.err, HasSubstr(told["warnings"][0]["message"].get<std::string>()));
}

INSTANTIATE_TEST_SUITE_P(
    Jobs, Warned,
    testing::Values(
        Case{"drop_last",
             {"data.drop_last=true", "data.global_batch=50"},
             {},
             0,
             "data.drop_last: a batch of 50 is more than the 20 samples of data.train"},
        Case{"batch", {"data.global_batch=50"}, {}, 0, "data.global_batch: a batch of 50 is more than the 20 samples"},
        Case{"warm_up",
             {"schedule={ cosine { warmup_steps: 3 } }"},
             {},
             0,
             "schedule.cosine.warmup_steps: the warm-up takes 3 steps, the run only 2"},
        Case{"empty_class",
             {"data.train.idx.classes=6"},
             {},
             0,
             "data.train.idx.labels: classes 4, 5 of 6 have no sample"},
        Case{"far_label",
             {},
             {{"labels", four_classes({{5, 250}})}},
             0,
             "job.pbtxt:7:34: data.train.idx.labels: label 250 (1 sample, the first at index 5) is far above the "
             "others, which end at 3, and makes 251 classes"}),
    [](const auto& which) { return which.param.name; });

class Sound : public Verdict {};

TEST_P(Sound, ToValidateAndTrainAlike) {
  const Ended validated = run("validate");
  EXPECT_EQ(validated.code, 0) << validated.err;
  EXPECT_THAT(validated.err, IsEmpty());
  const Ended trained = run("train");
  EXPECT_EQ(trained.code, 0) << trained.err;
  EXPECT_THAT(trained.err, IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(Jobs, Sound,
                         testing::Values(Case{"plain", {}},
                                         Case{"warm_up_to_the_end", {"schedule={ cosine { warmup_steps: 2 } }"}},
                                         Case{"whole_batch", {"data.global_batch=20", "data.drop_last=true"}},
                                         Case{"group", {"optimizer.group={ match: \"conv\" weight_decay: 0.1 }"}},
                                         Case{"resnet", {"model={ resnet { depth: 18 stem: CIFAR width: 2 } }"}},
                                         Case{"mlp",
                                              {"model={ mlp { hidden: [8, 8] batch_norm: true dropout: 0.1 } }",
                                               "train.accumulate=2", "amp={ opt_level: O2 }"}}),
                         [](const auto& which) { return which.param.name; });

}  // namespace
}  // namespace lockstep::launcher
