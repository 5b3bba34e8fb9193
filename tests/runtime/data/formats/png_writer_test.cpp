// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/formats/png_writer.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "runtime/data/formats/mask.h"
#include "tests/runtime/data/image_files.h"

namespace lockstep::data {
namespace {

TEST(PngWriter, WritesWhatIsReadBack) {
  const Pixels color = gradient(7, 5), grey = gradient(7, 5, 1);
  const std::string file = png_of(color.values, 7, 5, 3);
  const auto choose = [](std::int64_t, std::int64_t) { return ImageView{0, 0, 7, 5, {0, 0, 7, 5}, 4}; };
  EXPECT_EQ(decode_image(std::as_bytes(std::span(file)), 100, choose, "a").pixels, color.values);
  const std::string mask = png_of(grey.values, 7, 5, 1);
  EXPECT_EQ(decode_mask(std::as_bytes(std::span(mask)), 100, "a").values, grey.values);
}

TEST(PngWriter, RefusesPixelsOfOtherExtents) {
  const Pixels color = gradient(7, 5);
  EXPECT_THROW(png_of(color.values, 5, 5, 3), std::invalid_argument);
  EXPECT_THROW(png_of(color.values, 7, 5, 4), std::invalid_argument);
  EXPECT_THROW(png_of({}, 0, 5, 3), std::invalid_argument);
}

}  // namespace
}  // namespace lockstep::data
