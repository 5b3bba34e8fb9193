// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/formats/webp.h"

#include <webp/decode.h>

#include "runtime/base/error.h"

namespace lockstep::data {

namespace {

[[noreturn]] void refuse(const std::string& from, VP8StatusCode status) {
  const char* const what = status == VP8_STATUS_NOT_ENOUGH_DATA || status == VP8_STATUS_SUSPENDED
                               ? "the file ends too early"
                           : status == VP8_STATUS_OUT_OF_MEMORY       ? "memory is lacking"
                           : status == VP8_STATUS_UNSUPPORTED_FEATURE ? "it has a feature that libwebp does not read"
                                                                      : "its content is damaged";
  throw StorageError(from + ": cannot be decoded: " + what, "The file is damaged; fetch it again or remove it.");
}

}  // namespace

DecodedImage decode_webp(std::span<const std::byte> file, std::int64_t max_pixels, const ChooseView& choose,
                         const std::string& from) {
  const auto* const bytes = reinterpret_cast<const std::uint8_t*>(file.data());
  WebPDecoderConfig config;
  if (WebPInitDecoderConfig(&config) == 0) {
    throw StorageError(from + ": cannot be decoded: libwebp has another version than its headers");
  }
  if (const VP8StatusCode status = WebPGetFeatures(bytes, file.size(), &config.input); status != VP8_STATUS_OK) {
    refuse(from, status);
  }
  DecodedImage image;
  image.width = config.input.width;
  image.height = config.input.height;
  require_pixels(image.width, image.height, max_pixels, from);
  if (config.input.has_animation != 0) {
    throw StorageError(from + ": is an animation", "Write the frame that is meant as an image of its own.");
  }
  image.view = choose(image.width, image.height);
  image.pixels.resize(static_cast<std::size_t>(image.width * image.height * 3));
  config.output.colorspace = MODE_RGB;
  config.output.is_external_memory = 1;
  config.output.u.RGBA = {image.pixels.data(), static_cast<int>(image.width * 3), image.pixels.size()};
  const VP8StatusCode status = WebPDecode(bytes, file.size(), &config);
  WebPFreeDecBuffer(&config.output);
  if (status != VP8_STATUS_OK) refuse(from, status);
  return image;
}

}  // namespace lockstep::data
