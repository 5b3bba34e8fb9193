// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/data/formats/nifti_geometry.h"
#include "runtime/data/inputs/whole_input.h"

namespace lockstep::data {

/// A volume [D, H, W, C]. Its answer is a file of the same format: a NIfTI file lies where its volume does. Classes are
/// stored in 8 bits, or in 32 where a voxel has none; other numbers as float32.
class WholeVolume : public WholeInput {
 public:
  static constexpr std::array<std::string_view, 3> kEndings{".nii", ".nii.gz", ".npy"};

  /// Reads the header. Throws StorageError for a file that holds no volume, another number of channels than the model
  /// takes, or more than `max_voxels` numbers.
  WholeVolume(std::string path, std::int64_t max_voxels, std::int64_t channels);

  Shape sample_shape() const override { return shape_; }
  void write_answer(const std::string& to, const WholeAnswer& answer) const override;

 private:
  void read(std::int64_t index, const Sample& sample) const override;

  Shape shape_;
  std::optional<NiftiGeometry> geometry_;  ///< of a NIfTI file
};

}  // namespace lockstep::data
