// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <optional>

namespace lockstep::init {

/// A folder of images or volumes, and one of a mask of each.
struct PairedFolders {
  std::filesystem::path images, masks;
};

struct PairedSplits {
  PairedFolders train;
  std::optional<PairedFolders> eval;
};

/// The two folders in this one by their names, images and masks, labels, annotations or the like, and those in its
/// folders named for training and evaluation: train/images and train/masks, also images/train and masks/train.
/// `is_pair` says whether two folders hold what is looked for. None where there are no such folders.
std::optional<PairedSplits> find_paired_folders(const std::filesystem::path& folder,
                                                const std::function<bool(const PairedFolders&)>& is_pair);

}  // namespace lockstep::init
