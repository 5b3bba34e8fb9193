// SPDX-License-Identifier: Apache-2.0
#include "comm/ddp/ddp_options.h"

namespace lockstep::comm {

FieldProblems problems_of(const DdpOptions& options) {
  FieldChecks checks;
  checks.positive(options.bucket_mb, "bucket_mb");
  checks.positive(options.first_bucket_mb, "first_bucket_mb");
  checks.positive(options.gradient_predivide_factor, "gradient_predivide_factor");
  if (options.wire_dtype && *options.wire_dtype != DType::kFloat32 && !is_reduced(*options.wire_dtype)) {
    checks.error("wire_dtype", "must be float32, float16 or bfloat16, is " + std::string(name_of(*options.wire_dtype)));
  }
  return checks.problems();
}

std::string describe(const DdpOptions& options) {
  std::string lines;
  const auto line = [&lines](const char* field, const std::string& value) {
    lines += std::string(field) + ": " + value + "\n";
  };
  const auto text = [](bool value) { return std::string(value ? "true" : "false"); };
  line("bucket_mb", shortest_text(options.bucket_mb));
  line("first_bucket_mb", shortest_text(options.first_bucket_mb));
  line("wire_dtype", options.wire_dtype ? std::string(name_of(*options.wire_dtype)) : "the compute dtype");
  line("sync_batch_norm", text(options.sync_batch_norm));
  line("gradient_average", text(options.gradient_average));
  line("gradient_predivide_factor", shortest_text(options.gradient_predivide_factor));
  line("find_unused", text(options.find_unused));
  return lines;
}

}  // namespace lockstep::comm
