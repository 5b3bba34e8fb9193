// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/arrays.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "runtime/base/error.h"
#include "runtime/base/option_checks.h"
#include "runtime/data/data_digest.h"
#include "runtime/data/formats/content_hash.h"

namespace lockstep::data {

namespace {

/// Labels are looked at so many at a time.
constexpr std::size_t kTargetsAtOnce = 4096;

NpyArray open_sound(const ArraysOptions& options) {
  require_none(problems_of(options), "arrays");
  return NpyArray(options.features);
}

std::string text_of(const NpyArray& array) { return fmt::format("[{}]", fmt::join(array.extents(), ", ")); }

/// All extents but the first.
Shape row_shape(const NpyArray& array) {
  const std::span<const std::int64_t> extents(array.extents());
  // A batch has one dimension more.
  if (extents.empty() || extents.size() > Shape::kMaxRank) {
    throw StorageError(fmt::format("{}: expected an array of 1 to {} dimensions, found {}", array.path(),
                                   Shape::kMaxRank, text_of(array)));
  }
  return Shape(extents.subspan(1));
}

void require_label(const NpyArray& targets, std::int64_t label, std::int64_t sample, std::int64_t classes) {
  if (label >= 0 && label < classes) return;
  throw StorageError(
      fmt::format("{}: label {} of sample {} is outside the {} classes", targets.path(), label, sample, classes),
      "Check that the file belongs to this data set, or set the number of classes.");
}

std::int64_t highest_class(const NpyArray& targets) {
  std::int64_t highest = 0;
  std::vector<std::int64_t> labels(kTargetsAtOnce);
  for (std::int64_t at = 0; at < targets.numel(); at += std::ssize(labels)) {
    labels.resize(std::min(kTargetsAtOnce, static_cast<std::size_t>(targets.numel() - at)));
    targets.read(at, labels);
    highest = std::max(highest, *std::ranges::max_element(labels));
  }
  if (highest < kMostCountedClasses) return highest + 1;
  throw StorageError(fmt::format("{}: label {} is too high for a class", targets.path(), highest),
                     "If the file is damaged, mend it; otherwise give the number of classes.");
}

void require_classes(const NpyArray& targets) {
  if (targets.kind() != NpyArray::Kind::kFloat) return;
  throw StorageError(
      fmt::format("{}: classes are integers, found elements of type '{}'", targets.path(), targets.dtype()),
      "Say target_kind: NUMBERS to learn numbers.");
}

/// The shape of a sample's labels: {} for one label, else that of the sample without channels: a label per position.
Shape positions_of(const NpyArray& features, const NpyArray& targets, const Shape& sample, bool has_channels) {
  const Shape row = row_shape(targets);
  if (row.numel() == 1 && row.rank() <= 1) return {};
  const std::size_t channels = has_channels ? 1 : 0;
  const auto positions = sample.extents().first(static_cast<std::size_t>(sample.rank()) - channels);
  if (std::ranges::equal(row.extents(), positions)) return row;
  throw StorageError(
      fmt::format("{} holds labels {}, but {} samples {}: expected one a sample, or one a position: [{}]",
                  targets.path(), text_of(targets), features.path(), text_of(features),
                  fmt::join(features.extents().begin(), features.extents().end() - static_cast<int>(channels), ", ")),
      has_channels ? "Features have channels last: [N, positions..., channels]." : "");
}

void require_texts(const NpyArray& features) {
  if (features.kind() == NpyArray::Kind::kFloat || features.kind() == NpyArray::Kind::kBool) {
    throw StorageError(
        fmt::format("{}: tokens are integers, found elements of type '{}'", features.path(), features.dtype()),
        "Leave the vocabulary out to learn from numbers.");
  }
  if (features.extents().size() == 2) return;
  throw StorageError(fmt::format("{}: expected texts [N, T], found {}", features.path(), text_of(features)));
}

/// A weight for each of so many samples, all of which can be used.
NpyArray open_weights(const std::string& path, const NpyArray& features, std::int64_t samples) {
  NpyArray weights(path);
  if (weights.extents() != std::vector{samples}) {
    throw StorageError(fmt::format("{} holds weights {}, but {} holds {} samples: expected [{}]", path,
                                   text_of(weights), features.path(), samples, samples));
  }
  std::vector<float> piece(kTargetsAtOnce);
  for (std::int64_t at = 0; at < samples; at += std::ssize(piece)) {
    piece.resize(std::min(kTargetsAtOnce, static_cast<std::size_t>(samples - at)));
    weights.read(at, piece);
    const auto wrong = std::ranges::find_if(piece, [](float w) { return !(w >= 0 && std::isfinite(w)); });
    if (wrong == piece.end()) continue;
    throw StorageError(
        fmt::format("{}: weight {} of sample {} is no number >= 0", path, *wrong, at + (wrong - piece.begin())));
  }
  return weights;
}

void add_array(const NpyArray& array, Hash128& hash) {
  hash.update(array.dtype());
  const auto read = [&array](std::size_t, std::uint64_t offset, std::span<std::byte> out) {
    array.read_bytes(offset, out);
  };
  add_parts({{array.bytes()}, read}, hash);
}

/// Of each element over the samples; empty where there are too many numbers to read them all.
std::vector<double> mean_of(const NpyArray& targets, std::int64_t samples) {
  constexpr std::int64_t kMostNumbers = 1 << 22;
  if (targets.numel() > kMostNumbers) return {};
  std::vector<float> numbers(static_cast<std::size_t>(targets.numel()));
  targets.read(0, numbers);
  std::vector<double> mean(numbers.size() / static_cast<std::size_t>(samples));
  for (std::size_t i = 0; i < numbers.size(); ++i) mean[i % mean.size()] += static_cast<double>(numbers[i]);
  for (double& sum : mean) sum /= static_cast<double>(samples);
  return mean;
}

Shape numbers_or_one(const Shape& row) { return row.rank() == 0 ? Shape{1} : row; }

}  // namespace

FieldProblems problems_of(const ArraysOptions& options) {
  FieldChecks checks;
  check_fields(options, checks);
  if (options.target_kind == TargetKind::kNumbers && options.classes > 0) {
    checks.error("classes", "must be absent where targets are NUMBERS", {"target_kind"});
  }
  return checks.problems();
}

ArraysDataset::ArraysDataset(const ArraysOptions& options)
    : features_(open_sound(options)),
      targets_(options.targets),
      sample_shape_(numbers_or_one(row_shape(features_))),
      vocabulary_(options.vocabulary) {
  if (vocabulary_ > 0) require_texts(features_);
  const Shape target = row_shape(targets_);
  if (targets_.extents()[0] != size()) {
    throw StorageError(fmt::format("{} holds {} samples, but {} holds {} targets", features_.path(), size(),
                                   targets_.path(), targets_.extents()[0]),
                       "Check that the two files belong together.");
  }
  if (size() == 0) throw StorageError(features_.path() + ": holds no samples");
  if (sample_shape_.numel() == 0 || target.numel() == 0) {
    const NpyArray& empty = target.numel() == 0 ? targets_ : features_;
    throw StorageError(empty.path() + ": its rows have no elements: " + text_of(empty));
  }
  if (!options.weights.empty()) weights_ = open_weights(options.weights, features_, size());
  if (options.target_kind == TargetKind::kNumbers) {
    target_shape_ = numbers_or_one(target);
    summary_.mean = mean_of(targets_, size());
    return;
  }
  require_classes(targets_);
  target_shape_ = positions_of(features_, targets_, sample_shape_, vocabulary_ == 0);
  classes_ = options.classes > 0 ? options.classes : highest_class(targets_);
  summary_.common_class = most_common(describe().labels);  // which are checked
}

Description ArraysDataset::describe() const {
  Description description = data::describe(*this);
  if (classes_ == 0 || target_shape_.rank() > 0) return description;
  description.labels.resize(static_cast<std::size_t>(size()));
  targets_.read(0, description.labels);
  for (std::int64_t i = 0; i < size(); ++i) {
    require_label(targets_, description.labels[static_cast<std::size_t>(i)], i, classes_);
  }
  return description;
}

void ArraysDataset::get(const SampleKey& key, const Sample& sample) const {
  const std::int64_t begin = key.index * sample_shape_.numel();
  if (vocabulary_ == 0) {
    features_.read(begin, sample.values);
  } else {
    features_.read(begin, sample.tokens);
    for (const std::int64_t token : sample.tokens) {
      if (token >= 0 && token < vocabulary_) continue;
      throw StorageError(fmt::format("{}: token {} of sample {} is outside the vocabulary of {}", features_.path(),
                                     token, key.index, vocabulary_),
                         "Check that the file belongs to this vocabulary, or set the vocabulary.");
    }
  }
  if (weights_) weights_->read(key.index, sample.weight);
  const std::int64_t first = key.index * target_shape_.numel();
  if (classes_ == 0) return targets_.read(first, sample.target);
  targets_.read(first, sample.labels);
  for (const std::int64_t label : sample.labels) require_label(targets_, label, key.index, classes_);
}

void ArraysDataset::add_to_digest(DataHashes& hashes) const {
  add_array(targets_, hashes.labels);
  if (weights_) add_array(*weights_, hashes.labels);
  add_array(features_, hashes.content);
}

bool look_channels_first(const Shape& sample) {
  constexpr std::int64_t kMostFirst = 4, kMostLast = 16;
  if (sample.rank() < 3 || sample.rank() > 4 || sample[0] > kMostFirst) return false;
  const auto others = sample.extents().subspan(1);
  if (std::ranges::any_of(others, [](std::int64_t extent) { return extent <= kMostFirst; })) return false;
  return others.back() > kMostLast || others.back() == others[others.size() - 2];
}

std::int64_t count_array_classes(const std::string& targets) {
  const NpyArray array(targets);
  require_classes(array);
  return highest_class(array);
}

}  // namespace lockstep::data
