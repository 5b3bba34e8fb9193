// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/base/field_checks.h"
#include "runtime/base/option_fields.h"
#include "runtime/tensor/dtype_names.h"

namespace lockstep::comm {

/// How DistributedDataParallel reduces gradients. Every rank gives the same.
struct DdpOptions {
  double bucket_mb = 25;       ///< > 0: MiB a gradient bucket on the wire
  double first_bucket_mb = 1;  ///< > 0: of the first one, small so that communication starts early
  /// Names of parameters. Where there are any, a bucket ends with each of them, whatever its size: reductions begin
  /// when these parameters' gradients are complete.
  std::vector<std::string> bucket_ends = {};
  bool delay_reduction = false;  ///< reduce when the backward pass is over, not during it
  int reduction_streams = 1;     ///< 1 to 8: buckets that may be reduced at the same time, each on a stream of its own
  /// The dtype of gradients, in memory and on the wire: float32, float16 or bfloat16. Default: the compute dtype.
  std::optional<DType> wire_dtype = {};
  /// Widen 16-bit gradients to float32 while they are reduced; in memory they keep their dtype. Collectives of the CPU
  /// add in float32 either way, and round a 16-bit sum once; NCCL's round it at each rank.
  bool reduce_in_float32 = false;
  bool sync_batch_norm = true;           ///< statistics over the global batch
  int sync_batch_norm_group = 0;         ///< over so many consecutive ranks, which divide the world size; 0: over all
  bool gradient_average = true;          ///< divide the sum by the number of ranks
  double gradient_predivide_factor = 1;  ///< > 0: divide by this before the sum, by world size / this after
  bool find_unused = false;              ///< a rank without a gradient of a parameter counts as zero, not as an error

  static constexpr auto fields() {
    return std::tuple(option("bucket_mb", &DdpOptions::bucket_mb, kPositive),
                      option("first_bucket_mb", &DdpOptions::first_bucket_mb, kPositive),
                      option("bucket_ends", &DdpOptions::bucket_ends),
                      option("delay_reduction", &DdpOptions::delay_reduction),
                      option("reduction_streams", &DdpOptions::reduction_streams),
                      option("wire_dtype", &DdpOptions::wire_dtype, Otherwise::kFollows),
                      option("reduce_in_float32", &DdpOptions::reduce_in_float32),
                      option("sync_batch_norm", &DdpOptions::sync_batch_norm),
                      option("sync_batch_norm_group", &DdpOptions::sync_batch_norm_group, kNotNegative),
                      option("gradient_average", &DdpOptions::gradient_average),
                      option("gradient_predivide_factor", &DdpOptions::gradient_predivide_factor, kPositive),
                      option("find_unused", &DdpOptions::find_unused));
  }
  bool operator==(const DdpOptions&) const = default;
};

/// The problems for which DistributedDataParallel refuses the options; empty where they can be used.
FieldProblems problems_of(const DdpOptions& options);

/// Throws FieldError for a name of bucket_ends that is none of the parameters.
void require_bucket_ends(const DdpOptions& options, const std::vector<std::string>& parameters);
/// Throws FieldError unless sync_batch_norm_group `group` is 0 or divides the number of ranks.
void require_group(int group, int ranks);

}  // namespace lockstep::comm
