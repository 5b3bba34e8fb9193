// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/data/formats/image.h"

namespace lockstep::data {

/// decode_image() of a JPEG. Grey and CMYK images become RGB.
DecodedImage decode_jpeg(std::span<const std::byte> file, std::int64_t max_pixels, const ChooseView& choose,
                         const std::string& from);

}  // namespace lockstep::data
