// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/masked_tokens.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "runtime/data/draw.h"

namespace lockstep::data {

namespace {

constexpr double kHidden = 0.8, kReplaced = 0.1;

std::int64_t targets_of(const MaskedTokensOptions& options, std::int64_t context) {
  require_none(problems_of(options, context), "masked");
  return masked_targets(options, context);
}

}  // namespace

MaskedTokens::MaskedTokens(DatasetPtr base, const MaskedTokensOptions& options)
    : DerivedDataset(std::move(base)),
      targets_(targets_of(options, sample_shape().numel())),
      mask_token_(options.mask_token.value_or(this->base()->vocabulary())) {}

std::int64_t MaskedTokens::vocabulary() const { return std::max(base()->vocabulary(), mask_token_ + 1); }

void MaskedTokens::get(const SampleKey& key, const Sample& sample) const {
  base()->get(key, sample);
  std::ranges::fill(sample.labels, kIgnoredLabel);
  std::vector<std::size_t> places(sample.tokens.size());
  std::iota(places.begin(), places.end(), std::size_t{0});
  // The beginning of a random order of all places.
  for (std::size_t i = 0; i < static_cast<std::size_t>(targets_); ++i) {
    const auto random = draw(key, Augmentation::kMaskedTokens, static_cast<std::uint32_t>(i));
    std::swap(
        places[i],
        places[i + static_cast<std::size_t>(below(random[0], std::ssize(places) - static_cast<std::int64_t>(i)))]);
    std::int64_t& token = sample.tokens[places[i]];
    sample.labels[places[i]] = token;
    const double chance = uniform(random[1], 0, 1);
    if (chance < kHidden) {
      token = mask_token_;
    } else if (chance < kHidden + kReplaced) {
      token = below(random[2], base()->vocabulary());
    }
  }
}

}  // namespace lockstep::data
