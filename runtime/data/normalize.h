// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <limits>
#include <vector>

#include "runtime/base/field_checks.h"
#include "runtime/base/option_fields.h"
#include "runtime/data/dataset.h"
#include "runtime/data/description.h"

namespace lockstep::data {

/// (x - mean) / std a channel, the last dimension, of x in [0, 1]. One value serves all channels; none means 0 and 1.
struct NormalizeOptions {
  std::vector<float> mean = {};
  std::vector<float> std = {};

  static constexpr auto fields() {
    return std::tuple(
        option("mean", &NormalizeOptions::mean, Bound{"finite", -std::numeric_limits<double>::max(), false}),
        option("std", &NormalizeOptions::std, kPositive));
  }
  bool operator==(const NormalizeOptions&) const = default;
};

/// Throws FieldError for values that are not finite, for a std that is not > 0, where the number of values is neither
/// one nor that of the samples' channels, and for samples of tokens.
void require_normalize(const NormalizeOptions& options, const Description& data);

class Normalize : public Transform {
 public:
  /// Throws as require_normalize() does.
  Normalize(DatasetPtr base, const NormalizeOptions& options);

 private:
  void apply(const SampleKey& key, const Sample& sample) const override;

  // x * scale + shift: a value, or that of each channel, repeated so that a register can take several
  std::vector<float> scale_;
  std::vector<float> shift_;
};

}  // namespace lockstep::data
