// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "runtime/data/target_summary.h"
#include "runtime/tensor/input_spec.h"
#include "runtime/tensor/shape.h"

namespace lockstep {
class Hash128;
}

namespace lockstep::data {

struct DataHashes;
struct Preparation;

/// Names one drawing of one sample. Augmentation depends on nothing else, so not on ranks, threads or order.
struct SampleKey {
  std::int64_t index = 0;   ///< in the data set
  std::uint64_t epoch = 0;  ///< counted from 0
  std::uint64_t seed = 0;
};

/// Where a data set writes one input of a sample. One of the spans has elements.
struct InputRow {
  std::span<float> values = {};
  std::span<std::int64_t> tokens = {};  ///< of an input with a vocabulary
};

/// Where a data set writes one sample. Of the first input and of targets one span each has elements.
struct Sample {
  std::span<float> values = {};         ///< input of numbers
  std::span<std::int64_t> tokens = {};  ///< input of a data set with a vocabulary
  std::span<float> target = {};         ///< what the model should answer, without classes
  std::span<std::int64_t> labels = {};  ///< the same with classes: one of the sample, or one of each of its positions
  std::span<float> weight = {};         ///< one number, where the data set is weighted() or mixed()
  std::span<std::int64_t> other_label = {};    ///< one, where the data set is mixed()
  std::span<float> other_weight = {};          ///< one number, where the data set is mixed()
  std::span<const InputRow> more_inputs = {};  ///< one row for each of Dataset::more_inputs()
};

/// Writes 0 everywhere, in place of a sample that cannot be read.
void write_zeros(const Sample& sample);

/// A label that counts for nothing: neither for the loss nor for what is counted of the answers. PyTorch's.
inline constexpr std::int64_t kIgnoredLabel = -100;

/// Samples of one fixed shape. get() is const and may be called from several threads at once.
class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual std::int64_t size() const = 0;
  /// The shape of one sample: channels last, or [T] tokens.
  virtual Shape sample_shape() const = 0;
  /// Samples are tokens (int64) below this number; 0: they are numbers (float32).
  virtual std::int64_t vocabulary() const { return 0; }
  /// The inputs of a sample beside its first one, sample_shape(), in the order in which the model takes them: a table
  /// of numbers beside an image, a second text. Augmentation and normalisation change the first input alone.
  virtual std::vector<InputSpec> more_inputs() const { return {}; }
  /// All inputs, the first one of them.
  std::vector<InputSpec> inputs() const;
  /// Targets are classes (int64) below this number; 0: they are numbers (float32).
  virtual std::int64_t classes() const = 0;
  /// The shape of one target. With classes: a scalar's where a sample has one label, else that of its positions.
  virtual Shape target_shape() const { return {}; }
  /// How many of a sample's targets count, the same number of each sample: all that are not kIgnoredLabel.
  virtual std::int64_t targets_per_sample() const { return classes() > 0 ? target_shape().numel() : 1; }
  /// Whether each sample has a weight, at least 0, which its loss is multiplied by.
  virtual bool weighted() const { return false; }
  /// Whether a sample is a mixture of two: then it has two labels, and each a weight, which its loss is multiplied by.
  virtual bool mixed() const { return false; }
  /// A summary of all targets, where it costs little. It may look at all labels: do not call it for each batch.
  virtual TargetSummary target_summary() const { return {}; }
  /// Writes one sample: sample_shape().numel() values or tokens, likewise each of more_inputs(), and
  /// target_shape().numel() numbers or labels. Labels are below classes(), or kIgnoredLabel. And the weights that there
  /// are.
  virtual void get(const SampleKey& key, const Sample& sample) const = 0;
  /// Adds what tells these data from others to their DataDigest: all targets and all content where they cost little,
  /// otherwise some, always the same ones. Paths and times of files count for nothing. By default draws up to 32
  /// samples. What cannot be read throws no StorageError here.
  virtual void add_to_digest(DataHashes& hashes) const;
  /// Adds what a model that is trained on these data has to know of them beside their describe(): names of classes.
  virtual void add_to_preparation(Preparation&) const {}
  /// Adds what a sample is made of, without its target: samples of the same content add the same, whatever their index,
  /// file or target, and whatever other samples there are. By default what get() writes of its inputs in epoch 0. What
  /// cannot be read throws no StorageError here.
  virtual void add_content(std::int64_t index, Hash128& hash) const;
};

using DatasetPtr = std::shared_ptr<const Dataset>;

/// A data set that is made of another one, and is as that one is but for what its class overrides.
class DerivedDataset : public Dataset {
 public:
  explicit DerivedDataset(DatasetPtr base) : base_(std::move(base)) {}

  const DatasetPtr& base() const { return base_; }
  /// Which sample of the base a sample is made of.
  virtual std::int64_t index_in_base(std::int64_t index) const { return index; }

  std::int64_t size() const override { return base_->size(); }
  Shape sample_shape() const override { return base_->sample_shape(); }
  std::int64_t vocabulary() const override { return base_->vocabulary(); }
  std::vector<InputSpec> more_inputs() const override { return base_->more_inputs(); }
  std::int64_t classes() const override { return base_->classes(); }
  Shape target_shape() const override { return base_->target_shape(); }
  std::int64_t targets_per_sample() const override { return base_->targets_per_sample(); }
  bool weighted() const override { return base_->weighted(); }
  bool mixed() const override { return base_->mixed(); }
  TargetSummary target_summary() const override { return base_->target_summary(); }
  void get(const SampleKey& key, const Sample& sample) const override {
    base_->get({index_in_base(key.index), key.epoch, key.seed}, sample);
  }
  void add_to_digest(DataHashes& hashes) const override { base_->add_to_digest(hashes); }
  void add_to_preparation(Preparation& preparation) const override { base_->add_to_preparation(preparation); }
  void add_content(std::int64_t index, Hash128& hash) const override { base_->add_content(index_in_base(index), hash); }

 private:
  DatasetPtr base_;
};

/// A data set that changes the samples of another and keeps all else. Changes are made in place.
class Transform : public DerivedDataset {
 public:
  using DerivedDataset::DerivedDataset;

  void get(const SampleKey& key, const Sample& sample) const final {
    base()->get(key, sample);
    apply(key, sample);
  }

 private:
  virtual void apply(const SampleKey& key, const Sample& sample) const = 0;
};

}  // namespace lockstep::data
