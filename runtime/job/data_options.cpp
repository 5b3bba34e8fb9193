// SPDX-License-Identifier: Apache-2.0
#include "runtime/job/data_options.h"

#include <string>
#include <vector>

#include "runtime/tensor/error.h"

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
  return options;
}

}  // namespace

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

namespace {

data::DatasetOptions translate(const Dataset& dataset, const std::string& path) {
  switch (dataset.kind_case()) {
    case Dataset::kIdx:
      return translate(dataset.idx());
    case Dataset::kCifar:
      return translate(dataset.cifar());
    case Dataset::kSynthetic:
      return translate(dataset.synthetic());
    case Dataset::kSpheres:
      return spheres_options(dataset.spheres());
    case Dataset::KIND_NOT_SET:
      break;
  }
  throw FieldError(path, "names no data set", "Name one of idx, cifar, synthetic, spheres.");
}

}  // namespace

data::DataOptions data_options(const Data& data) {
  data::DataOptions options;
  options.train = translate(data.train(), "data.train");
  if (data.has_eval()) options.eval = translate(data.eval(), "data.eval");
  options.normalize.mean = {data.normalize().mean().begin(), data.normalize().mean().end()};
  options.normalize.std = {data.normalize().std().begin(), data.normalize().std().end()};
  options.augment.pad_crop = data.augment().pad_crop();
  options.augment.flip = data.augment().flip();
  options.augment.volume = volume_augment_options(data.augment());
  return options;
}

data::LoaderOptions loader_options(const Job& job) {
  data::LoaderOptions options;
  options.global_batch = job.data().global_batch();
  if (job.train().has_accumulate()) options.accumulate = job.train().accumulate();
  options.seed = job.seed();
  if (job.data().has_shuffle()) options.shuffle = job.data().shuffle();
  if (job.data().has_drop_last()) options.drop_last = job.data().drop_last();
  if (job.data().has_prefetch()) options.prefetch = job.data().prefetch();
  return options;
}

}  // namespace lockstep::job
