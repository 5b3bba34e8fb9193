// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/formats/orientation.h"

#include <gmock/gmock.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "runtime/data/formats/resample.h"
#include "tests/runtime/data/image_files.h"
#include "tests/support/hex.h"

namespace lockstep::data {
namespace {

using nlohmann::json;

constexpr std::int64_t kManyPixels = 1 << 20;

ImageView all_of(std::int64_t width, std::int64_t height) {
  return {0, 0, static_cast<double>(width), static_cast<double>(height), {0, 0, width, height}, 2 * (width + height)};
}

DecodedImage decode(const std::string& file, const ChooseView& choose, Turning turning) {
  return decode_image(std::as_bytes(std::span(file)), kManyPixels, choose, "image", turning);
}

/// Files that PIL wrote, and the pixels that it reads from them.
class ImagesOfPil : public testing::Test {
 protected:
  ImagesOfPil() : golden_(json::parse(std::ifstream(LOCKSTEP_SOURCE_DIR "/tests/golden/images.json"))) {}

  void expect_pixels(const std::string& name, const json& image, Turning turning) const {
    const DecodedImage found = decode(file_of_hex(image["file"]), all_of, turning);
    EXPECT_EQ(found.width, image["width"].get<std::int64_t>()) << name;
    EXPECT_EQ(found.height, image["height"].get<std::int64_t>()) << name;
    EXPECT_EQ(found.pixels, image["pixels"].get<std::vector<std::uint8_t>>()) << name;
  }

  json golden_;
};

TEST_F(ImagesOfPil, WebpDecodesToItsPixels) {
  ASSERT_EQ(golden_["webp"].size(), 5u);
  for (const auto& [name, image] : golden_["webp"].items()) expect_pixels(name, image, Turning::kAsStored);
}

TEST_F(ImagesOfPil, WebpThatIsCutOffOrTooLargeIsRefused) {
  for (const char* const name : {"lossless", "lossy", "lossy_alpha"}) {
    const std::string file = file_of_hex(golden_["webp"][name]["file"]);
    for (std::size_t length = 0; length + 2 < file.size(); ++length) {
      EXPECT_NE(error_of([&] { decode(file.substr(0, length), all_of, Turning::kUpright); }), "no error")
          << name << ": " << length << " of " << file.size();
    }
    const auto never = [](std::int64_t, std::int64_t) -> ImageView { throw std::logic_error("was decoded"); };
    EXPECT_THAT(error_of([&] { decode_image(std::as_bytes(std::span(file)), 70, never, "a.webp"); }),
                testing::HasSubstr("more than the 70 that are taken"));
  }
}

TEST_F(ImagesOfPil, EveryOrientationIsExifTransposes) {
  ASSERT_EQ(golden_["exif"].size(), 30u);
  for (const auto& [name, image] : golden_["exif"].items()) expect_pixels(name, image, Turning::kUpright);
}

TEST_F(ImagesOfPil, AreTakenAsStoredUnlessTheyAreToBeTurned) {
  const std::string turned = file_of_hex(golden_["exif"]["png 6"]["file"]);
  EXPECT_EQ(orientation_of(std::as_bytes(std::span(turned))), Orientation::kTurned90);
  EXPECT_EQ(decode(turned, all_of, Turning::kAsStored).width, 11);
  EXPECT_EQ(decode(turned, all_of, Turning::kUpright).width, 7);
}

/// The part of the upright image that a crop shows is decoded alone: the same pixels.
TEST_F(ImagesOfPil, APartOfATurnedImageShowsThatPart) {
  for (const auto& [name, image] : golden_["exif"].items()) {
    const std::string file = file_of_hex(image["file"]);
    DecodedImage whole = decode(file, all_of, Turning::kUpright);
    const ImageView view{1, 2, 5, 4, {1, 2, 5, 4}, 6};
    const DecodedImage part = decode(
        file, [&](std::int64_t, std::int64_t) { return view; }, Turning::kUpright);
    whole.view = view;
    std::vector<float> expected(6 * 6 * 3), found(6 * 6 * 3);
    resample(whole, expected);
    resample(part, found);
    EXPECT_THAT(found, testing::Pointwise(testing::FloatNear(1e-6f), expected)) << name;
  }
}

/// A large JPEG is decoded at a smaller scale, whose last pixels stand for fewer of the file's.
TEST(Turned, AJpegAtASmallerScaleShowsThePart) {
  const Bytes bytes = turned_jpeg_bytes(gradient(301, 203));
  const std::string file(bytes.begin(), bytes.end());
  ASSERT_EQ(orientation_of(std::as_bytes(std::span(file))), Orientation::kTurned90);
  DecodedImage whole = decode(
      file, [](std::int64_t, std::int64_t) { return all_of(203, 301); }, Turning::kUpright);
  ASSERT_EQ(whole.width, 203);
  const ImageView view{20, 33, 150, 200, {20, 33, 150, 200}, 18};
  const DecodedImage part = decode(
      file, [&](std::int64_t, std::int64_t) { return view; }, Turning::kUpright);
  EXPECT_LT(part.width, 40);
  whole.view = view;
  std::vector<float> expected(18 * 18 * 3), found(18 * 18 * 3);
  resample(whole, expected);
  resample(part, found);
  EXPECT_THAT(found, testing::Pointwise(testing::FloatNear(0.035f), expected));
}

TEST(Orientations, OfDamagedBlocksAreUpright) {
  const std::string good(
      "\xff\xd8\xff\xe1\0\x22"
      "Exif\0\0II\x2a\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0",
      38);
  const auto of = [](const std::string& bytes) { return orientation_of(std::as_bytes(std::span(bytes))); };
  EXPECT_EQ(of(good), Orientation::kTurned90);
  for (std::size_t length = 0; length < 32; ++length) EXPECT_EQ(of(good.substr(0, length)), Orientation::kUpright);
  std::string far = good;
  far[16] = '\xf0';  // a directory behind the end
  EXPECT_EQ(of(far), Orientation::kUpright);
  std::string text = good;
  text[24] = '\x02';  // of the type ASCII
  EXPECT_EQ(of(text), Orientation::kUpright);
}

}  // namespace
}  // namespace lockstep::data
