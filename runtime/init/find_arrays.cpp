// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <string>
#include <string_view>

#include "runtime/base/error.h"
#include "runtime/data/arrays.h"
#include "runtime/data/formats/npy.h"
#include "runtime/init/find_kinds.h"

namespace lockstep::init {

namespace {

constexpr std::int64_t kTargetsLookedAt = std::int64_t{1} << 22;  ///< targets that are read

/// Whether one of the words in the file's name says so, as in "train_y.npy" and "Labels2.npy".
bool names_targets(const std::string& path) {
  constexpr std::array<std::string_view, 7> kWords = {"y", "target", "targets", "label", "labels", "mask", "masks"};
  std::string word;
  for (const char c : std::filesystem::path(path).filename().string() + '.') {
    if (const char letter = static_cast<char>(c | 0x20); letter >= 'a' && letter <= 'z') {
      word += letter;
    } else {
      if (std::ranges::find(kWords, word) != kWords.end()) return true;
      word.clear();
    }
  }
  return false;
}

data::ArraysOptions pair_of(const std::vector<std::string>& files) {
  if (files.size() != 2) {
    throw UsageError(
        fmt::format("features and targets are two .npy files; found {}: {}", files.size(), fmt::join(files, ", ")),
        "Name the files: the features, then the targets.");
  }
  const bool swapped = names_targets(files[0]) && !names_targets(files[1]);
  return {.features = files[swapped ? 1 : 0], .targets = files[swapped ? 0 : 1]};
}

/// Whether all of the first targets lie in [0, 1].
bool are_shares(const data::NpyArray& targets) {
  std::vector<float> values(static_cast<std::size_t>(std::min(targets.numel(), kTargetsLookedAt)));
  targets.read(0, std::span(values));
  return std::ranges::all_of(values, [](float value) { return value >= 0 && value <= 1; });
}

}  // namespace

FoundData find_arrays(const Split& files) {
  data::ArraysOptions train = pair_of(files.train);
  const data::NpyArray features(train.features);
  const std::span<const std::int64_t> extents(features.extents());
  if (extents.size() > 1 && extents.size() <= Shape::kMaxRank && data::look_channels_first(Shape(extents.subspan(1)))) {
    throw UsageError(fmt::format("{}: samples of shape {} have channels first, as it looks; a job takes channels last",
                                 train.features, Shape(extents.subspan(1)).str()),
                     "Save numpy.moveaxis(x, 1, -1); where channels are last already, write the job by hand.");
  }
  const data::NpyArray targets(train.targets);
  const bool positions = targets.extents().size() >= 4;  // a target a voxel
  FoundData found{"NumPy arrays"};
  found.masks = positions && are_shares(targets);
  if (found.masks || targets.kind() == data::NpyArray::Kind::kFloat) train.target_kind = data::TargetKind::kNumbers;
  found.options.train = train;
  if (!files.eval.empty()) {
    data::ArraysOptions eval = pair_of(files.eval);
    eval.target_kind = train.target_kind;
    found.options.eval = eval;
  }
  return found;
}

}  // namespace lockstep::init
