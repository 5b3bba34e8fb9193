// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/data/dataset.h"
#include "runtime/data/description.h"
#include "runtime/data/normalize.h"

namespace lockstep::data {

/// Throws FieldError for values that are not finite, for a std that is not > 0, where the number of values is neither
/// one nor that of the targets' last dimension, and for targets that are classes.
void require_normalize_target(const NormalizeOptions& options, const Description& data);

/// Targets (t - mean) / std. Its target_summary() has the scale, by which who shows an answer undoes it.
class NormalizeTarget : public Transform {
 public:
  /// Throws as require_normalize_target() does.
  NormalizeTarget(DatasetPtr base, const NormalizeOptions& options);
  TargetSummary target_summary() const override;

 private:
  void apply(const SampleKey& key, const Sample& sample) const override;

  TargetScale scale_;
};

}  // namespace lockstep::data
