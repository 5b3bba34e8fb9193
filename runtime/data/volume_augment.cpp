// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/volume_augment.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/base/field_checks.h"
#include "runtime/base/option_checks.h"
#include "runtime/data/draw.h"

namespace lockstep::data {

namespace {

constexpr int kSpatialRank = 3;
constexpr int kVolumeRank = 4;
constexpr const char* kPatchPath = "data.augment.patch";

void require_volumes(const Description& data, const std::string& path) {
  if (data.vocabulary == 0 && data.sample_shape.rank() == kVolumeRank) return;
  throw FieldError(path, "needs volumes [D, H, W, C], but samples have shape " + data.sample_shape.str());
}

/// Whether targets are one a voxel.
bool is_per_voxel(const Shape& sample, const Shape& target) {
  if (target.rank() < kSpatialRank || target.rank() > kVolumeRank) return false;
  return extents_of(sample) == extents_of(target);
}

/// Numbers of one voxel.
std::size_t numbers_of(const Shape& shape) {
  return shape.rank() == kVolumeRank ? static_cast<std::size_t>(shape.back()) : 1;
}

Shape with_extents(Shape shape, const Shape& patch) {
  for (int d = 0; d < kSpatialRank; ++d) shape = shape.with(d, patch[d]);
  return shape;
}

/// Reverses one axis of a volume whose voxels have `numbers` elements.
template <class T>
void reverse(std::span<T> volume, const Extents& extents, std::size_t axis, std::size_t numbers) {
  if (volume.empty()) return;
  std::size_t inner = numbers;
  for (std::size_t d = axis + 1; d < kSpatialRank; ++d) inner *= extents[d];
  const std::size_t block = inner * extents[axis];
  for (std::size_t begin = 0; begin < volume.size(); begin += block) {
    T* const at = volume.data() + begin;
    for (std::size_t low = 0, high = extents[axis] - 1; low < high; ++low, --high) {
      std::swap_ranges(at + low * inner, at + (low + 1) * inner, at + high * inner);
    }
  }
}

}  // namespace

void require_volume_augment(const VolumeAugmentOptions& options, const Description& data) {
  require_none(problems_in_fields(options), "data.augment");
  if (options.mirror) {
    require_volumes(data, "data.augment.mirror");
    const bool one_a_sample = data.target_shape.rank() <= 1;
    if (!one_a_sample && !is_per_voxel(data.sample_shape, data.target_shape)) {
      throw FieldError("data.augment.mirror", "needs targets a sample or a voxel, but they have shape " +
                                                  data.target_shape.str() + " for samples " + data.sample_shape.str());
    }
  }
  const auto require = [&data](double value, const char* field) {
    if (value == 0 || data.vocabulary == 0) return;
    throw FieldError(field, "needs samples of numbers, but they are tokens");
  };
  require(options.intensity_scale, "data.augment.intensity_scale");
  require(options.intensity_shift, "data.augment.intensity_shift");
}

Description patched(Description data, const Shape& patch) {
  require_volumes(data, kPatchPath);
  require_none(problems_in_fields(VolumeAugmentOptions{.patch = patch}), "data.augment");
  for (int d = 0; d < kSpatialRank; ++d) {
    if (patch[d] <= data.sample_shape[d]) continue;
    throw FieldError(kPatchPath, patch.str() + " is no window of samples of shape " + data.sample_shape.str());
  }
  const bool per_voxel = is_per_voxel(data.sample_shape, data.target_shape);
  if (!per_voxel && data.target_shape.rank() > 1) {
    throw FieldError(kPatchPath, "needs targets a sample or a voxel, but they have shape " + data.target_shape.str() +
                                     " for samples " + data.sample_shape.str());
  }
  if (per_voxel && data.classes > 0) {
    if (data.targets_per_sample != data.target_shape.numel()) {
      throw FieldError(kPatchPath, "needs data in which every voxel's label counts");
    }
    data.targets_per_sample = patch.numel();
  }
  if (per_voxel) data.target_shape = with_extents(data.target_shape, patch);
  data.sample_shape = with_extents(data.sample_shape, patch);
  return data;
}

Patch::Patch(DatasetPtr base, const Shape& patch, Place place)
    : DerivedDataset(std::move(base)), place_(place), description_(patched(describe(*this->base()), patch)) {}

void Patch::get(const SampleKey& key, const Sample& sample) const {
  const Shape whole = base()->sample_shape();
  const Shape target = base()->target_shape();
  const bool per_voxel = is_per_voxel(whole, target);
  std::vector<float> values(static_cast<std::size_t>(whole.numel()));
  const auto targets = static_cast<std::size_t>(per_voxel ? target.numel() : 0);
  std::vector<float> numbers(classes() > 0 ? 0 : targets);
  std::vector<std::int64_t> labels(classes() > 0 ? targets : 0);
  base()->get(key, {.values = values,
                    .target = per_voxel ? std::span<float>(numbers) : sample.target,
                    .labels = per_voxel ? std::span<std::int64_t>(labels) : sample.labels,
                    .weight = sample.weight});

  const Extents extents = extents_of(whole);
  const Extents patch = extents_of(description_.sample_shape);
  const Extents from = window_begin(extents, patch, place_, key);
  copy_window<float>(values, extents, from, patch, numbers_of(whole), sample.values);
  if (!numbers.empty()) copy_window<float>(numbers, extents, from, patch, numbers_of(target), sample.target);
  if (!labels.empty()) copy_window<std::int64_t>(labels, extents, from, patch, 1, sample.labels);
}

void Mirror::apply(const SampleKey& key, const Sample& sample) const {
  const Extents extents = extents_of(sample_shape());
  const bool per_voxel = is_per_voxel(sample_shape(), target_shape());
  const std::uint32_t bits = draw(key, Augmentation::kMirror)[0];
  for (std::size_t axis = 0; axis < kSpatialRank; ++axis) {
    if ((bits >> axis & 1) == 0) continue;
    reverse(sample.values, extents, axis, numbers_of(sample_shape()));
    if (!per_voxel) continue;
    reverse(sample.target, extents, axis, numbers_of(target_shape()));
    reverse(sample.labels, extents, axis, 1);
  }
}

void Intensity::apply(const SampleKey& key, const Sample& sample) const {
  const std::array<std::uint32_t, 4> words = draw(key, Augmentation::kIntensity);
  const auto factor = static_cast<float>(uniform(words[0], 1 - scale_, 1 + scale_));
  const auto shift = static_cast<float>(uniform(words[1], -shift_, shift_));
  for (float& value : sample.values) value = value * factor + shift;
}

}  // namespace lockstep::data
