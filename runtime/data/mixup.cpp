// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/mixup.h"

#include <cmath>
#include <numbers>
#include <utility>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/data/draw.h"

namespace lockstep::data {

namespace {

constexpr const char* kMixupPath = "data.augment.mixup";

/// Uniform in (0, 1), so that it has a logarithm.
double inside(std::uint32_t bits) { return (static_cast<double>(bits) + 0.5) * 0x1p-32; }

/// The logarithm of a draw of Gamma(alpha, 1). Takes the sample's blocks of random words from number `call` on.
double log_gamma(double alpha, const SampleKey& key, std::uint32_t& call) {
  const double raised = alpha < 1 ? alpha + 1 : alpha;
  const double d = raised - 1.0 / 3.0;
  const double c = 1 / std::sqrt(9 * d);
  while (true) {
    const std::array<std::uint32_t, 4> words = draw(key, Augmentation::kMixup, call++);
    const double x = std::sqrt(-2 * std::log(inside(words[0]))) * std::cos(2 * std::numbers::pi * inside(words[1]));
    const double root = 1 + c * x;
    if (root <= 0) continue;
    const double log_v = 3 * std::log(root);
    if (std::log(inside(words[2])) >= x * x / 2 + d - d * std::exp(log_v) + d * log_v) continue;
    return std::log(d) + log_v + (alpha < 1 ? std::log(inside(words[3])) / alpha : 0.0);
  }
}

}  // namespace

void require_mixup(double alpha, const Description& data) {
  if (!(alpha > 0 && std::isfinite(alpha))) throw FieldError(kMixupPath, "must be > 0, is " + std::to_string(alpha));
  if (data.vocabulary > 0) throw FieldError(kMixupPath, "needs samples of numbers; those of data.train are tokens");
  if (!data.more_inputs.empty()) {
    throw FieldError(kMixupPath, "needs samples of one input; those of data.train are " + data.inputs_text());
  }
  if (data.classes == 0) throw FieldError(kMixupPath, "needs classes; data.train is regression data");
  if (data.target_shape.rank() > 0) {
    throw FieldError(kMixupPath, "needs one label a sample; data.train has labels " + data.target_shape.str());
  }
  if (data.samples < 2) throw FieldError(kMixupPath, "needs two samples or more; data.train has one");
}

Mixture mixture_of(const SampleKey& key, std::int64_t size, double alpha) {
  std::uint32_t call = 0;
  const std::array<std::uint32_t, 4> words = draw(key, Augmentation::kMixup, call++);
  // 64 bits: the bias is below 2^-32.
  const std::uint64_t any = (std::uint64_t{words[0]} << 32 | words[1]) % static_cast<std::uint64_t>(size - 1);
  auto other = static_cast<std::int64_t>(any);
  if (other >= key.index) ++other;
  const double mine = log_gamma(alpha, key, call);
  const double theirs = log_gamma(alpha, key, call);
  return {other, 1 / (1 + std::exp(theirs - mine))};
}

Mixup::Mixup(DatasetPtr base, double alpha) : DerivedDataset(std::move(base)), alpha_(alpha) {
  require_mixup(alpha_, describe(*this->base()));
}

void Mixup::get(const SampleKey& key, const Sample& sample) const {
  const auto [other, b] = mixture_of(key, size(), alpha_);
  const auto mine = static_cast<float>(b);
  const float theirs = 1.0f - mine;
  thread_local std::vector<float> values;  // no allocation a sample
  values.resize(sample.values.size());
  sample.weight[0] = sample.other_weight[0] = 1.0f;
  // A data set without weights writes none.
  const auto of_base = [this](std::span<float> weight) { return base()->weighted() ? weight : std::span<float>(); };
  base()->get({other, key.epoch, key.seed},
              {.values = values, .labels = sample.other_label, .weight = of_base(sample.other_weight)});
  base()->get(key, {.values = sample.values, .labels = sample.labels, .weight = of_base(sample.weight)});
  for (std::size_t i = 0; i < values.size(); ++i) sample.values[i] = mine * sample.values[i] + theirs * values[i];
  sample.weight[0] *= mine;
  sample.other_weight[0] *= theirs;
}

}  // namespace lockstep::data
