// SPDX-License-Identifier: Apache-2.0
#include "runtime/job/data_options.h"

#include <gmock/gmock.h>

#include <limits>

#include "runtime/job/defaults.h"
#include "tests/runtime/job/sample_job.h"

namespace lockstep::job {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

/// A job that says nothing but the kind of its data, as resolved.
Job resolved(void (*name_kind)(Dataset&)) {
  Job job;
  name_kind(*job.mutable_data()->mutable_train());
  fill_defaults(job, "test.pbtxt", ".");
  return job;
}

TEST(DataOptions, OfVolumesAreRefusedWithTheirField) {
  const auto first = [](const std::string& field) {
    const Checked checked = check_text(kSample, "job.pbtxt", std::vector<std::string>{field}, "/data");
    return checked.diagnostics.empty() ? std::string() : checked.diagnostics[0].path;
  };
  const std::string set = "data.train={ spheres { samples: 4 ";
  EXPECT_EQ(first(set + "} }"), "data.train.spheres.shape");
  EXPECT_EQ(first(set + "shape: [4, 4, 4] } }"), "data.train.spheres.shape");
  EXPECT_EQ(first(set + "shape: [4, 0, 4, 1] } }"), "data.train.spheres.shape[1]");
  EXPECT_EQ(first(set + "shape: [4, 4, 4, 1] min_radius: 0 } }"), "data.train.spheres.min_radius");
  EXPECT_EQ(first(set + "shape: [4, 4, 4, 1] max_radius: 1 } }"), "data.train.spheres.max_radius");
  EXPECT_EQ(first("data.augment={ patch: [4, 4] }"), "data.augment.patch");
  EXPECT_EQ(first("data.augment={ patch: [4, 0, 4] }"), "data.augment.patch[1]");
  EXPECT_EQ(first("data.augment={ intensity_scale: 1 }"), "data.augment.intensity_scale");
  EXPECT_EQ(first("data.augment={ intensity_shift: -1 }"), "data.augment.intensity_shift");
}

TEST(DataOptions, MasksHaveTheirLosses) {
  const std::string spheres = "data.train={ spheres { samples: 4 shape: [4, 4, 4, 1] } }";
  EXPECT_EQ(resolved([](Dataset& set) { set.mutable_spheres(); }).train().loss(), BCE_DICE);
  const auto path = [&](const std::string& loss) {
    const Checked checked =
        check_text(kSample, "job.pbtxt", std::vector<std::string>{spheres, "train.loss=" + loss}, "/data");
    return checked.diagnostics.empty() ? std::string() : checked.diagnostics[0].path;
  };
  for (const std::string loss : {"BCE_WITH_LOGITS", "DICE", "BCE_DICE", "MSE"}) EXPECT_EQ(path(loss), "") << loss;
  EXPECT_EQ(path("CROSS_ENTROPY"), "train.loss");
}

TEST(DataOptions, TakeWhatTheJobSays) {
  const auto train = [](const std::string& text) {
    const std::string job = "data { train { " + text + " } }";
    return data_options(check_text(job, "job.pbtxt", {}, "/data").job.data()).train;
  };
  EXPECT_EQ(train("tokens { files: ['a', '/b'] format: BPE context: 8 stride: 3 begin: 0.25 end: 0.5 vocabulary: 9 "
                  "vocab_file: 'v' merges_file: 'm' masked { share: 0.5 mask_token: 4 } }"),
            data::DatasetOptions(data::TokensOptions{.files = {"/data/a", "/b"},
                                                     .format = data::TokenFormat::kBpe,
                                                     .context = 8,
                                                     .stride = 3,
                                                     .begin = 0.25,
                                                     .end = 0.5,
                                                     .vocabulary = 9,
                                                     .vocab_file = "/data/v",
                                                     .merges_file = "/data/m",
                                                     .masked = data::MaskedTokensOptions{0.5, 4}}));
  EXPECT_EQ(train("tokens { files: 'a' context: 8 masked {} }"),
            data::DatasetOptions(data::TokensOptions{
                .files = {"/data/a"}, .context = 8, .stride = 8, .masked = data::MaskedTokensOptions()}));
  EXPECT_EQ(train("csv { files: 'a' features: ['u', '1'] header: false delimiter: ';' target_kind: NUMBERS }"),
            data::DatasetOptions(data::CsvOptions{.files = {"/data/a"},
                                                  .features = {"u", "1"},
                                                  .header = false,
                                                  .delimiter = ";",
                                                  .target_kind = data::TargetKind::kNumbers}));
  EXPECT_EQ(train("spheres { samples: 9 shape: [4, 5, 6, 2] min_radius: 1.5 }"),
            data::DatasetOptions(data::SpheresOptions{.samples = 9, .shape = {4, 5, 6, 2}, .min_radius = 1.5}));
  // More than the option can count is a limit that nothing reaches.
  EXPECT_EQ(
      train("image_folder { folder: 'i' size: 32 resize: 40 max_pixels: 18446744073709551615 }"),
      data::DatasetOptions(data::ImageFolderOptions{
          .folder = "/data/i", .size = 32, .resize = 40, .max_pixels = std::numeric_limits<std::int64_t>::max()}));

  Augment augment;
  augment.set_flip(true);
  for (const std::uint32_t extent : {2, 3, 4}) augment.add_patch(extent);
  augment.mutable_random_resized_crop()->set_min_area(0.1);
  augment.mutable_color_jitter()->set_hue(0.4);
  const data::AugmentOptions expected{.flip = true,
                                      .random_resized_crop = data::RandomResizedCropOptions{.min_area = 0.1},
                                      .color_jitter = {.hue = 0.4},
                                      .volume = {.patch = Shape{2, 3, 4}}};
  EXPECT_EQ(augment_options(augment), expected);
}

TEST(DataOptions, LossesFollowTheKindOfTargets) {
  const auto loss = [](const std::string& text) {
    return check_text("data { train { " + text + " } }", "job.pbtxt", {}, "/data").job.train().loss();
  };
  EXPECT_EQ(loss("tokens {}"), CROSS_ENTROPY);
  EXPECT_EQ(loss("arrays {}"), CROSS_ENTROPY);
  EXPECT_EQ(loss("arrays { target_kind: NUMBERS }"), MSE);
  EXPECT_EQ(loss("csv { target_kind: NUMBERS }"), MSE);
  EXPECT_EQ(loss("synthetic { vocabulary: 5 }"), CROSS_ENTROPY);
  EXPECT_EQ(loss("synthetic { target_size: 5 }"), MSE);
}

TEST(LoaderOptions, TakeEveryFieldOfTheJob) {
  const Job job = sample({"train.accumulate=2", "data.shuffle=false", "data.drop_last=true", "data.prefetch=5",
                          "data.decode_threads=4", "data.on_error=SKIP", "data.max_skipped=7"});
  const data::LoaderOptions expected{.global_batch = 8,
                                     .accumulate = 2,
                                     .seed = 3,
                                     .shuffle = false,
                                     .drop_last = true,
                                     .prefetch = 5,
                                     .decode_threads = 4,
                                     .errors = {data::OnError::kSkip, 7}};
  EXPECT_EQ(loader_options(job), expected);
}

TEST(LoaderOptions, HaveTheDtypeThatTheModelCastsItsInputTo) {
  const auto dtype = [](const std::string& amp) { return loader_options(sample({"amp={ " + amp + " }"})).input_dtype; };
  EXPECT_EQ(dtype("opt_level: O0"), DType::kFloat32);
  EXPECT_EQ(dtype("opt_level: O1 dtype: FP16"), DType::kFloat32);
  EXPECT_EQ(dtype("opt_level: O2 dtype: FP16"), DType::kFloat16);
  EXPECT_EQ(dtype("opt_level: O2 dtype: BF16 autocast: true"), DType::kBFloat16);
  EXPECT_EQ(dtype("opt_level: O3 dtype: BF16"), DType::kBFloat16);
  EXPECT_EQ(dtype("opt_level: O2 dtype: FP16 cast_model_type: FP32 autocast: true"), DType::kFloat32);
}

TEST(DataOptions, NeedANamedDataSet) {
  Data data;
  EXPECT_THAT([&] { data_options(data); }, ThrowsMessage<FieldError>(HasSubstr("data.train: names no kind")));
  data.mutable_train()->mutable_synthetic();
  EXPECT_FALSE(data_options(data).eval);
  data.mutable_eval();
  EXPECT_THAT([&] { data_options(data); }, ThrowsMessage<FieldError>(HasSubstr("data.eval: names no kind")));
}

TEST(DataOptions, OfTheReadyDigitsJobGiveItsSamples) {
  const Job job = load(LOCKSTEP_SOURCE_DIR "/configs/digits_convnet.pbtxt");
  EXPECT_EQ(data::describe(data_options(job.data()), data::Split::kTrain).samples, 1500);
  EXPECT_EQ(data::describe(data_options(job.data()), data::Split::kEval).samples, 297);
}

/// What the reader refuses with a line, the options refuse too, for whoever gives them without a job, and name the same
/// field.
TEST(DataOptions, RefuseWhatTheJobsReaderRefuses) {
  for (const std::string field :
       {"data.train.synthetic.samples=0", "data.train.synthetic.target_size=2", "data.normalize={ std: [1, 0] }",
        "data.normalize={ mean: inf }", "data.train.cifar.files=[]", "data.train.idx={ labels: \"a\" }",
        "data.train.synthetic.vocabulary=4", "data.train.tokens={ context: 4 }", "data.train.arrays={ classes: 2 }",
        "data.train.csv={ delimiter: \",\" }", "data.train.image_folder={ size: 3 }"}) {
    const Checked checked = check_text(kSample, "job.pbtxt", std::vector<std::string>{field}, "/data");
    ASSERT_FALSE(checked.diagnostics.empty()) << field;
    try {
      data::make_dataset(data_options(checked.job.data()), data::Split::kTrain);
      ADD_FAILURE() << field << " was accepted";
    } catch (const FieldError& error) {
      EXPECT_EQ(error.path(), checked.diagnostics[0].path) << field;
    }
  }
}

}  // namespace
}  // namespace lockstep::job
