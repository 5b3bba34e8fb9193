// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "runtime/data/formats/image.h"

namespace lockstep::data {

/// Writes the image's view as [size, size, 3] of values in [0, 1]. Each is a mean of the pixels around it, weighted by
/// a triangle as wide as two pixels of the coarser of both grids: PIL's and torchvision's BILINEAR, with antialias.
void resample(const DecodedImage& image, std::span<float> out);

}  // namespace lockstep::data
