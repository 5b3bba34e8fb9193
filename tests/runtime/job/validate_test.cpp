// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "tests/runtime/job/sample_job.h"

namespace lockstep::job {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(Validate, AnEmptyJobNamesAllThatIsRequired) {
  EXPECT_THAT(errors_of(""), ElementsAre(HasSubstr("model: is required"), HasSubstr("data: is required"),
                                         HasSubstr("optimizer: is required"), HasSubstr("train.steps: is required")));
  EXPECT_THAT(errors_of("data {}\nmodel { convnet {} } optimizer { sgd {} } train {}"),
              ElementsAre("2:9: model.convnet.block: is required: at least one convolution, block { channels: 32 }",
                          HasSubstr("1:1: data.global_batch: is required"), HasSubstr("1:1: data.train: is required"),
                          HasSubstr("2:34: optimizer.sgd.lr: is required"), HasSubstr("train.steps: is required")));
}

// A default that stands in for a misspelt field contradicts nobody.
TEST(Validate, DoesNotCompareWithWhatWasMisread) {
  EXPECT_THAT(errors_of(std::string(kSample) + "amp { opt_level: O1 loss_scale { intt: 4 min: 2 max: 8 } }"),
              ElementsAre(HasSubstr("intt")));
  EXPECT_THAT(errors_of(std::string(kSample) + "amp { opt_level: O1 loss_scale { init: 4 max: eight min: 2 } }"),
              ElementsAre(HasSubstr("eight")));
  EXPECT_THAT(errors_of(std::string(kSample) + "amp { opt_level: O9 dtype: FP16 }"), ElementsAre(HasSubstr("O9")));
}

struct Case {
  std::vector<std::string> overrides;
  std::string error;
};

class ValidateCase : public testing::TestWithParam<Case> {};

TEST_P(ValidateCase, IsNamedWithItsField) {
  EXPECT_THAT(errors_of(kSample, GetParam().overrides), ElementsAre(HasSubstr(GetParam().error)));
}

INSTANTIATE_TEST_SUITE_P(
    Values, ValidateCase,
    testing::Values(
        Case{{"name=a b"}, "name: must be at most 128 letters, digits"},  //
        Case{{"name=../up"}, "name: must be"}, Case{{"optimizer.sgd.lr=0"}, "optimizer.sgd.lr: must be > 0, is 0"},
        Case{{"optimizer.group=[{ match: \"w\" freeze_statistics: true }]"},
             "optimizer.group[0].freeze_statistics: is for a frozen group"},
        Case{{"train.epochs=0"}, "train.epochs: must be > 0, is 0"},
        Case{{"train.epochs=inf"}, "train.epochs: must be > 0, is inf"},
        Case{{"optimizer.sgd.lr=nan"}, "optimizer.sgd.lr: must be > 0, is nan"},
        Case{{"optimizer.sgd.lr=1e999"}, "optimizer.sgd.lr: must be > 0, is inf"},
        Case{{"optimizer.sgd.nesterov=true"}, "optimizer.sgd.nesterov: needs momentum > 0"},
        Case{{"optimizer.adam.lr=1", "optimizer.adam.beta2=1"}, "optimizer.adam.beta2: must be >= 0 and < 1, is 1"},
        Case{{"optimizer.clip_norm=0"}, "optimizer.clip_norm: must be > 0, is 0"},
        Case{{"optimizer.group={ match: \"(\" }"}, "optimizer.group[0].match: \"(\" is no regular expression"},
        Case{{"optimizer.group={ lr_scale: 2 }"}, "optimizer.group[0].match: is required"},
        Case{{"schedule={ step { milestones: [5, 5] } }"}, "schedule.step.milestones: must be > 0 and ascending"},
        Case{{"schedule.cosine.final_fraction=-1"}, "schedule.cosine.final_fraction: must be >= 0, is -1"},
        Case{{"schedule={ reduce_on_plateau {} }"}, "schedule.reduce_on_plateau: needs train.eval_every"},
        Case{{"schedule={ reduce_on_plateau { factor: 1 } }", "train.eval_every=1",
              "data.eval={ synthetic { samples: 8 shape: 4 classes: 2 } }"},
             "schedule.reduce_on_plateau.factor: must be > 0 and < 1, is 1"},
        Case{{"amp.dtype=FP16"}, "amp.dtype: FP16 contradicts opt_level O0"},
        Case{{"amp.opt_level=O2", "amp.dtype=FP32"}, "amp.dtype: FP32 contradicts opt_level O2"},
        Case{{"amp.opt_level=O1", "amp.master_weights=false"}, "amp.master_weights: cannot be false under O1"},
        Case{{"fault={kill{step:2 phase:LOSS}}"}, "fault[0].kill.phase: LOSS is for nan"},
        Case{{"amp.opt_level=O1", "amp.keep_batch_norm_fp32=false"},
             "amp.keep_batch_norm_fp32: cannot be false under O1"},
        Case{{"amp.opt_level=O2", "amp.cast_model_type=BF16"},
             "amp.cast_model_type: must be float32 or the compute dtype"},
        Case{{"amp.autocast=true"}, "amp.autocast: casts to 16 bits, and the compute dtype is float32"},
        Case{{"model.mlp.batch_norm_momentum=2"}, "model.mlp.batch_norm_momentum: must be in [0, 1], is 2"},
        Case{{"model.mlp.batch_norm_epsilon=0"}, "model.mlp.batch_norm_epsilon: must be > 0, is 0"},
        Case{{"amp.loss_scale.growth_factor=1"}, "amp.loss_scale.growth_factor: must be > 1, is 1"},
        Case{{"amp.loss_scale.backoff_factor=1"}, "amp.loss_scale.backoff_factor: must be > 0 and < 1, is 1"},
        Case{{"amp.opt_level=O1", "amp.loss_scale.init=0.5"}, "amp.loss_scale.init: must be >= min, is 0.5"},
        Case{{"amp.opt_level=O1", "amp.loss_scale.max=8"}, "amp.loss_scale.init: must be <= max, is 65536"},
        Case{{"amp.loss_scale.growth_interval=0"}, "amp.loss_scale.growth_interval: must be >= 1, is 0"},
        Case{{"comm.bucket_mb=0"}, "comm.bucket_mb: must be > 0, is 0"},
        Case{{"comm.timeout_s=-1"}, "comm.timeout_s: must be > 0 and <= 1e7, is -1"},
        Case{{"comm.timeout_s=nan"}, "comm.timeout_s: must be > 0 and <= 1e7, is nan"},
        Case{{"comm.timeout_s=inf"}, "comm.timeout_s: must be > 0 and <= 1e7, is inf"},
        Case{{"comm.timeout_s=1e10"}, "comm.timeout_s: must be > 0 and <= 1e7, is 1"},
        Case{{"model.mlp.hidden=[4, 0]"}, "model.mlp.hidden[1]: must be >= 1, is 0"},
        Case{{"model.mlp.dropout=1"}, "model.mlp.dropout: must be >= 0 and < 1, is 1"},
        Case{{"model={ convnet { block { channels: 8 kernel: 4 } } }"},
             "model.convnet.block[0].kernel: must be odd, is 4"},
        Case{{"model={ convnet { block { } } }"}, "model.convnet.block[0].channels: is required"},
        Case{{"model.resnet.depth=20"}, "model.resnet.depth: must be one of 18, 34, 50, 101, 152, is 20"},
        Case{{"data.global_batch=0"}, "data.global_batch: must be > 0, is 0"},
        Case{{"data.normalize={ std: 0 }"}, "data.normalize.std[0]: must be > 0, is 0"},
        Case{{"data.normalize={ mean: [1, 2] std: [1, 1, 1] }"}, "data.normalize: mean has 2 values and std 3"},
        Case{{"data.train.synthetic.shape=[4, 0]"}, "data.train.synthetic.shape[1]: must be >= 1, is 0"},
        Case{{"data.train.synthetic.classes=0"}, "data.train.synthetic.target_size: is required"},
        Case{{"data.train.cifar.files=[]"}, "data.train.cifar.files: is required"},
        Case{{"data.train.synthetic.vocabulary=4"}, "data.train.synthetic.classes: must be absent where samples are"},
        Case{{"data.train.tokens={ context: 4 }"}, "data.train.tokens.files: is required"},
        Case{{"data.train.tokens={ files: \"" LOCKSTEP_SOURCE_DIR "/README.md\" }"},
             "data.train.tokens.context: is required"},
        Case{{"data.train.tokens={ files: \"" LOCKSTEP_SOURCE_DIR "/README.md\" context: 1 begin: 0.5 end: 0.5 }"},
             "data.train.tokens.end: must be > begin and <= 1, is 0.5"},
        Case{{"data.train.tokens={ files: \"" LOCKSTEP_SOURCE_DIR "/README.md\" context: 1 stride: 0 }"},
             "data.train.tokens.stride: must be >= 1, is 0"},
        Case{{"data.train.tokens={ files: \"" LOCKSTEP_SOURCE_DIR "/README.md\" context: 1 format: BPE }"},
             "data.train.tokens.vocab_file: is required for BPE"},
        Case{{"data.train.arrays={ features: \"" LOCKSTEP_SOURCE_DIR "/README.md\" }"},
             "data.train.arrays.targets: is required"},
        Case{{"data.train.csv={ files: \"" LOCKSTEP_SOURCE_DIR "/README.md\" delimiter: \"ab\" }"},
             "data.train.csv.delimiter: must be one character"},
        Case{{"data.train.image_folder={ folder: \"" LOCKSTEP_SOURCE_DIR "/README.md\" }"},
             "data.train.image_folder.folder: is no folder: \"" LOCKSTEP_SOURCE_DIR "/README.md\""},
        Case{{"data.train.image_folder={ folder: \"/\" size: 8 resize: 7 }"},
             "data.train.image_folder.resize: must be >= size and <= 8192, is 7"},
        Case{{"data.max_skipped=7"}, "data.max_skipped: needs on_error: SKIP"},
        Case{{"data.prefetch=0", "data.decode_threads=2"}, "data.decode_threads: needs prefetch > 0"},
        Case{{"data.eval={ synthetic { samples: 8 shape: 4 classes: 3 resident: true } }"},
             "data.eval.synthetic.resident: is for data.train.synthetic"},
        Case{{"data.train.shards={ files: \"no-{00..99}.tar\" }"},
             "data.train.shards.files[0]: no such file: \"/data/no-00.tar\"; 100 of its 100 files cannot be read"},
        Case{{"data.augment.random_resized_crop={}"},
             "data.augment.random_resized_crop: is for data.train.image_folder"},
        Case{{"data.augment.color_jitter={ hue: 0.7 }"}, "data.augment.color_jitter.hue: must be >= 0 and <= 0.5"},
        Case{{"train.accumulate=9"}, "train.accumulate: must be <= data.global_batch, is 9"},
        Case{{"train.eval_every=5"}, "train.eval_every: needs data.eval"},
        Case{{"train.label_smoothing=1"}, "train.label_smoothing: must be >= 0 and < 1, is 1"},
        Case{{"train.loss=MSE"}, "train.loss: MSE needs regression data"},
        Case{{"fault={ nan { } }"}, "fault[0].nan.step: is required"},
        Case{{"fault={ }"}, "fault[0]: is required: one of overflow, nan, kill"},
        Case{{"fault={ nan { step: 1 micro_batch: 1 } }"},
             "fault[0].nan.micro_batch: must be < train.accumulate, is 1"}));

TEST(Validate, ShowsAMissingFileAsWrittenAndAsResolved) {
  EXPECT_THAT(errors_of(kSample, {"data.train={ idx { images: \"a/../no.gz\" labels: \"/\" } }"}),
              ElementsAre(HasSubstr("data.train.idx.images: no such file: \"a/../no.gz\" (/data/no.gz)"),
                          HasSubstr("data.train.idx.labels: is a directory, not a file: \"/\"")));
}

TEST(Validate, BracesOfTheJobsFolderAreNoPattern) {
  std::string pattern = (std::filesystem::temp_directory_path() / "lockstep_job_XXXXXX").string();
  const std::filesystem::path top = mkdtemp(pattern.data());
  const std::vector<std::string> overrides{"data.train={ shards { files: \"t-{0..1}.tar\" } }"};
  const auto errors = [&](const char* name) {
    std::filesystem::create_directory(top / name);
    for (const char* file : {"t-0.tar", "t-1.tar"}) std::ofstream(top / name / file) << "x";
    std::vector<std::string> found;
    const Checked checked = check_text(kSample, "job.pbtxt", overrides, top / name);
    for (const Diagnostic& wrong : checked.diagnostics) found.push_back(wrong.str());
    // As a run keeps it.
    for (const Diagnostic& wrong : check_text(to_text(checked.job), "job.pbtxt", {}, "/").diagnostics) {
      found.push_back(wrong.str());
    }
    return found;
  };
  for (const char* name : {"{x}", "{a,b}", "{0..1}", "{2..1}", "{a", "a}", "{a}{b,c}"}) {
    EXPECT_THAT(errors(name), IsEmpty()) << name;
  }
  std::filesystem::remove_all(top);
}

TEST(Validate, AResolvedJobIsSound) {
  const Job job = sample({"data.prefetch=0"});
  EXPECT_EQ(to_text(load_text(to_text(job), "resolved.pbtxt", {}, "/data")), to_text(job));
}

TEST(Validate, GivesTheClosestPlaceInTheFileForAMissingField) {
  EXPECT_THAT(errors_of("model { mlp {} }\n data { global_batch: 1\n  train { synthetic { samples: 1 shape: 1 } } }\n"
                        "optimizer { sgd {} } train { steps: 1 }"),
              ElementsAre(HasSubstr("3:11: data.train.synthetic.target_size: is required"),
                          HasSubstr("4:13: optimizer.sgd.lr: is required")));
}

TEST(Validate, ShippedJobsAreSound) {
  const std::filesystem::path configs = LOCKSTEP_SOURCE_DIR "/configs";
  int jobs = 0;
  for (const auto& entry : std::filesystem::directory_iterator(configs)) {
    if (entry.path().extension() != ".pbtxt") continue;
    ++jobs;
    const Checked checked = check(entry.path());
    for (const Diagnostic& wrong : checked.diagnostics) {
      // Files of the user's own; the job says where they come from.
      EXPECT_TRUE(wrong.message.starts_with(kMissing) && !checked.data_note.empty()) << wrong.str();
    }
  }
  EXPECT_GE(jobs, 4);
}

}  // namespace
}  // namespace lockstep::job
