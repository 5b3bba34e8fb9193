// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "runtime/data/dataset.h"
#include "runtime/data/tokens_options.h"

namespace lockstep::data {

/// The texts of another data set with some tokens hidden, which are the targets, as BERT learns (arXiv
/// 1810.04805, 3.1). Of each sample round(share * T) places are drawn, anew in each epoch: their labels are the tokens
/// there, all other labels kIgnoredLabel. A drawn token becomes the mask token in 8 cases of 10, any token of the
/// text's vocabulary in one, and stays in one.
class MaskedTokens : public DerivedDataset {
 public:
  /// `base` has tokens [T]. Throws FieldError for options without a meaning, and where no target would be drawn.
  MaskedTokens(DatasetPtr base, const MaskedTokensOptions& options);

  /// With the mask token.
  std::int64_t vocabulary() const override;
  std::int64_t classes() const override { return base()->vocabulary(); }
  Shape target_shape() const override { return base()->sample_shape(); }
  std::int64_t targets_per_sample() const override { return targets_; }
  void get(const SampleKey& key, const Sample& sample) const override;

 private:
  std::int64_t targets_;
  std::int64_t mask_token_;
};

}  // namespace lockstep::data
