// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "runtime/base/field_checks.h"
#include "runtime/base/option_fields.h"
#include "runtime/data/dataset.h"
#include "runtime/data/dataset_kind.h"
#include "runtime/data/description.h"
#include "runtime/data/formats/npy.h"

namespace lockstep::data {

struct ArraysOptions {
  std::string features = {};  ///< file of [N, ...], channels last
  std::string targets = {};   ///< file of [N], or of [N, ...] with a target a position
  TargetKind target_kind = TargetKind::kClasses;
  std::int64_t classes = 0;     ///< 0: the highest target + 1; make_dataset() takes the training set's
  std::int64_t vocabulary = 0;  ///< features [N, T] are integers, tokens below this; 0: they are numbers
  std::string weights = {};     ///< file of [N], numbers >= 0: what each sample's loss is multiplied by; none: 1 each

  static constexpr std::string_view kKind = "arrays";  ///< its name in a job
  static constexpr auto fields() {
    return std::tuple(option("features", &ArraysOptions::features, Names::kFile, Required{}),
                      option("targets", &ArraysOptions::targets, Names::kFile, Required{}),
                      option("target_kind", &ArraysOptions::target_kind),
                      option("classes", &ArraysOptions::classes, kAtLeastOne, Otherwise::kFollows),
                      option("vocabulary", &ArraysOptions::vocabulary, kNotNegative),
                      option("weights", &ArraysOptions::weights, Names::kFile));
  }
  bool operator==(const ArraysOptions&) const = default;
};

/// By field; what is in the files is looked at when they are opened.
FieldProblems problems_of(const ArraysOptions& options);

/// Rows of two .npy arrays. Features of any type are float32 samples with the same values; with a vocabulary features
/// [N, T] are integers, texts of T tokens. With classes, targets are integers or bools: [N], or [N, positions...] for
/// features [N, positions..., channels] or texts [N, positions]. Without, they are of any type: [N, ...], or [N] for
/// one number each. The arrays stay on disk.
class ArraysDataset : public Dataset {
 public:
  /// Throws FieldError for options without a meaning, and StorageError that names the file and what is wrong with it.
  explicit ArraysDataset(const ArraysOptions& options);

  /// With the labels where there is one a sample.
  Description describe() const;

  std::int64_t size() const override { return features_.extents()[0]; }
  Shape sample_shape() const override { return sample_shape_; }
  std::int64_t classes() const override { return classes_; }
  std::int64_t vocabulary() const override { return vocabulary_; }
  Shape target_shape() const override { return target_shape_; }
  bool weighted() const override { return weights_.has_value(); }
  /// The mean of targets of numbers where there are up to 4 million of them.
  TargetSummary target_summary() const override { return summary_; }
  /// Throws StorageError that names file and index of a token outside the vocabulary, or of a label outside the
  /// classes.
  void get(const SampleKey& key, const Sample& sample) const override;
  void add_to_digest(DataHashes& hashes) const override;

 private:
  NpyArray features_;
  NpyArray targets_;
  std::optional<NpyArray> weights_;
  Shape sample_shape_;
  Shape target_shape_;
  std::int64_t classes_ = 0;
  std::int64_t vocabulary_;
  TargetSummary summary_;
};

/// The highest target of a file + 1. Throws as the data set does.
std::int64_t count_array_classes(const std::string& targets);

/// Whether images or volumes of this shape have channels first, as it looks: at most four of what stands first, and
/// more of all else, of the last in particular more than channels usually are, or as many as of the one before.
bool look_channels_first(const Shape& sample);

/// Arrays, as a job asks for them.
struct ArraysKind : DatasetKind<ArraysKind, ArraysOptions> {
  static DatasetPtr open(const Options& options) { return std::make_shared<ArraysDataset>(options); }
  static Description describe(const Options& options) { return ArraysDataset(options).describe(); }
  static std::int64_t count_classes(const Options& train) { return count_array_classes(train.targets); }
};

}  // namespace lockstep::data
