// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "comm/group/communicator.h"
#include "runtime/data/batch.h"
#include "runtime/data/normalize.h"
#include "runtime/train/task.h"

namespace lockstep::train {

/// Pictures of an evaluation's samples, images [H, W, C]; of more than 3 channels the first is shown, of 2 too.
class Pictures {
 public:
  virtual ~Pictures() = default;

  /// Looks at a batch's samples. `first`: the number of its row 0 in the data set.
  virtual void add(const data::Batch& batch, const Tensor& output, std::int64_t first) = 0;
  /// Writes those of all ranks on rank 0. `samples`: of the data set. A collective. Throws StorageError.
  virtual void write(const std::filesystem::path& folder, std::int64_t samples,
                     comm::Communicator& communicator) const = 0;
};

/// MaskPictures of samples with a target a pixel, WorstPictures of those with one class each; `count` pictures.
/// `normalize`: what was done to the samples. `class_names`: empty where they have none. Throws UsageError for other
/// samples.
std::unique_ptr<Pictures> make_pictures(const Task& task, const data::NormalizeOptions& normalize, std::int64_t count,
                                        const std::vector<std::string>& class_names);

/// The pixels [H, W, 3] of an image [1, H, W, C] as it was before it was normalised.
std::vector<std::uint8_t> pixels_of(const Tensor& input, const data::NormalizeOptions& normalize);
/// Of 0 black, of 1 white.
std::uint8_t level_of(float value);
std::vector<float> floats_of(const Tensor& tensor);

/// Writes a picture that one rank has, on rank 0; the others give none. A collective. Throws StorageError.
void write_picture(const std::filesystem::path& path, const std::vector<std::uint8_t>* mine, std::int64_t height,
                   std::int64_t width, comm::Communicator& communicator);

}  // namespace lockstep::train
