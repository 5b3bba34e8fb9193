// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "runtime/base/field_checks.h"

namespace lockstep::model_zoo {

/// The defaults are BERT's base size, of 110 million parameters. (Devlin et al.: "BERT: Pre-training of Deep
/// Bidirectional Transformers for Language Understanding", NAACL 2019, arXiv 1810.04805.)
struct BertOptions {
  std::int64_t layers = 12;
  std::int64_t heads = 12;
  std::int64_t width = 768;                     ///< a multiple of heads
  std::optional<std::int64_t> hidden = {};      ///< width of a feed-forward layer; default: 4 width
  std::int64_t context = 512;                   ///< the longest text
  std::optional<std::int64_t> vocabulary = {};  ///< default: the data's; a larger one leaves tokens unused
  double dropout = 0.1;                         ///< of embeddings, attention and what blocks add; in [0, 1)
  double norm_epsilon = 1e-12;
  double initial_deviation = 0.02;             ///< of weights
  std::optional<std::int64_t> pad_token = {};  ///< fills texts up: attention does not see it
  bool checkpoint_activations = false;         ///< of blocks: nn::checkpoint()

  bool operator==(const BertOptions&) const = default;
};

/// All that is wrong with the options, by the names of the job's fields.
FieldProblems problems_of(const BertOptions& options);

}  // namespace lockstep::model_zoo
