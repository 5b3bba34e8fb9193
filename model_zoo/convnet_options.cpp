// SPDX-License-Identifier: Apache-2.0
#include "model_zoo/convnet_options.h"

#include <fmt/format.h>

#include "model_zoo/batch_norm_checks.h"

namespace lockstep::model_zoo {

namespace {

void check(const ConvBlockOptions& block, const std::string& at, FieldChecks& checks) {
  checks.positive(static_cast<double>(block.channels), at + "channels");
  checks.check(block.kernel >= 1 && block.kernel % 2 == 1, at + "kernel", "odd", static_cast<double>(block.kernel));
  checks.at_least_one(static_cast<double>(block.stride), at + "stride");
  checks.not_negative(static_cast<double>(block.max_pool), at + "max_pool");
  checks.fraction(block.dropout, at + "dropout");
}

}  // namespace

FieldProblems problems_of(const ConvnetOptions& options) {
  FieldChecks checks;
  if (options.blocks.empty()) checks.error("block", "must hold at least one convolution");
  for (std::size_t i = 0; i < options.blocks.size(); ++i) {
    check(options.blocks[i], fmt::format("block[{}].", i), checks);
  }
  checks.fraction(options.dropout, "dropout");
  for (std::size_t i = 0; i < options.hidden.size(); ++i) {
    checks.at_least_one(static_cast<double>(options.hidden[i]), fmt::format("hidden[{}]", i));
  }
  check_batch_norm(checks, options);
  return checks.problems();
}

}  // namespace lockstep::model_zoo
