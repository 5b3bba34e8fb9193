// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/inputs/image_inputs.h"

#include "runtime/base/files/stored_file.h"

namespace lockstep::data {

void ImageInputs::read(std::int64_t index, const Sample& sample) const {
  const std::string& path = files_[static_cast<std::size_t>(index)];
  const std::string content = StoredFile(path).read_text(kMostImageBytes);
  write_image(std::as_bytes(std::span(content)), crop_, {}, path, sample.values);
}

}  // namespace lockstep::data
