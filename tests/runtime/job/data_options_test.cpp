// SPDX-License-Identifier: Apache-2.0
#include "runtime/job/data_options.h"

#include <gmock/gmock.h>

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

TEST(DataOptions, OfAResolvedDefaultJobAreTheStructsDefaults) {
  const data::DataOptions idx = data_options(resolved([](Dataset& set) { set.mutable_idx(); }).data());
  EXPECT_EQ(std::get<data::IdxOptions>(idx.train), data::IdxOptions());
  EXPECT_EQ(idx, data::DataOptions());
  const data::DataOptions cifar = data_options(resolved([](Dataset& set) { set.mutable_cifar(); }).data());
  EXPECT_EQ(std::get<data::CifarOptions>(cifar.train), data::CifarOptions());
  const data::DataOptions synthetic = data_options(resolved([](Dataset& set) { set.mutable_synthetic(); }).data());
  EXPECT_EQ(std::get<data::SyntheticOptions>(synthetic.train), data::SyntheticOptions());
  const data::DataOptions spheres = data_options(resolved([](Dataset& set) { set.mutable_spheres(); }).data());
  EXPECT_EQ(std::get<data::SpheresOptions>(spheres.train), data::SpheresOptions());
}

TEST(DataOptions, OfUsersFilesInAResolvedDefaultJobAreTheStructsDefaults) {
  const auto train = [](void (*name_kind)(Dataset&)) { return data_options(resolved(name_kind).data()).train; };
  EXPECT_EQ(train([](Dataset& set) { set.mutable_tokens(); }), data::DatasetOptions(data::TokensOptions()));
  EXPECT_EQ(train([](Dataset& set) { set.mutable_arrays(); }), data::DatasetOptions(data::ArraysOptions()));
  EXPECT_EQ(train([](Dataset& set) { set.mutable_csv(); }), data::DatasetOptions(data::CsvOptions()));
  // The job says the number that the struct's 0 stands for.
  const data::ImageFolderOptions images{.resize = 256};
  EXPECT_EQ(train([](Dataset& set) { set.mutable_image_folder(); }), data::DatasetOptions(images));

  Data data;
  data.mutable_augment()->mutable_random_resized_crop();
  const Job job = resolved([](Dataset& set) { set.mutable_image_folder(); });
  data::AugmentOptions augment;
  augment.random_resized_crop.emplace();
  EXPECT_EQ(augment_options(data.augment()), augment);
  EXPECT_EQ(augment_options(job.data().augment()), data::AugmentOptions());
}

TEST(LoaderOptions, OfAResolvedDefaultJobAreTheStructsDefaults) {
  Job job = resolved([](Dataset& set) { set.mutable_synthetic(); });
  job.mutable_data()->set_global_batch(1);  // has to be given
  const data::LoaderOptions options = loader_options(job);
  const data::LoaderOptions defaults;
  EXPECT_EQ(options.accumulate, defaults.accumulate);
  EXPECT_EQ(options.shuffle, defaults.shuffle);
  EXPECT_EQ(options.drop_last, defaults.drop_last);
  EXPECT_EQ(options.prefetch, defaults.prefetch);
  EXPECT_EQ(options, defaults);
}

TEST(DataOptions, TakeEveryFieldOfTheJob) {
  Data data;
  Idx& idx = *data.mutable_train()->mutable_idx();
  idx.set_images("a");
  idx.set_labels("b");
  idx.set_classes(7);
  Cifar& cifar = *data.mutable_eval()->mutable_cifar();
  cifar.add_files("c");
  cifar.add_files("d");
  cifar.set_labels(CIFAR100_COARSE);
  data.mutable_normalize()->add_mean(0.5f);
  data.mutable_normalize()->add_std(2);
  data.mutable_augment()->set_pad_crop(3);
  data.mutable_augment()->set_flip(true);
  const data::DataOptions expected{
      .train = data::IdxOptions{"a", "b", 7},
      .eval = data::CifarOptions{{"c", "d"}, data::CifarLabels::kCifar100Coarse},
      .normalize = {.mean = {0.5f}, .std = {2}},
      .augment = {.pad_crop = 3, .flip = true},
  };
  EXPECT_EQ(data_options(data), expected);

  cifar.set_labels(CIFAR100_FINE);
  EXPECT_EQ(std::get<data::CifarOptions>(*data_options(data).eval).labels, data::CifarLabels::kCifar100Fine);

  Synthetic& synthetic = *data.mutable_train()->mutable_synthetic();
  synthetic.set_samples(9);
  synthetic.add_shape(3);
  synthetic.add_shape(2);
  synthetic.set_classes(4);
  synthetic.set_target_size(5);
  const data::SyntheticOptions generated{.samples = 9, .shape = {3, 2}, .classes = 4, .target_size = 5};
  EXPECT_EQ(data_options(data).train, data::DatasetOptions(generated));

  Spheres& spheres = *data.mutable_train()->mutable_spheres();
  spheres.set_samples(9);
  for (const std::uint32_t extent : {4, 5, 6, 2}) spheres.add_shape(extent);
  spheres.set_most(7);
  spheres.set_min_radius(1.5);
  spheres.set_max_radius(2.5);
  spheres.set_noise(0.125);
  const data::SpheresOptions volumes{
      .samples = 9, .shape = {4, 5, 6, 2}, .most = 7, .min_radius = 1.5, .max_radius = 2.5, .noise = 0.125};
  EXPECT_EQ(data_options(data).train, data::DatasetOptions(volumes));
  Augment& augment = *data.mutable_augment();
  for (const std::uint32_t extent : {2, 3, 4}) augment.add_patch(extent);
  augment.set_mirror(true);
  augment.set_intensity_scale(0.25);
  augment.set_intensity_shift(0.5);
  const data::VolumeAugmentOptions volume{
      .patch = Shape{2, 3, 4}, .mirror = true, .intensity_scale = 0.25, .intensity_shift = 0.5};
  EXPECT_EQ(data_options(data).augment.volume, volume);
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

TEST(DataOptions, TakeEveryFieldOfUsersFiles) {
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
  EXPECT_EQ(train("tokens { files: 'a' format: LLM_C context: 8 }"),
            data::DatasetOptions(data::TokensOptions{
                .files = {"/data/a"}, .format = data::TokenFormat::kLlmC, .context = 8, .stride = 8}));
  EXPECT_EQ(train("arrays { features: 'x' targets: 'y' target_kind: NUMBERS classes: 3 vocabulary: 5 }"),
            data::DatasetOptions(data::ArraysOptions{.features = "/data/x",
                                                     .targets = "/data/y",
                                                     .target_kind = data::TargetKind::kNumbers,
                                                     .classes = 3,
                                                     .vocabulary = 5}));
  EXPECT_EQ(train("csv { files: 'a' target: 't' features: ['u', '1'] header: false delimiter: ';' "
                  "target_kind: NUMBERS classes: 4 }"),
            data::DatasetOptions(data::CsvOptions{.files = {"/data/a"},
                                                  .target = "t",
                                                  .features = {"u", "1"},
                                                  .header = false,
                                                  .delimiter = ";",
                                                  .target_kind = data::TargetKind::kNumbers,
                                                  .classes = 4}));
  EXPECT_EQ(
      train("image_folder { folder: 'i' size: 32 resize: 40 max_pixels: 100 }"),
      data::DatasetOptions(data::ImageFolderOptions{.folder = "/data/i", .size = 32, .resize = 40, .max_pixels = 100}));
  EXPECT_EQ(train("synthetic { samples: 2 shape: 4 vocabulary: 7 }"),
            data::DatasetOptions(data::SyntheticOptions{.samples = 2, .shape = {4}, .vocabulary = 7}));

  Augment augment;
  augment.mutable_random_resized_crop()->set_min_area(0.1);
  augment.mutable_random_resized_crop()->set_max_area(0.2);
  augment.mutable_random_resized_crop()->set_min_aspect(0.5);
  augment.mutable_random_resized_crop()->set_max_aspect(2);
  augment.mutable_color_jitter()->set_brightness(0.1);
  augment.mutable_color_jitter()->set_contrast(0.2);
  augment.mutable_color_jitter()->set_saturation(0.3);
  augment.mutable_color_jitter()->set_hue(0.4);
  const data::AugmentOptions expected{.random_resized_crop = data::RandomResizedCropOptions{0.1, 0.2, 0.5, 2},
                                      .color_jitter = {0.1, 0.2, 0.3, 0.4}};
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
  EXPECT_THAT([&] { data_options(data); }, ThrowsMessage<FieldError>(HasSubstr("data.train: names no data set")));
  data.mutable_train()->mutable_synthetic();
  EXPECT_FALSE(data_options(data).eval);
  data.mutable_eval();
  EXPECT_THAT([&] { data_options(data); }, ThrowsMessage<FieldError>(HasSubstr("data.eval: names no data set")));
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
