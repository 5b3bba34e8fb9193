// SPDX-License-Identifier: Apache-2.0
#include "comm/ddp/ddp_options.h"

#include <algorithm>
#include <string>

#include "runtime/base/option_checks.h"

namespace lockstep::comm {

namespace {

/// Each has a channel of its own, on GPUs an NCCL communicator with kernels that hold multiprocessors while they wait.
constexpr int kMostReductionStreams = 8;

}  // namespace

FieldProblems problems_of(const DdpOptions& options) {
  FieldChecks checks;
  check_fields(options, checks);
  checks.check(options.reduction_streams >= 1 && options.reduction_streams <= kMostReductionStreams,
               "reduction_streams", ">= 1 and <= " + std::to_string(kMostReductionStreams), options.reduction_streams);
  if (options.wire_dtype && *options.wire_dtype != DType::kFloat32 && !is_reduced(*options.wire_dtype)) {
    checks.error("wire_dtype", "must be float32, float16 or bfloat16, is " + std::string(name_of(*options.wire_dtype)));
  }
  return checks.problems();
}

void require_bucket_ends(const DdpOptions& options, const std::vector<std::string>& parameters) {
  FieldChecks checks;
  for (const std::string& name : options.bucket_ends) {
    if (std::ranges::count(parameters, name) == 0) {
      checks.error("bucket_ends", "the model has no parameter \"" + name + "\"");
    }
  }
  require_none(checks.problems(), "comm");
}

void require_group(int group, int ranks) {
  FieldChecks checks;
  if (group > 0 && ranks % group != 0) {
    checks.error("sync_batch_norm_group",
                 "must divide the number of ranks, " + std::to_string(ranks) + ", is " + std::to_string(group));
  }
  require_none(checks.problems(), "comm");
}

}  // namespace lockstep::comm
