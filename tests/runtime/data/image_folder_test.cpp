// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/image_folder.h"

#include <gmock/gmock.h>

#include <thread>

#include "runtime/data/augment.h"
#include "runtime/data/make_dataset.h"
#include "tests/runtime/data/image_files.h"

namespace lockstep::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::ThrowsMessage;

class ImageFolderTest : public testing::Test {
 protected:
  ImageFolderTest() {
    for (const char* name : {"train", "train/dog", "train/cat", "train/cat/more", "train/.cache", "eval", "eval/dog"}) {
      std::filesystem::create_directory(folder_.path(name));
    }
    folder_.write("train/dog/b.JPG", jpeg_bytes(gradient(40, 30)));
    folder_.write("train/dog/a.png", png_bytes(gradient(30, 40)));
    folder_.write("train/cat/z.jpeg", jpeg_bytes(gradient(50, 50)));
    folder_.write("train/cat/more/y.jpg", jpeg_bytes(gradient(20, 60)));
    folder_.write("train/cat/notes.txt", {1, 2, 3});
    folder_.write("eval/dog/c.png", png_bytes(gradient(32, 28)));
  }
  ImageFolderOptions train() const { return {.folder = folder_.path("train"), .size = 14}; }
  DataOptions both() const {
    return {.train = train(), .eval = ImageFolderOptions{.folder = folder_.path("eval"), .size = 14}};
  }

  TemporaryFolder folder_;
};

TEST_F(ImageFolderTest, ClassesAreTheSortedFolders) {
  const ImageFolderDataset set(train());
  EXPECT_EQ(set.size(), 4);
  EXPECT_EQ(set.sample_shape(), (Shape{14, 14, 3}));
  EXPECT_THAT(set.class_names(), ElementsAre("cat", "dog"));
  EXPECT_THAT(set.describe().labels, ElementsAre(0, 0, 1, 1));
  // The gradient's middle is in the middle, whatever the image's shape.
  for (std::int64_t i = 0; i < 4; ++i) {
    const Drawn sample = drawn(set, {.index = i});
    EXPECT_NEAR(sample.values[(7 * 14 + 7) * 3], 0.5f, 0.05f);
    EXPECT_NEAR(sample.values[(7 * 14 + 7) * 3 + 1], 0.5f, 0.05f);
    EXPECT_EQ(sample.labels[0], i / 2);
  }
}

TEST_F(ImageFolderTest, LinksToFoldersAreFollowed) {
  std::filesystem::create_directory_symlink(folder_.path("eval/dog"), folder_.path("train/dog/linked"));
  const ImageFolderDataset set(train());
  EXPECT_THAT(set.describe().labels, ElementsAre(0, 0, 1, 1, 1));
}

TEST_F(ImageFolderTest, LinksBackToAFolderAroundThemAreNotFollowed) {
  for (const char* name : {"train/cat/up", "train/cat/more/up", "train/dog/up", "train/dog/again"}) {
    std::filesystem::create_directory_symlink("..", folder_.path(name));
  }
  for (const char* name : {"train/self", "train/cat/self", "train/dog/self"}) {
    std::filesystem::create_directory_symlink(".", folder_.path(name));
  }
  const ImageFolderDataset set(train());
  EXPECT_THAT(set.class_names(), ElementsAre("cat", "dog"));
  EXPECT_THAT(set.describe().labels, ElementsAre(0, 0, 1, 1));
}

TEST_F(ImageFolderTest, ImagesThatArePassedOverAreCountedAndNamed) {
  EXPECT_THAT(ImageFolderDataset(train()).describe().remarks, IsEmpty());  // notes.txt is no image
  for (const char* name : {"train/cat/b.gif", "train/cat/more/a.GIF", "train/dog/c.tiff"}) folder_.write(name, {1});
  std::filesystem::create_symlink("nowhere", folder_.path("train/dog/gone.jpg"));
  std::filesystem::create_symlink("nowhere", folder_.path("train/fox"));
  folder_.write("train/loose.png", png_bytes(gradient(8, 8)));
  const ImageFolderDataset set(train());
  EXPECT_EQ(set.size(), 4);
  EXPECT_THAT(set.describe().remarks,
              ElementsAre(HasSubstr("3 images of formats that are not read are left out: 2 .gif, 1 .tiff (the first: "
                                    "cat/b.gif)"),
                          HasSubstr("2 links that lead nowhere are left out (the first: dog/gone.jpg)"),
                          HasSubstr("1 image beside the classes' folders, in none of them, is left out (the first: "
                                    "loose.png)")));
  std::filesystem::create_directories(folder_.path("gifs/cat"));
  folder_.write("gifs/cat/a.gif", {1});
  EXPECT_THAT(error_of([&] { ImageFolderDataset gifs({.folder = folder_.path("gifs")}); }),
              HasSubstr("hold no image; 1 image of a format that is not read is left out: 1 .gif"));
}

TEST_F(ImageFolderTest, ImagesAreTurnedUprightWhereThatIsAskedFor) {
  folder_.write("train/dog/b.JPG", turned_jpeg_bytes(gradient(40, 20)));
  ImageFolderOptions options = train();
  const auto red_grows = [&](bool down) {
    const Drawn sample = drawn(ImageFolderDataset(options), {.index = 3});
    const auto red = [&](int y, int x) { return sample.values[static_cast<std::size_t>((y * 14 + x) * 3)]; };
    return down ? red(12, 7) - red(1, 7) : red(7, 12) - red(7, 1);
  };
  EXPECT_GT(red_grows(false), 0.2f);
  EXPECT_NEAR(red_grows(true), 0, 0.1f);
  options.exif_orientation = true;
  EXPECT_GT(red_grows(true), 0.2f);
  EXPECT_NEAR(red_grows(false), 0, 0.1f);
}

TEST_F(ImageFolderTest, EvaluationHasTheClassesOfTheTraining) {
  const DatasetPtr eval = make_dataset(both(), Split::kEval);
  EXPECT_EQ(eval->classes(), 2);
  EXPECT_THAT(drawn(*eval, {}).labels, ElementsAre(1));
  std::filesystem::create_directory(folder_.path("eval/cow"));
  EXPECT_THAT(error_of([&] { make_dataset(both(), Split::kEval); }),
              HasSubstr("the folder \"cow\" is none of the 2 classes of the training data"));
}

TEST_F(ImageFolderTest, TrainingImagesAreDrawnAnewInEachEpochFromAnyThread) {
  DataOptions options = both();
  options.augment = {.flip = true,
                     .random_resized_crop = RandomResizedCropOptions(),
                     .color_jitter = {.brightness = 0.4, .contrast = 0.4, .saturation = 0.4, .hue = 0.1}};
  const DatasetPtr set = make_dataset(options, Split::kTrain);
  const SampleKey key{.index = 1, .epoch = 5, .seed = 7};
  const Drawn first = drawn(*set, key);
  EXPECT_NE(first.values, drawn(*set, {.index = 1, .epoch = 6, .seed = 7}).values);
  EXPECT_NE(first.values, drawn(*set, {.index = 1, .epoch = 5, .seed = 8}).values);
  std::vector<Drawn> found(4);
  {
    std::vector<std::jthread> threads;
    for (Drawn& sample : found) threads.emplace_back([&] { sample = drawn(*set, key); });
  }
  for (const Drawn& sample : found) EXPECT_EQ(sample, first);
  for (const float value : first.values) {
    EXPECT_GE(value, 0);
    EXPECT_LE(value, 1);
  }
  // Evaluation data are the center crop of every epoch.
  const DatasetPtr eval = make_dataset(options, Split::kEval);
  EXPECT_EQ(drawn(*eval, {.epoch = 1}), drawn(*eval, {.epoch = 2}));
}

TEST_F(ImageFolderTest, CropsAreForImagesAlone) {
  DataOptions options{.train = SyntheticOptions{.samples = 1, .shape = {8, 8, 3}, .classes = 2}};
  options.augment.random_resized_crop.emplace();
  EXPECT_THAT([&] { make_dataset(options, Split::kTrain); },
              ThrowsMessage<FieldError>(HasSubstr("data.augment.random_resized_crop: is for data.train.image_folder")));
  options.train = train();
  options.augment.random_resized_crop->min_area = -1;
  EXPECT_THAT([&] { make_dataset(options, Split::kTrain); },
              ThrowsMessage<FieldError>(HasSubstr("data.augment.random_resized_crop.min_area: must be > 0, is -1")));
}

TEST_F(ImageFolderTest, ADamagedImageIsNamedWithItsIndex) {
  folder_.write("train/dog/a.png", {0x89, 'P', 'N', 'G', 1, 2, 3});
  const ImageFolderDataset set(train());
  EXPECT_THAT(error_of([&] { drawn(set, {.index = 2}); }), HasSubstr("train/dog/a.png (sample 2): cannot be decoded"));
  ImageFolderOptions small = train();
  small.max_pixels = 1199;
  EXPECT_THAT(error_of([&] { drawn(ImageFolderDataset(small), {.index = 3}); }),
              HasSubstr("b.JPG (sample 3): has 40 x 30 pixels, more than the 1199"));
}

TEST_F(ImageFolderTest, FoldersWithoutImagesAreNamed) {
  const auto error = [&](const std::string& name) {
    return error_of([&] { ImageFolderDataset set({.folder = folder_.path(name)}); });
  };
  EXPECT_THAT(error("none"), HasSubstr("cannot list " + folder_.path("none")));
  EXPECT_THAT(error("train/dog"), HasSubstr("train/dog: holds no folders"));
  std::filesystem::create_directories(folder_.path("empty/cow"));
  EXPECT_THAT(error("empty"), HasSubstr("its folders hold no image"));
}

TEST(ImageFolderOptionsTest, WithoutAMeaningAreRefused) {
  const auto field = [](ImageFolderOptions options) {
    options.folder = "images";
    const FieldProblems problems = problems_of(options);
    return problems.empty() ? "" : problems[0].field;
  };
  EXPECT_EQ(field({}), "");
  EXPECT_EQ(field({.size = 0}), "size");
  EXPECT_EQ(field({.size = 224, .resize = 200}), "resize");
  EXPECT_EQ(field({.max_pixels = 0}), "max_pixels");
}

TEST(AugmentOptionsTest, WithoutAMeaningAreRefused) {
  const auto of_crop = [](const RandomResizedCropOptions& crop) {
    const FieldProblems problems = problems_of(AugmentOptions{.random_resized_crop = crop});
    return problems.empty() ? "" : problems[0].field;
  };
  EXPECT_EQ(of_crop({}), "");
  EXPECT_EQ(of_crop({.min_area = 0}), "random_resized_crop.min_area");
  EXPECT_EQ(of_crop({.max_area = 1.5}), "random_resized_crop.max_area");
  EXPECT_EQ(of_crop({.min_aspect = 2}), "random_resized_crop.max_aspect");
  EXPECT_EQ(problems_of(AugmentOptions{.color_jitter = {.hue = 0.6}})[0].field, "color_jitter.hue");
  EXPECT_EQ(problems_of(AugmentOptions{.volume = {.patch = Shape{2, 3}}})[0].field, "patch");
}

/// One image of a few colours.
class Colors : public Dataset {
 public:
  std::int64_t size() const override { return 100; }
  Shape sample_shape() const override { return {1, 4, 3}; }
  std::int64_t classes() const override { return 1; }
  void get(const SampleKey&, const Sample& sample) const override {
    const std::vector<float> colors{0.6f, 0.2f, 0.1f, 0.3f, 0.3f, 0.3f, 0.1f, 0.5f, 0.4f, 0, 0.2f, 0.4f};
    std::ranges::copy(colors, sample.values.begin());
    sample.labels[0] = 0;
  }
};

std::vector<float> jittered(const ColorJitterOptions& options, std::int64_t index) {
  return drawn(ColorJitter(std::make_shared<Colors>(), options), {.index = index}).values;
}

TEST(ColorJitterTest, ChangesWhatItIsAskedTo) {
  const std::vector<float> plain = jittered({}, 0);
  const auto grey = [](const std::vector<float>& image, std::size_t pixel) {
    return 0.2989f * image[3 * pixel] + 0.587f * image[3 * pixel + 1] + 0.114f * image[3 * pixel + 2];
  };
  for (std::int64_t index = 0; index < 100; ++index) {
    const std::vector<float> bright = jittered({.brightness = 0.5}, index);
    const std::vector<float> contrast = jittered({.contrast = 0.3}, index);
    const std::vector<float> saturated = jittered({.saturation = 0.3}, index);
    const std::vector<float> turned = jittered({.hue = 0.5}, index);
    const float factor = bright[0] / plain[0];
    EXPECT_GE(factor, 0.5f);
    EXPECT_LE(factor, 1.5f);
    const float spread = (contrast[1] - contrast[2]) / (plain[1] - plain[2]);
    for (std::size_t i = 0; i < plain.size(); ++i) {
      EXPECT_NEAR(bright[i], std::min(plain[i] * factor, 1.0f), 1e-6f);
      const float mean = (grey(plain, 0) + grey(plain, 1) + grey(plain, 2) + grey(plain, 3)) / 4;
      EXPECT_NEAR(contrast[i], std::clamp(mean + (plain[i] - mean) * spread, 0.0f, 1.0f), 1e-4f);
    }
    for (std::size_t pixel = 0; pixel < 3; ++pixel) {  // of the last one a channel is at its limit
      EXPECT_NEAR(grey(saturated, pixel), grey(plain, pixel), 1e-4f);
    }
    for (std::size_t pixel = 0; pixel < 4; ++pixel) {  // a turn keeps value and range
      const auto [low, high] = std::minmax({plain[3 * pixel], plain[3 * pixel + 1], plain[3 * pixel + 2]});
      const auto [low_now, high_now] = std::minmax({turned[3 * pixel], turned[3 * pixel + 1], turned[3 * pixel + 2]});
      EXPECT_NEAR(low_now, low, 1e-6f);
      EXPECT_NEAR(high_now, high, 1e-6f);
    }
  }
  EXPECT_NE(jittered({.hue = 0.5}, 1), jittered({.hue = 0.5}, 2));
}

TEST(ColorJitterTest, NeedsImagesOfThreeChannels) {
  EXPECT_THAT([] { ColorJitter jitter(std::make_shared<Counting>(3), {.hue = 0.1}); },
              ThrowsMessage<FieldError>(HasSubstr("data.augment.color_jitter: needs images [H, W, 3]")));
}

}  // namespace
}  // namespace lockstep::data
