// SPDX-License-Identifier: Apache-2.0
#include "runtime/init/paired_folders.h"

#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/init/files.h"

namespace lockstep::init {

namespace {

namespace fs = std::filesystem;
using IsPair = std::function<bool(const PairedFolders&)>;

/// The two folders in this one.
std::optional<PairedFolders> pair_in(const fs::path& folder, const IsPair& is_pair) {
  constexpr std::array<std::string_view, 8> kImages{"images", "image", "imagestr", "volumes",
                                                    "volume", "scans", "img",      "imgs"};
  constexpr std::array<std::string_view, 9> kMasks{"masks",   "mask",          "labels", "label",      "labelstr",
                                                   "targets", "segmentations", "seg",    "annotations"};
  std::vector<fs::path> images, masks;
  for (const fs::path& part : folders_in(folder)) {
    if (has_word(part, kMasks)) {
      masks.push_back(part);
    } else if (has_word(part, kImages)) {
      images.push_back(part);
    }
  }
  for (const fs::path& image : images) {
    for (const fs::path& mask : masks) {
      PairedFolders pair{image, mask};
      if (is_pair(pair)) return pair;
    }
  }
  return std::nullopt;
}

struct Parts {
  std::optional<PairedFolders> train, eval;
};

/// Of pairs within folders those that the folders' names tell the purpose of.
Parts split_of(const std::vector<std::pair<fs::path, PairedFolders>>& pairs) {
  Parts found;
  int preferred = 0;
  for (const auto& [part, pair] : pairs) {
    const int rank = evaluation_rank(part);
    if (rank > 0 && (!found.eval || rank < preferred)) {
      found.eval = pair;
      preferred = rank;
    }
    if (rank == 0 && !found.train && names_training(part)) found.train = pair;
  }
  return found;
}

}  // namespace

std::optional<PairedSplits> find_paired_folders(const fs::path& folder, const IsPair& is_pair) {
  const std::optional<PairedFolders> here = pair_in(folder, is_pair);
  std::vector<std::pair<fs::path, PairedFolders>> parts;
  for (const fs::path& part : folders_in(folder)) {
    if (const auto pair = pair_in(part, is_pair)) parts.emplace_back(part, *pair);
  }
  Parts found = split_of(parts);
  if (here) {
    std::vector<std::pair<fs::path, PairedFolders>> within;
    for (const fs::path& part : folders_in(here->images)) {
      PairedFolders pair{part, here->masks / part.filename()};
      if (fs::is_directory(pair.masks) && is_pair(pair)) within.emplace_back(part, std::move(pair));
    }
    const Parts split = split_of(within);
    if (split.train) return PairedSplits{*split.train, split.eval};
    found.train = here;
  }
  if (!found.train) return std::nullopt;
  return PairedSplits{*found.train, found.eval};
}

}  // namespace lockstep::init
