// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/make_dataset.h"

#include "runtime/data/augment.h"
#include "runtime/data/cifar.h"
#include "runtime/data/idx.h"
#include "runtime/data/normalize.h"
#include "runtime/data/synthetic.h"
#include "runtime/tensor/error.h"

namespace lockstep::data {

namespace {

/// Generated test samples come from far behind the training samples of the same sequence.
constexpr std::int64_t kFirstEvalSample = std::int64_t{1} << 40;

/// A test set may lack the highest class: without a number in the job, the training set's labels tell.
std::int64_t idx_classes(const job::Idx& idx, const job::Dataset& train) {
  if (idx.has_classes()) return idx.classes();
  if (!train.has_idx()) return 0;
  return train.idx().has_classes() ? train.idx().classes() : count_idx_classes(train.idx().labels());
}

CifarLabels labels_of(const job::Cifar& cifar) {
  if (cifar.labels() == job::CIFAR100_FINE) return CifarLabels::kCifar100Fine;
  if (cifar.labels() == job::CIFAR100_COARSE) return CifarLabels::kCifar100Coarse;
  return CifarLabels::kCifar10;
}

SyntheticDataset::Options synthetic_options(const job::Synthetic& synthetic, Split split) {
  const std::vector<std::int64_t> extents(synthetic.shape().begin(), synthetic.shape().end());
  return {.samples = synthetic.samples(),
          .shape = Shape(std::span<const std::int64_t>(extents)),
          .classes = synthetic.classes(),
          .target_size = synthetic.target_size(),
          .first_sample = split == Split::kEval ? kFirstEvalSample : 0};
}

std::vector<std::string> files_of(const job::Cifar& cifar) { return {cifar.files().begin(), cifar.files().end()}; }

[[noreturn]] void refuse_nameless(Split split) {
  throw FieldError(split == Split::kTrain ? "data.train" : "data.eval", "names no data set");
}

const job::Dataset& dataset_of(const job::Data& data, Split split) {
  return split == Split::kTrain ? data.train() : data.eval();
}

DatasetPtr open(const job::Data& data, Split split) {
  const job::Dataset& dataset = dataset_of(data, split);
  switch (dataset.kind_case()) {
    case job::Dataset::kIdx:
      return open_idx(dataset.idx().images(), dataset.idx().labels(), idx_classes(dataset.idx(), data.train()));
    case job::Dataset::kCifar:
      return open_cifar(files_of(dataset.cifar()), labels_of(dataset.cifar()));
    case job::Dataset::kSynthetic:
      return std::make_shared<SyntheticDataset>(synthetic_options(dataset.synthetic(), split));
    case job::Dataset::KIND_NOT_SET:
      break;
  }
  refuse_nameless(split);
}

}  // namespace

Description describe(const job::Data& data, Split split) {
  const job::Dataset& dataset = dataset_of(data, split);
  switch (dataset.kind_case()) {
    case job::Dataset::kIdx:
      return describe_idx(dataset.idx().images(), dataset.idx().labels(), idx_classes(dataset.idx(), data.train()));
    case job::Dataset::kCifar:
      return describe_cifar(files_of(dataset.cifar()), labels_of(dataset.cifar()));
    case job::Dataset::kSynthetic:
      return SyntheticDataset::describe(synthetic_options(dataset.synthetic(), split));
    case job::Dataset::KIND_NOT_SET:
      break;
  }
  refuse_nameless(split);
}

void require_augment(const job::Augment& augment, const Shape& sample) {
  if (augment.pad_crop() > 0) PadCrop::require_fit(sample, augment.pad_crop());
  if (augment.flip()) Flip::require_fit(sample);
}

void require_normalize(const job::Normalize& normalize, const Shape& sample) {
  Normalize::require_fit(sample, static_cast<std::size_t>(normalize.mean_size()),
                         static_cast<std::size_t>(normalize.std_size()));
}

DatasetPtr make_dataset(const job::Data& data, Split split) {
  DatasetPtr dataset = open(data, split);
  // Padding is black, so it comes before the normalisation.
  if (split == Split::kTrain && data.augment().pad_crop() > 0) {
    dataset = std::make_shared<PadCrop>(dataset, data.augment().pad_crop());
  }
  if (split == Split::kTrain && data.augment().flip()) dataset = std::make_shared<Flip>(dataset);
  if (data.has_normalize()) {
    const job::Normalize& normalize = data.normalize();
    dataset = std::make_shared<Normalize>(dataset, std::vector(normalize.mean().begin(), normalize.mean().end()),
                                          std::vector(normalize.std().begin(), normalize.std().end()));
  }
  return dataset;
}

}  // namespace lockstep::data
