// SPDX-License-Identifier: Apache-2.0
#include "model_zoo/convnet_options.h"

#include <fmt/format.h>

#include "runtime/base/option_checks.h"

namespace lockstep::model_zoo {

FieldProblems problems_of(const ConvnetOptions& options) {
  FieldChecks checks;
  check_fields(options, checks);
  for (std::size_t i = 0; i < options.blocks.size(); ++i) {
    const std::int64_t kernel = options.blocks[i].kernel;
    checks.check(kernel >= 1 && kernel % 2 == 1, fmt::format("block[{}].kernel", i), "odd",
                 static_cast<double>(kernel));
  }
  return checks.problems();
}

}  // namespace lockstep::model_zoo
