// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/inputs/whole_image.h"

#include <gmock/gmock.h>

#include <cmath>

#include "runtime/base/files/stored_file.h"
#include "runtime/data/formats/mask.h"
#include "tests/runtime/data/image_files.h"

namespace lockstep::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr ImageCrop kCrop{.size = 8, .resize = 16, .max_pixels = 10000};

std::vector<float> values_of(const WholeImage& image) {
  std::vector<float> values(static_cast<std::size_t>(image.sample_shape().numel()));
  float target = 1;
  image.get({}, {.values = values, .target = std::span(&target, 1)});
  return values;
}

class WholeImageTest : public testing::Test {
 protected:
  MaskImage written(const WholeImage& image, const WholeAnswer& answer) const {
    const std::string path = folder_.path("answers/mask.png");
    image.write_answer(path, answer);
    const std::string content = StoredFile(path).read_text(1 << 20);
    return decode_mask(std::as_bytes(std::span(content)), 10000, path);
  }

  TemporaryFolder folder_;
};

TEST_F(WholeImageTest, ShowsAllOfWhatSamplesAreWindowsOf) {
  const std::string path = folder_.write("a.png", png_bytes(gradient(40, 20)));
  const WholeImage image(path, kCrop);
  ASSERT_EQ(image.sample_shape(), (Shape{16, 32, 3}));
  const std::vector<float> whole = values_of(image);
  std::vector<float> middle(8 * 8 * 3);
  const std::string content = StoredFile(path).read_text(1 << 20);
  write_image(std::as_bytes(std::span(content)), kCrop, {}, path, middle);
  for (std::size_t y = 0; y < 8; ++y) {
    for (std::size_t i = 0; i < 8 * 3; ++i) {
      EXPECT_NEAR(whole[((4 + y) * 32 + 12) * 3 + i], middle[y * 8 * 3 + i], 1e-6) << y << ", " << i;
    }
  }
}

TEST_F(WholeImageTest, IsAnsweredWithAMaskOfItsOwnExtents) {
  const WholeImage image(folder_.write("a.png", png_bytes(gradient(4, 4))),
                         {.size = 2, .resize = 2, .max_pixels = 100});
  const std::vector<float> classes{0, 1, 2, -1};
  const MaskImage mask = written(image, {.shape = {2, 2}, .numbers = classes, .classes = true});
  EXPECT_EQ(mask.width, 4);
  EXPECT_THAT(mask.values, ElementsAre(0, 0, 1, 1, 0, 0, 1, 1, 2, 2, 255, 255, 2, 2, 255, 255));
  const std::vector<float> probabilities{0, 0.5f, 1.5f, std::nanf("")};
  EXPECT_THAT(written(image, {.shape = {2, 2}, .numbers = probabilities}).values,
              ElementsAre(0, 0, 128, 128, 0, 0, 128, 128, 255, 255, 0, 0, 255, 255, 0, 0));
}

TEST_F(WholeImageTest, IsTurnedUprightAsSamplesAre) {
  const std::string path = folder_.write("a.jpg", turned_jpeg_bytes(gradient(40, 20)));
  ImageCrop crop = kCrop;
  EXPECT_EQ(WholeImage(path, crop).sample_shape(), (Shape{16, 32, 3}));
  crop.turning = Turning::kUpright;
  const WholeImage upright(path, crop);
  ASSERT_EQ(upright.sample_shape(), (Shape{32, 16, 3}));
  const std::vector<float> classes(32 * 16);
  const MaskImage mask = written(upright, {.shape = {32, 16}, .numbers = classes, .classes = true});
  EXPECT_EQ(mask.width, 20);
  EXPECT_EQ(mask.height, 40);
}

TEST_F(WholeImageTest, AStripThatScalingMakesTooLargeIsRefused) {
  const std::string path = folder_.write("a.png", png_bytes(gradient(2000, 2)));
  EXPECT_THAT(error_of([&path] { WholeImage(path, kCrop); }), HasSubstr("scaled: has 16000 x 16 pixels"));
}

}  // namespace
}  // namespace lockstep::data
