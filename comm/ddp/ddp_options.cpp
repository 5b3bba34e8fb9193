// SPDX-License-Identifier: Apache-2.0
#include "comm/ddp/ddp_options.h"

#include <algorithm>
#include <string>

namespace lockstep::comm {

namespace {

/// Each has a channel of its own, on GPUs an NCCL communicator with kernels that hold multiprocessors while they wait.
constexpr int kMostReductionStreams = 8;

}  // namespace

FieldProblems problems_of(const DdpOptions& options) {
  FieldChecks checks;
  checks.positive(options.bucket_mb, "bucket_mb");
  checks.positive(options.first_bucket_mb, "first_bucket_mb");
  checks.positive(options.gradient_predivide_factor, "gradient_predivide_factor");
  checks.check(options.reduction_streams >= 1 && options.reduction_streams <= kMostReductionStreams,
               "reduction_streams", ">= 1 and <= " + std::to_string(kMostReductionStreams), options.reduction_streams);
  checks.not_negative(options.sync_batch_norm_group, "sync_batch_norm_group");
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

std::string describe(const DdpOptions& options) {
  std::string lines;
  const auto line = [&lines](const char* field, const std::string& value) {
    lines += std::string(field) + ": " + value + "\n";
  };
  const auto text = [](bool value) { return std::string(value ? "true" : "false"); };
  line("bucket_mb", shortest_text(options.bucket_mb));
  line("first_bucket_mb", shortest_text(options.first_bucket_mb));
  for (const std::string& name : options.bucket_ends) line("bucket_ends", name);
  line("delay_reduction", text(options.delay_reduction));
  line("reduction_streams", std::to_string(options.reduction_streams));
  line("reduce_in_float32", text(options.reduce_in_float32));
  line("sync_batch_norm_group", std::to_string(options.sync_batch_norm_group));
  line("wire_dtype", options.wire_dtype ? std::string(name_of(*options.wire_dtype)) : "the compute dtype");
  line("sync_batch_norm", text(options.sync_batch_norm));
  line("gradient_average", text(options.gradient_average));
  line("gradient_predivide_factor", shortest_text(options.gradient_predivide_factor));
  line("find_unused", text(options.find_unused));
  return lines;
}

}  // namespace lockstep::comm
