// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/inputs/whole_volume.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/data/formats/nifti.h"
#include "runtime/data/formats/nifti_writer.h"
#include "runtime/data/formats/npy_writer.h"
#include "runtime/data/formats/volume_file.h"

namespace lockstep::data {

namespace {

bool is_nifti(const std::string& path) { return !path.ends_with(".npy"); }

/// An array of the volume's own extents, without the one of its channels where there is one.
Shape array_shape(const Shape& volume) { return volume.back() == 1 ? Shape(volume.extents().first(3)) : volume; }

template <class T>
std::vector<T> labels_of(std::span<const float> numbers) {
  std::vector<T> labels(numbers.size());
  std::ranges::transform(numbers, labels.begin(), [](float number) { return static_cast<T>(number); });
  return labels;
}

void write_labels(const std::string& to, const Shape& shape, std::span<const float> numbers) {
  constexpr float kMostOfByte = std::numeric_limits<std::uint8_t>::max();
  const bool small = std::ranges::all_of(numbers, [](float number) { return number >= 0 && number <= kMostOfByte; });
  if (small) return write_npy(to, shape, std::span<const std::uint8_t>(labels_of<std::uint8_t>(numbers)));
  write_npy(to, shape, std::span<const std::int32_t>(labels_of<std::int32_t>(numbers)));
}

}  // namespace

WholeVolume::WholeVolume(std::string path, std::int64_t max_voxels, std::int64_t channels)
    : WholeInput(std::move(path)), shape_(volume_shape(this->path(), max_voxels)) {
  if (shape_.back() != channels) {
    throw StorageError(fmt::format("{} has shape {}, but the model takes volumes of {} channel{}", this->path(),
                                   shape_.str(), channels, channels == 1 ? "" : "s"));
  }
  if (is_nifti(this->path())) geometry_ = read_nifti_header(this->path(), max_voxels).geometry;
}

void WholeVolume::read(std::int64_t, const Sample& sample) const {
  read_volume(path(), shape_, {0, shape_[0]}, sample.values);
}

void WholeVolume::write_answer(const std::string& to, const WholeAnswer& answer) const {
  const Shape& shape = answer.shape;
  if (!geometry_) {
    return answer.classes ? write_labels(to, shape, answer.numbers)
                          : write_npy(to, shape.rank() == 4 ? array_shape(shape) : shape, answer.numbers);
  }
  if (answer.classes) {
    return write_nifti(to, *geometry_, shape, std::span<const std::int64_t>(labels_of<std::int64_t>(answer.numbers)));
  }
  write_nifti(to, *geometry_, shape.rank() == 3 ? Shape{shape[0], shape[1], shape[2], 1} : shape, answer.numbers);
}

}  // namespace lockstep::data
