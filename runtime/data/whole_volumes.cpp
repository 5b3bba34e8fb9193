// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/whole_volumes.h"

#include <memory>
#include <utility>
#include <variant>

#include "runtime/base/error.h"
#include "runtime/data/hold_out.h"
#include "runtime/data/normalize.h"

namespace lockstep::data {

namespace {

/// The volume of a sample of `all`, which are VolumesDataset's where their extents may differ.
DatasetPtr whole(const DatasetPtr& all, std::int64_t index) {
  const auto* const subset = dynamic_cast<const Subset*>(all.get());
  const DatasetPtr& base = subset == nullptr ? all : subset->base();
  const std::int64_t in_base = subset == nullptr ? index : subset->index_in_base(index);
  if (const auto* const volumes = dynamic_cast<const VolumesDataset*>(base.get())) return volumes->whole(in_base);
  return std::make_shared<Subset>(base, SideSamples{.indices = {in_base}, .content = {}});
}

}  // namespace

WholeVolumes whole_volumes(const DataOptions& options) {
  if (!options.augment.volume.patch) {
    throw FieldError("data.augment.patch", "is not set: the job evaluates whole volumes of one shape as they are",
                     "Leave out what asks for sliding windows.");
  }
  DataOptions stored = options;
  stored.normalize = {};
  stored.augment = {};
  // Each volume holds a patch of one voxel, whatever its extents.
  if (std::holds_alternative<VolumesOptions>(options.eval.value_or(options.train))) {
    stored.augment.volume.patch = Shape{1, 1, 1};
  }
  WholeVolumes volumes{.all = make_dataset(stored, Split::kEval), .each = {}};
  for (std::int64_t i = 0; i < volumes.all->size(); ++i) {
    DatasetPtr one = whole(volumes.all, i);
    if (options.normalize != NormalizeOptions()) one = std::make_shared<Normalize>(std::move(one), options.normalize);
    volumes.each.push_back(std::move(one));
  }
  return volumes;
}

}  // namespace lockstep::data
