// SPDX-License-Identifier: Apache-2.0
#include "amp/grad_scaler/amp_options.h"

#include <string>

namespace lockstep::amp {

namespace {

constexpr const char* kLevelNames[] = {"O0", "O1", "O2", "O3"};

OptLevelProperties resolve(const AmpOptions& options) {
  OptLevelProperties properties;
  const OptLevel level = options.opt_level;
  properties.compute_dtype = options.dtype.value_or(level == OptLevel::kO0 ? DType::kFloat32 : DType::kFloat16);
  properties.autocast = options.autocast.value_or(level == OptLevel::kO1);
  properties.reduced_parameters =
      options.cast_model_type ? is_reduced(*options.cast_model_type) : level == OptLevel::kO2 || level == OptLevel::kO3;
  properties.output_dtype = options.cast_model_outputs;
  properties.keep_batch_norm_fp32 = options.keep_batch_norm_fp32.value_or(level != OptLevel::kO3);
  properties.master_weights = options.master_weights.value_or(level != OptLevel::kO3);
  return properties;
}

/// Checks the overrides that choose dtypes.
void check_casts(const AmpOptions& options, const OptLevelProperties& properties, FieldChecks& checks) {
  const std::string compute(name_of(properties.compute_dtype));
  if (options.cast_model_type && *options.cast_model_type != DType::kFloat32 &&
      *options.cast_model_type != properties.compute_dtype) {
    checks.error(
        "cast_model_type",
        "must be float32 or the compute dtype, " + compute + ", is " + std::string(name_of(*options.cast_model_type)),
        {"dtype"});
  }
  if (options.cast_model_outputs && !is_floating(*options.cast_model_outputs)) {
    checks.error("cast_model_outputs",
                 "must be a floating dtype, is " + std::string(name_of(*options.cast_model_outputs)));
  }
  const bool reduced = is_reduced(properties.compute_dtype);
  if (properties.autocast && !reduced) {
    checks.error("autocast", "casts to 16 bits, and the compute dtype is " + compute + "; use O1", {"opt_level"});
  }
  // A level that contradicts its dtype was said above.
  const bool overridden = options.autocast || options.cast_model_type;
  if (overridden && reduced && !properties.autocast && !properties.reduced_parameters) {
    checks.error(options.autocast ? "autocast" : "cast_model_type",
                 "leaves nothing in " + compute + ": neither operations nor weights; use O0", {"opt_level", "dtype"});
  }
}

}  // namespace

FieldProblems problems_of(const AmpOptions& options) {
  FieldChecks checks;
  const OptLevelProperties properties = resolve(options);
  const std::string level = kLevelNames[static_cast<std::size_t>(options.opt_level)];
  const bool full = options.opt_level == OptLevel::kO0;
  if (properties.compute_dtype != DType::kFloat32 && !is_reduced(properties.compute_dtype)) {
    checks.error("dtype", "must be float32, float16 or bfloat16, is " + std::string(name_of(properties.compute_dtype)));
  } else if (full && properties.compute_dtype != DType::kFloat32) {
    const std::string dtype = properties.compute_dtype == DType::kBFloat16 ? "BF16" : "FP16";
    checks.error("dtype", dtype + " contradicts opt_level O0, which computes in FP32; use O1 or leave dtype out",
                 {"opt_level"});
  } else if (!full && properties.compute_dtype == DType::kFloat32) {
    checks.error("dtype", "FP32 contradicts opt_level " + level + "; use O0, or FP16 or BF16 here", {"opt_level"});
  }
  const auto needs_reduced_weights = [&](bool value, const char* field) {
    if (value || properties.reduced_parameters) return;
    const std::string where = options.cast_model_type ? "with cast_model_type FP32" : "under " + level;
    checks.error(field, "cannot be false " + where + ", whose weights are fp32; use O2 or O3", {"opt_level"});
  };
  needs_reduced_weights(properties.master_weights, "master_weights");
  needs_reduced_weights(properties.keep_batch_norm_fp32, "keep_batch_norm_fp32");
  check_casts(options, properties, checks);
  return checks.problems();
}

OptLevelProperties properties_of(const AmpOptions& options) {
  require_none(problems_of(options), "amp");
  return resolve(options);
}

}  // namespace lockstep::amp
