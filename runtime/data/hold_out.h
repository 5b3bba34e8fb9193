// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "runtime/base/option_fields.h"
#include "runtime/data/dataset.h"
#include "runtime/data/description.h"

namespace lockstep::data {

/// Evaluation data that are a share of the training data.
struct HoldOutOptions {
  /// Of the training samples, about so many are held out; 0: none. A sample's side follows from a hash of its content
  /// alone (Dataset::add_content): duplicates are on one side, and no sample changes sides where others are added or
  /// files are renamed. A larger share takes more samples and gives none back.
  double eval_share = 0;

  static constexpr auto fields() { return std::tuple(option("eval_share", &HoldOutOptions::eval_share, kFraction)); }
  bool operator==(const HoldOutOptions&) const = default;
};

/// The two parts of training data of which some samples are held out.
enum class Side { kTrained, kHeldOut };

/// The samples of one side.
struct SideSamples {
  std::vector<std::int64_t> indices;   ///< among all, ascending
  std::vector<std::uint64_t> content;  ///< of each, the hash that decided
};

/// The hashes of the content of all samples of a data set, for who asks for both sides of it: looking at every sample
/// takes long.
class SampleContents {
 public:
  /// Looks at every sample the first time, on as many threads as there are cores, up to 16.
  const std::vector<std::uint64_t>& of(const Dataset& all);

 private:
  std::vector<std::uint64_t> hashes_;
};

/// `contents`: of `all`. Throws FieldError at data.eval_share where a side has no sample.
SideSamples samples_of(const Dataset& all, const HoldOutOptions& options, Side side, SampleContents& contents);

/// Describes the samples of a side; classes and all else are those of all.
Description described(Description all, const SideSamples& samples);

/// The classes of which no sample is held out, in a sentence: "classes 2 (\"cat\") and 5 have no sample held out ...".
/// Empty where each has one, or where only drawing the samples would tell. `names` may be empty.
std::string classes_without_evaluation(const Description& held_out, const std::vector<std::string>& names);

/// Some samples of another data set, drawn as they are drawn there.
class Subset : public DerivedDataset {
 public:
  Subset(DatasetPtr base, SideSamples samples) : DerivedDataset(std::move(base)), samples_(std::move(samples)) {}

  std::int64_t size() const override { return std::ssize(samples_.indices); }
  std::int64_t index_in_base(std::int64_t index) const override {
    return samples_.indices[static_cast<std::size_t>(index)];
  }
  /// Adds the hashes of the content of all its samples, and the labels of all samples of the base: few data sets tell
  /// some labels apart from the others.
  void add_to_digest(DataHashes& hashes) const override;

 private:
  SideSamples samples_;
};

}  // namespace lockstep::data
