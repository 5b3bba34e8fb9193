// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/data/formats/image.h"

namespace lockstep::data {

/// decode_image() of a PNG: all of it, at scale 1. Palettes, grey and 16-bit images become RGB; alpha is left out.
DecodedImage decode_png(std::span<const std::byte> file, std::int64_t max_pixels, const ChooseView& choose,
                        const std::string& from);

}  // namespace lockstep::data
