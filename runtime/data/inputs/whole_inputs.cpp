// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/inputs/whole_inputs.h"

#include <algorithm>

#include "runtime/data/inputs/image_inputs.h"
#include "runtime/data/inputs/whole_image.h"
#include "runtime/data/inputs/whole_volume.h"
#include "runtime/data/make_dataset.h"

namespace lockstep::data {

namespace {

bool predicts_images(const DataOptions& options) { return std::holds_alternative<ImageMasksOptions>(options.train); }

std::int64_t max_voxels_of(const DataOptions& options) {
  const auto* const volumes = std::get_if<VolumesOptions>(&options.train);
  return volumes == nullptr ? VolumesOptions().max_voxels : volumes->max_voxels;
}

}  // namespace

bool predicts_wholes(const DataOptions& options) {
  if (predicts_images(options)) return true;
  const Description& trained = options.prepared.value().trained;
  if (trained.vocabulary > 0 || !trained.more_inputs.empty()) return false;
  return trained.sample_shape.rank() == 4 && trained.target_shape.rank() >= 3 &&
         std::ranges::equal(trained.sample_shape.extents().first(3), trained.target_shape.extents().first(3));
}

Shape window_of(const DataOptions& options) {
  const auto extents = options.prepared.value().trained.sample_shape.extents();
  const Shape trained(extents.first(extents.size() - 1));
  return predicts_images(options) ? trained : options.augment.volume.patch.value_or(trained);
}

std::vector<AnswerFile> answer_files(const DataOptions& options, std::span<const std::string> paths,
                                     const std::string& folder) {
  if (!predicts_images(options)) return answer_files(paths, WholeVolume::kEndings, folder, "");
  return answer_files(paths, ImageInputs::kEndings, folder, WholeImage::kAnswerEnding);
}

std::shared_ptr<const WholeInput> open_whole(const DataOptions& options, const std::string& path) {
  if (const auto* const images = std::get_if<ImageMasksOptions>(&options.train)) {
    return std::make_shared<WholeImage>(path, crop_of(*images));
  }
  return std::make_shared<WholeVolume>(path, max_voxels_of(options),
                                       options.prepared.value().trained.sample_shape.back());
}

}  // namespace lockstep::data
