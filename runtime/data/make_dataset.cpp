// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/make_dataset.h"

#include "runtime/tensor/error.h"

namespace lockstep::data {

namespace {

/// Generated evaluation samples come from far behind the training samples of the same sequence.
constexpr std::int64_t kFirstEvalSample = std::int64_t{1} << 40;

std::string path_of(const IdxOptions&, const std::string& path) { return path + ".idx"; }
std::string path_of(const CifarOptions&, const std::string& path) { return path + ".cifar"; }
std::string path_of(const SyntheticOptions&, const std::string& path) { return path + ".synthetic"; }
std::string path_of(const SpheresOptions&, const std::string& path) { return path + ".spheres"; }

void require_sound(const SpheresOptions& options, const std::string& path) { require_none(problems_of(options), path); }

/// An evaluation set may lack the highest class: without a number in its options, the training set's labels tell.
std::int64_t classes_of_training(const DatasetOptions& train) {
  const auto* const idx = std::get_if<IdxOptions>(&train);
  if (idx == nullptr) return 0;
  return idx->classes > 0 ? idx->classes : count_idx_classes(idx->labels);
}

/// The options of one split, checked, with what they take from the other one.
DatasetOptions options_of(const DataOptions& options, Split split) {
  const bool training = split == Split::kTrain;
  const std::string path = training ? "data.train" : "data.eval";
  if (!training && !options.eval) throw FieldError(path, "names no data set");
  DatasetOptions chosen = training ? options.train : *options.eval;
  std::visit([&path](const auto& kind) { require_sound(kind, path_of(kind, path)); }, chosen);
  if (auto* const idx = std::get_if<IdxOptions>(&chosen); idx != nullptr && idx->classes == 0) {
    idx->classes = classes_of_training(options.train);
  }
  if (auto* const synthetic = std::get_if<SyntheticOptions>(&chosen); synthetic != nullptr && !training) {
    synthetic->first_sample += kFirstEvalSample;
  }
  if (auto* const spheres = std::get_if<SpheresOptions>(&chosen); spheres != nullptr && !training) {
    spheres->first_sample += kFirstEvalSample;
  }
  return chosen;
}

DatasetPtr open(const IdxOptions& options) { return open_idx(options); }
DatasetPtr open(const CifarOptions& options) { return open_cifar(options); }
DatasetPtr open(const SyntheticOptions& options) { return std::make_shared<SyntheticDataset>(options); }
DatasetPtr open(const SpheresOptions& options) { return std::make_shared<SpheresDataset>(options); }

Description describe(const IdxOptions& options) { return describe_idx(options); }
Description describe(const CifarOptions& options) { return describe_cifar(options); }
Description describe(const SyntheticOptions& options) { return SyntheticDataset::describe(options); }
Description describe(const SpheresOptions& options) { return describe(SpheresDataset(options)); }

}  // namespace

Description describe(const DataOptions& options, Split split) {
  Description data = std::visit([](const auto& kind) { return describe(kind); }, options_of(options, split));
  const std::optional<Shape>& patch = options.augment.volume.patch;
  return patch ? patched(std::move(data), *patch) : data;
}

DatasetPtr make_dataset(const DataOptions& options, Split split) {
  DatasetPtr dataset = std::visit([](const auto& kind) { return open(kind); }, options_of(options, split));
  const VolumeAugmentOptions& volume = options.augment.volume;
  if (volume.patch) {
    const Patch::Place place = split == Split::kTrain ? Patch::Place::kRandom : Patch::Place::kMiddle;
    dataset = std::make_shared<Patch>(dataset, *volume.patch, place);
  }
  if (split == Split::kTrain) {
    // Padding is black, so it comes before the normalisation.
    require_augment(options.augment, dataset->sample_shape());
    if (options.augment.pad_crop > 0) dataset = std::make_shared<PadCrop>(dataset, options.augment.pad_crop);
    if (options.augment.flip) dataset = std::make_shared<Flip>(dataset);
    require_volume_augment(volume, describe(*dataset));
    if (volume.mirror) dataset = std::make_shared<Mirror>(dataset);
    if (volume.intensity_scale > 0 || volume.intensity_shift > 0) {
      dataset = std::make_shared<Intensity>(dataset, volume.intensity_scale, volume.intensity_shift);
    }
  }
  if (options.normalize != NormalizeOptions()) dataset = std::make_shared<Normalize>(dataset, options.normalize);
  return dataset;
}

}  // namespace lockstep::data
