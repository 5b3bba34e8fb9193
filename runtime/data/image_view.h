// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/data/dataset.h"
#include "runtime/data/formats/image.h"
#include "runtime/data/image_folder_options.h"
#include "runtime/data/window.h"

namespace lockstep::data {

// Which part of an image a sample shows, as torchvision's transforms choose it.

/// CenterCrop(size) of what Resize(resize) makes of an image of width x height.
ImageView center_view(std::int64_t width, std::int64_t height, std::int64_t resize, std::int64_t size);

/// The same window at another place: kRandom is RandomCrop(size) of what Resize(resize) makes of the image. What is
/// drawn depends on the sample's key alone.
ImageView window_view(std::int64_t width, std::int64_t height, std::int64_t resize, std::int64_t size,
                      WindowPlace place, const SampleKey& key);

/// The same window from pixel (left, top) of the scaled image on.
ImageView view_at(std::int64_t width, std::int64_t height, std::int64_t resize, std::int64_t size, std::int64_t left,
                  std::int64_t top);

/// How many pixels Resize(resize) makes of the width or height `pixels` of an image whose smaller one is `shorter`.
std::int64_t scaled_pixels(std::int64_t pixels, std::int64_t shorter, std::int64_t resize);

/// RandomResizedCrop(size). What is drawn depends on the sample's key alone.
ImageView random_view(std::int64_t width, std::int64_t height, const RandomResizedCropOptions& options,
                      std::int64_t size, const SampleKey& key);

}  // namespace lockstep::data
