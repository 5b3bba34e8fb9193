// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "runtime/base/field_checks.h"
#include "runtime/base/option_fields.h"
#include "runtime/data/dataset.h"
#include "runtime/data/dataset_kind.h"
#include "runtime/data/description.h"

namespace lockstep::data {

struct SyntheticOptions {
  std::int64_t samples = 0;       ///< has to be given
  Shape shape = {};               ///< of one sample, 1 to 4 extents, channels last: [32, 32, 3]; has to be given
  std::int64_t classes = 0;       ///< 0: regression
  std::int64_t target_size = 0;   ///< of a regression target
  std::int64_t vocabulary = 0;    ///< samples are `shape` [T] tokens below it, targets the next ones; 0: numbers
  std::int64_t first_sample = 0;  ///< where the samples begin in an endless sequence: keeps training and test apart

  static constexpr std::string_view kKind = "synthetic";  ///< its name in a job
  static constexpr auto fields() {
    return std::tuple(option("samples", &SyntheticOptions::samples, kPositive, Required{"the number of samples"}),
                      option("shape", &SyntheticOptions::shape, Ranks{1, 4},
                             Required{"the extents of one sample, [32, 32, 3] or [1024]"}),
                      option("classes", &SyntheticOptions::classes, kNotNegative),
                      option("target_size", &SyntheticOptions::target_size, kNotNegative),
                      option("vocabulary", &SyntheticOptions::vocabulary, kNotNegative));
  }
  bool operator==(const SyntheticOptions&) const = default;
};

/// By field.
FieldProblems problems_of(const SyntheticOptions& options);

/// Generated samples in [0, 1) that a model can learn. With classes, each has a pattern that its samples show under
/// noise. Without, the target is a linear function of the sample. With a vocabulary, the token after one is most often
/// the same: 5 times it and 3 more, modulo the vocabulary; one of eight is any. Drawing a sample costs an addition an
/// element: patterns and noise are tables, and the sample's index chooses among them.
class SyntheticDataset : public Dataset {
 public:
  /// Both throw FieldError for the first of problems_of().
  explicit SyntheticDataset(const SyntheticOptions& options);
  /// Without making the tables.
  static Description describe(const SyntheticOptions& options);

  std::int64_t size() const override { return options_.samples; }
  Shape sample_shape() const override { return options_.shape; }
  std::int64_t vocabulary() const override { return options_.vocabulary; }
  std::int64_t classes() const override { return options_.vocabulary > 0 ? options_.vocabulary : options_.classes; }
  Shape target_shape() const override;
  void get(const SampleKey& key, const Sample& sample) const override;

 private:
  void get_tokens(const SampleKey& key, const Sample& sample) const;

  SyntheticOptions options_;
  std::unique_ptr<float[]> patterns_;  // [max(classes, 1), numel]
  std::unique_ptr<float[]> noise_;     // a sample's noise is a window of it
};

/// Made samples, as a job asks for them.
struct SyntheticKind : DatasetKind<SyntheticKind, SyntheticOptions> {
  static DatasetPtr open(const Options& options) { return std::make_shared<SyntheticDataset>(options); }
  static Description describe(const Options& options) { return SyntheticDataset::describe(options); }
  static Targets targets(const Options& options) {
    return options.classes == 0 && options.vocabulary == 0 ? Targets::kNumbers : Targets::kClasses;
  }
  static void become_eval(Options& eval, const Options*) { eval.first_sample += kFirstEvalSample; }
};

}  // namespace lockstep::data
