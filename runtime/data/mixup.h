// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/data/dataset.h"
#include "runtime/data/description.h"

namespace lockstep::data {

/// Mixes each sample with another one (Zhang, Cisse, Dauphin, Lopez-Paz: arXiv 1710.09412): b x + (1 - b) x', with the
/// label of x at weight b and that of x' at weight 1 - b, each times the weight that its sample has in a weighted data
/// set. x' is any other sample of the data set, as its own key draws it in this epoch, and b is of the distribution
/// Beta(alpha, alpha). Both depend on the sample's key alone. Each sample is drawn twice as often as without.
class Mixup : public DerivedDataset {
 public:
  /// Throws as require_mixup().
  Mixup(DatasetPtr base, double alpha);

  bool mixed() const override { return true; }
  void get(const SampleKey& key, const Sample& sample) const override;

 private:
  double alpha_;
};

/// Throws FieldError unless 0 < alpha is finite and the samples are two or more, of numbers, with a class each.
void require_mixup(double alpha, const Description& data);

/// The other sample of Mixup and the share b of the sample itself.
struct Mixture {
  std::int64_t other = 0;
  double share = 1;
};
/// `size` >= 2 samples. b = g / (g + g') of two draws of Gamma(alpha), which is exact: each is drawn by rejection
/// (Marsaglia, Tsang: "A simple method for generating gamma variables", 2000), below 1 as Gamma(alpha + 1) u^(1/alpha),
/// in logarithms, so that no alpha underflows. Normal numbers are Box and Muller's.
Mixture mixture_of(const SampleKey& key, std::int64_t size, double alpha);

}  // namespace lockstep::data
