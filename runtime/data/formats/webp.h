// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/data/formats/image.h"

namespace lockstep::data {

/// decode_image() of a WebP, lossy or lossless: all of it, at scale 1; alpha is left out. Throws StorageError for an
/// animation, too: a sample is one image.
DecodedImage decode_webp(std::span<const std::byte> file, std::int64_t max_pixels, const ChooseView& choose,
                         const std::string& from);

}  // namespace lockstep::data
