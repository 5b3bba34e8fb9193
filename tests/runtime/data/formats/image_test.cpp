// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/formats/image.h"

#include <gmock/gmock.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "runtime/data/formats/resample.h"
#include "runtime/data/image_view.h"
#include "tests/runtime/data/image_files.h"

namespace lockstep::data {
namespace {

using nlohmann::json;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;

constexpr std::int64_t kMany = 1 << 20;

ImageView whole(std::int64_t width, std::int64_t height, std::int64_t size) {
  return {0, 0, static_cast<double>(width), static_cast<double>(height), {0, 0, width, height}, size};
}

std::vector<float> resampled(const DecodedImage& image) {
  std::vector<float> out(static_cast<std::size_t>(image.view.size * image.view.size * 3));
  resample(image, out);
  return out;
}

std::vector<float> decoded(const Bytes& file, const ChooseView& choose) {
  return resampled(decode_image(std::as_bytes(std::span(file)), kMany, choose, "image"));
}

/// What PyTorch's interpolate(mode="bilinear", antialias=True) gives.
class Resampling : public testing::Test {
 protected:
  Resampling() : golden_(json::parse(std::ifstream(LOCKSTEP_SOURCE_DIR "/tests/golden/resample.json"))) {
    for (const double value : golden_["image"]["x"]["values"]) {
      image_.pixels.push_back(static_cast<std::uint8_t>(value));
    }
    image_.width = 17;
    image_.height = 11;
  }

  json golden_;
  DecodedImage image_;
};

TEST_F(Resampling, OfACropIsPyTorchs) {
  for (const auto& [name, crop] : golden_["crops"].items()) {
    const std::vector<std::int64_t> box = crop["box"];
    image_.view = {static_cast<double>(box[0]), static_cast<double>(box[1]),      static_cast<double>(box[2]),
                   static_cast<double>(box[3]), {box[0], box[1], box[2], box[3]}, crop["size"]};
    EXPECT_THAT(resampled(image_), Pointwise(FloatNear(2e-6f), crop["y"]["values"].get<std::vector<float>>())) << name;
  }
}

TEST_F(Resampling, OfACenterIsPyTorchsResizeAndCrop) {
  for (const auto& [name, center] : golden_["centers"].items()) {
    image_.view = center_view(17, 11, center["resize"], center["size"]);
    EXPECT_THAT(resampled(image_), Pointwise(FloatNear(2e-6f), center["y"]["values"].get<std::vector<float>>()))
        << name;
  }
}

TEST(Png, OfEveryKindBecomesRgb) {
  const auto same = [](std::int64_t width, std::int64_t height) { return whole(width, height, 8); };
  for (const bool interlaced : {false, true}) {
    const Pixels rgb = gradient(8, 8);
    std::vector<float> expected;
    for (const std::uint8_t value : rgb.values) expected.push_back(static_cast<float>(value) / 255.0f);
    EXPECT_THAT(decoded(png_bytes(rgb, interlaced), same), Pointwise(FloatNear(1e-6f), expected));
    Pixels with_alpha{8, 8, 4, {}};
    for (std::size_t i = 0; i < 64; ++i) {
      for (std::size_t c = 0; c < 3; ++c) with_alpha.values.push_back(rgb.values[3 * i + c]);
      with_alpha.values.push_back(static_cast<std::uint8_t>(i));
    }
    EXPECT_THAT(decoded(png_bytes(with_alpha, interlaced), same), Pointwise(FloatNear(1e-6f), expected));
    const std::vector<float> grey = decoded(png_bytes(gradient(8, 8, 1), interlaced), same);
    for (std::size_t i = 0; i < 64; ++i) {
      EXPECT_NEAR(grey[3 * i], expected[3 * i], 1e-6f);
      EXPECT_EQ(grey[3 * i], grey[3 * i + 2]);
    }
  }
}

TEST(Jpeg, OfEveryKindBecomesRgb) {
  const auto same = [](std::int64_t width, std::int64_t height) { return whole(width, height, 16); };
  for (const bool progressive : {false, true}) {
    const Pixels rgb = gradient(16, 16);
    const std::vector<float> color = decoded(jpeg_bytes(rgb, progressive), same);
    const std::vector<float> grey = decoded(jpeg_bytes(gradient(16, 16, 1), progressive), same);
    Pixels inks{16, 16, 4, {}};
    for (std::size_t i = 0; i < 256; ++i) {
      for (std::size_t c = 0; c < 3; ++c) inks.values.push_back(rgb.values[3 * i + c]);
      inks.values.push_back(255);
    }
    const std::vector<float> cmyk = decoded(jpeg_bytes(inks, progressive), same);
    for (std::size_t i = 0; i < rgb.values.size(); ++i) {
      EXPECT_NEAR(color[i], static_cast<float>(rgb.values[i]) / 255.0f, 0.06f);
      EXPECT_NEAR(cmyk[i], static_cast<float>(rgb.values[i]) / 255.0f, 0.06f);
      EXPECT_NEAR(grey[i], static_cast<float>(rgb.values[i / 3 * 3]) / 255.0f, 0.06f);
    }
  }
}

/// A part that is decoded alone, at whatever scale, shows what a decoding of all at scale 1 shows.
TEST(Jpeg, APartAtItsScaleShowsThePart) {
  const Bytes file = jpeg_bytes(gradient(301, 203));
  const auto choose_none = [](std::int64_t, std::int64_t) { return whole(301, 203, 400); };  // no smaller scale does
  DecodedImage all = decode_image(std::as_bytes(std::span(file)), kMany, choose_none, "image");
  EXPECT_EQ(all.width, 301);
  for (const std::int64_t size : {5, 20, 45, 100}) {
    for (const PixelBox& box : {PixelBox{0, 0, 301, 203}, PixelBox{37, 50, 190, 120}, PixelBox{200, 150, 101, 53}}) {
      const ImageView view{static_cast<double>(box.left),
                           static_cast<double>(box.top),
                           static_cast<double>(box.width),
                           static_cast<double>(box.height),
                           box,
                           size};
      const DecodedImage part = decode_image(
          std::as_bytes(std::span(file)), kMany, [&](std::int64_t, std::int64_t) { return view; }, "image");
      EXPECT_LE(part.width * part.height, all.width * all.height);
      if (box.width >= 8 * size && box.height >= 8 * size) {
        EXPECT_LE(part.width, 301 / 8 + 2);
      }
      all.view = view;
      EXPECT_THAT(resampled(part), Pointwise(FloatNear(0.035f), resampled(all))) << size << " of " << box.left;
    }
  }
}

TEST(Images, ThatAreTooLargeAreRefusedBeforeTheyAreDecoded) {
  const auto never = [](std::int64_t, std::int64_t) -> ImageView { throw std::logic_error("was decoded"); };
  for (const Bytes& file : {jpeg_bytes(gradient(64, 32)), png_bytes(gradient(64, 32))}) {
    EXPECT_THAT(error_of([&] { decode_image(std::as_bytes(std::span(file)), 64 * 32 - 1, never, "a.jpg"); }),
                HasSubstr("a.jpg: has 64 x 32 pixels, more than the 2047 that are taken"));
  }
}

TEST(Images, ThatAreCutOffAreRefused) {
  const auto choose = [](std::int64_t width, std::int64_t height) { return whole(width, height, 16); };
  for (const Bytes& file :
       {jpeg_bytes(gradient(24, 24)), jpeg_bytes(gradient(24, 24), true), png_bytes(gradient(24, 24))}) {
    // The last two bytes of a JPEG mark its end; what decodes without them is whole.
    for (std::size_t length = 0; length < file.size() - 4; ++length) {
      const Bytes cut(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(length));
      EXPECT_NE(error_of([&] { decoded(cut, choose); }), "no error") << length << " of " << file.size();
    }
  }
  EXPECT_THAT(error_of([&] { decoded({'G', 'I', 'F'}, choose); }), HasSubstr("is neither JPEG nor PNG"));
}

TEST(RandomViews, LieWithinTheImageAndDependOnTheKeyAlone) {
  const RandomResizedCropOptions options;
  double area = 0;
  for (std::int64_t index = 0; index < 500; ++index) {
    const ImageView view = random_view(500, 375, options, 224, {.index = index, .epoch = 2, .seed = 3});
    const ImageView again = random_view(500, 375, options, 224, {.index = index, .epoch = 2, .seed = 3});
    EXPECT_EQ(view.left, again.left);
    EXPECT_EQ(view.width, again.width);
    EXPECT_GE(view.left, 0);
    EXPECT_GE(view.top, 0);
    EXPECT_LE(view.left + view.width, 500);
    EXPECT_LE(view.top + view.height, 375);
    const double share = view.width * view.height / (500 * 375);
    EXPECT_GT(share, 0.07);
    EXPECT_LE(share, 1);
    EXPECT_GT(view.width / view.height, 0.72);
    EXPECT_LT(view.width / view.height, 1.38);
    area += share / 500;
  }
  EXPECT_NEAR(area, 0.45, 0.05);
  const ImageView other = random_view(500, 375, options, 224, {.index = 0, .epoch = 3, .seed = 3});
  EXPECT_NE(other.left, random_view(500, 375, options, 224, {.index = 0, .epoch = 2, .seed = 3}).left);
}

TEST(RandomViews, OfAStripAreItsCenter) {
  const ImageView view = random_view(1000, 10, {.min_area = 0.9}, 8, {});
  EXPECT_EQ(view.height, 10);
  EXPECT_NEAR(view.width, 13, 1);
  EXPECT_NEAR(view.left, 493, 1);
}

}  // namespace
}  // namespace lockstep::data
