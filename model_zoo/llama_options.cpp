// SPDX-License-Identifier: Apache-2.0
#include "model_zoo/llama_options.h"

#include "model_zoo/transformer_checks.h"
#include "runtime/base/option_checks.h"

namespace lockstep::model_zoo {

FieldProblems problems_of(const LlamaOptions& options) {
  FieldChecks checks;
  check_fields(options, checks);
  check_heads(checks, options);
  if (options.heads >= 1 && options.width >= 1 && options.width % options.heads == 0) {
    checks.check(options.width / options.heads % 2 == 0, "width", "heads times an even number of channels",
                 static_cast<double>(options.width), {"heads"});
  }
  if (options.kv_heads && *options.kv_heads >= 1 && options.heads >= 1) {
    checks.check(options.heads % *options.kv_heads == 0, "kv_heads", "a divisor of heads",
                 static_cast<double>(*options.kv_heads), {"heads"});
  }
  return checks.problems();
}

}  // namespace lockstep::model_zoo
