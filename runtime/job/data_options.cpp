// SPDX-License-Identifier: Apache-2.0
#include "runtime/job/data_options.h"

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "configs/job.pb.h"
#include "runtime/base/error.h"
#include "runtime/job/training_options.h"

namespace lockstep::job {

namespace {

data::IdxOptions translate(const Idx& idx) {
  data::IdxOptions options;
  options.images = idx.images();
  options.labels = idx.labels();
  if (idx.has_classes()) options.classes = idx.classes();
  return options;
}

data::CifarOptions translate(const Cifar& cifar) {
  data::CifarOptions options;
  options.files = {cifar.files().begin(), cifar.files().end()};
  switch (cifar.labels()) {
    case CIFAR10:
      options.labels = data::CifarLabels::kCifar10;
      break;
    case CIFAR100_FINE:
      options.labels = data::CifarLabels::kCifar100Fine;
      break;
    case CIFAR100_COARSE:
      options.labels = data::CifarLabels::kCifar100Coarse;
      break;
    default:  // an open enum: no value, or a number that validation has refused
      break;
  }
  return options;
}

data::SyntheticOptions translate(const Synthetic& synthetic) {
  const std::vector<std::int64_t> extents(synthetic.shape().begin(), synthetic.shape().end());
  data::SyntheticOptions options;
  options.samples = synthetic.samples();
  options.shape = Shape(std::span<const std::int64_t>(extents));
  options.classes = synthetic.classes();
  options.target_size = synthetic.target_size();
  options.vocabulary = synthetic.vocabulary();
  return options;
}

data::TokenFormat translate(TokenFormat format) {
  switch (format) {
    case BYTES:
      return data::TokenFormat::kBytes;
    case BPE:
      return data::TokenFormat::kBpe;
    case UINT16:
      return data::TokenFormat::kUint16;
    case LLM_C:
      return data::TokenFormat::kLlmC;
    default:  // an open enum: no value, or a number that validation has refused
      return data::TokenFormat::kByName;
  }
}

/// A number beyond the other type's range is a limit that nothing reaches.
std::int64_t limit_of(std::uint64_t number) {
  constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  return static_cast<std::int64_t>(std::min(number, kMost));
}

data::TargetKind translate(TargetKind kind) {
  return kind == NUMBERS ? data::TargetKind::kNumbers : data::TargetKind::kClasses;
}

}  // namespace

data::TokensOptions tokens_options(const Tokens& tokens) {
  data::TokensOptions options;
  options.files = {tokens.files().begin(), tokens.files().end()};
  options.format = translate(tokens.format());
  options.context = tokens.context();
  if (tokens.has_stride()) options.stride = tokens.stride();
  options.begin = tokens.begin();
  if (tokens.has_end()) options.end = tokens.end();
  if (tokens.has_vocabulary()) options.vocabulary = tokens.vocabulary();
  options.vocab_file = tokens.vocab_file();
  options.merges_file = tokens.merges_file();
  if (tokens.has_masked()) {
    const MaskedTokens& masked = tokens.masked();
    data::MaskedTokensOptions& translated = options.masked.emplace();
    if (masked.has_share()) translated.share = masked.share();
    if (masked.has_mask_token()) translated.mask_token = masked.mask_token();
  }
  return options;
}

data::ArraysOptions arrays_options(const Arrays& arrays) {
  data::ArraysOptions options;
  options.features = arrays.features();
  options.targets = arrays.targets();
  options.weights = arrays.weights();
  options.target_kind = translate(arrays.target_kind());
  if (arrays.has_classes()) options.classes = arrays.classes();
  options.vocabulary = arrays.vocabulary();
  return options;
}

data::CsvOptions csv_options(const Csv& csv) {
  data::CsvOptions options;
  options.files = {csv.files().begin(), csv.files().end()};
  options.target = csv.target();
  options.features = {csv.features().begin(), csv.features().end()};
  options.weight = csv.weight();
  if (csv.has_header()) options.header = csv.header();
  if (!csv.delimiter().empty()) options.delimiter = csv.delimiter();
  options.target_kind = translate(csv.target_kind());
  if (csv.has_classes()) options.classes = csv.classes();
  return options;
}

data::ImageFolderOptions image_folder_options(const ImageFolder& images) {
  data::ImageFolderOptions options;
  options.folder = images.folder();
  if (images.has_size()) options.size = images.size();
  if (images.has_resize()) options.resize = images.resize();
  if (images.has_max_pixels()) options.max_pixels = limit_of(images.max_pixels());
  return options;
}

data::ShardsOptions shards_options(const Shards& shards) {
  data::ShardsOptions options;
  options.files = {shards.files().begin(), shards.files().end()};
  if (shards.has_size()) options.size = shards.size();
  if (shards.has_resize()) options.resize = shards.resize();
  if (shards.has_max_pixels()) options.max_pixels = limit_of(shards.max_pixels());
  if (shards.has_classes()) options.classes = shards.classes();
  return options;
}

data::VolumesOptions volumes_options(const Volumes& volumes) {
  data::VolumesOptions options;
  options.images = volumes.images();
  options.masks = volumes.masks();
  // The default is the other one than that of arrays.
  options.target_kind = volumes.target_kind() == CLASSES ? data::TargetKind::kClasses : data::TargetKind::kNumbers;
  if (volumes.has_classes()) options.classes = volumes.classes();
  if (volumes.has_max_voxels()) options.max_voxels = limit_of(volumes.max_voxels());
  return options;
}

data::SpheresOptions spheres_options(const Spheres& spheres) {
  const std::vector<std::int64_t> extents(spheres.shape().begin(), spheres.shape().end());
  data::SpheresOptions options;
  options.samples = spheres.samples();
  options.shape = Shape(std::span<const std::int64_t>(extents));
  if (spheres.has_most()) options.most = spheres.most();
  if (spheres.has_min_radius()) options.min_radius = spheres.min_radius();
  if (spheres.has_max_radius()) options.max_radius = spheres.max_radius();
  if (spheres.has_noise()) options.noise = spheres.noise();
  return options;
}

data::VolumeAugmentOptions volume_augment_options(const Augment& augment) {
  data::VolumeAugmentOptions options;
  const std::vector<std::int64_t> patch(augment.patch().begin(), augment.patch().end());
  if (!patch.empty()) options.patch = Shape(std::span<const std::int64_t>(patch));
  options.mirror = augment.mirror();
  options.intensity_scale = augment.intensity_scale();
  options.intensity_shift = augment.intensity_shift();
  return options;
}

data::AugmentOptions augment_options(const Augment& augment) {
  data::AugmentOptions options;
  options.pad_crop = augment.pad_crop();
  options.flip = augment.flip();
  if (augment.has_random_resized_crop()) {
    const RandomResizedCrop& crop = augment.random_resized_crop();
    data::RandomResizedCropOptions& translated = options.random_resized_crop.emplace();
    if (crop.has_min_area()) translated.min_area = crop.min_area();
    if (crop.has_max_area()) translated.max_area = crop.max_area();
    if (crop.has_min_aspect()) translated.min_aspect = crop.min_aspect();
    if (crop.has_max_aspect()) translated.max_aspect = crop.max_aspect();
  }
  const ColorJitter& jitter = augment.color_jitter();
  options.color_jitter = {jitter.brightness(), jitter.contrast(), jitter.saturation(), jitter.hue()};
  options.volume = volume_augment_options(augment);
  options.mixup = augment.mixup();
  return options;
}

namespace {

data::DatasetOptions translate(const Dataset& dataset, const std::string& path) {
  switch (dataset.kind_case()) {
    case Dataset::kIdx:
      return translate(dataset.idx());
    case Dataset::kCifar:
      return translate(dataset.cifar());
    case Dataset::kSynthetic:
      return translate(dataset.synthetic());
    case Dataset::kTokens:
      return tokens_options(dataset.tokens());
    case Dataset::kArrays:
      return arrays_options(dataset.arrays());
    case Dataset::kCsv:
      return csv_options(dataset.csv());
    case Dataset::kImageFolder:
      return image_folder_options(dataset.image_folder());
    case Dataset::kSpheres:
      return spheres_options(dataset.spheres());
    case Dataset::kShards:
      return shards_options(dataset.shards());
    case Dataset::kVolumes:
      return volumes_options(dataset.volumes());
    case Dataset::KIND_NOT_SET:
      break;
  }
  throw FieldError(path, "names no data set", "Name one of " + list_of_kinds() + ".");
}

}  // namespace

data::DataOptions data_options(const Data& data) {
  data::DataOptions options;
  options.train = translate(data.train(), "data.train");
  if (data.has_eval()) options.eval = translate(data.eval(), "data.eval");
  options.normalize.mean = {data.normalize().mean().begin(), data.normalize().mean().end()};
  options.normalize.std = {data.normalize().std().begin(), data.normalize().std().end()};
  options.augment = augment_options(data.augment());
  return options;
}

bool learns_numbers(const Dataset& dataset) {
  if (dataset.has_spheres()) return true;
  if (dataset.has_volumes()) return dataset.volumes().target_kind() != CLASSES;
  if (dataset.has_synthetic()) return dataset.synthetic().classes() == 0 && dataset.synthetic().vocabulary() == 0;
  return dataset.arrays().target_kind() == NUMBERS || dataset.csv().target_kind() == NUMBERS;
}

std::string list_of_kinds() {
  std::string names;
  const auto* const kinds = Dataset::descriptor()->FindOneofByName("kind");
  for (int i = 0; i < kinds->field_count(); ++i) names += (i == 0 ? "" : ", ") + kinds->field(i)->name();
  return names;
}

data::SampleErrors sample_errors(const Data& data) {
  data::SampleErrors errors;
  errors.on_error = data.on_error() == SKIP ? data::OnError::kSkip : data::OnError::kFail;
  if (data.has_max_skipped()) errors.max_skipped = data.max_skipped();
  return errors;
}

data::LoaderOptions loader_options(const Job& job) {
  data::LoaderOptions options;
  options.global_batch = job.data().global_batch();
  if (job.train().has_accumulate()) options.accumulate = job.train().accumulate();
  options.seed = job.seed();
  if (job.data().has_shuffle()) options.shuffle = job.data().shuffle();
  if (job.data().has_drop_last()) options.drop_last = job.data().drop_last();
  if (job.data().has_prefetch()) options.prefetch = job.data().prefetch();
  if (job.data().has_decode_threads()) options.decode_threads = job.data().decode_threads();
  options.errors = sample_errors(job.data());
  options.input_dtype = amp::properties_of(amp_options(job.amp())).input_dtype();
  return options;
}

}  // namespace lockstep::job
