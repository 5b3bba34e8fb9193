// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "runtime/base/field_checks.h"
#include "runtime/base/option_fields.h"
#include "runtime/tensor/dtype_names.h"

namespace lockstep::amp {

/// Apex's opt levels.
enum class OptLevel : std::uint8_t {
  kO0,  ///< float32
  kO1,  ///< float32 weights, operations cast by policy
  kO2,  ///< 16-bit weights, batch norm in float32, float32 master weights
  kO3,  ///< 16-bit throughout
};

/// In which precision a model trains.
struct AmpOptions {
  OptLevel opt_level = OptLevel::kO0;
  /// Compute dtype: float32 under O0, float16 or bfloat16 otherwise. Default: float32 under O0, float16 otherwise.
  std::optional<DType> dtype = {};
  /// Default: false under O3, else true. False needs O2 or O3, whose weights are of 16 bits.
  std::optional<bool> keep_batch_norm_fp32 = {};
  /// The optimizer updates float32 weights. Default: false under O3, else true. False needs O2 or O3.
  std::optional<bool> master_weights = {};
  /// Dtype of the model's weights, float32 or `dtype`. Default: `dtype` under O2 and O3, else float32.
  std::optional<DType> cast_model_type = {};
  /// Operations are cast by policy (Apex's patch_torch_functions). Default: true under O1, else false.
  std::optional<bool> autocast = {};
  /// Dtype of what the model gives. Default: float32 where the weights are of 16 bits, else whatever comes out.
  std::optional<DType> cast_model_outputs = {};

  static constexpr auto fields() {
    return std::tuple(
        option("opt_level", &AmpOptions::opt_level), option("dtype", &AmpOptions::dtype, Otherwise::kFollows),
        option("keep_batch_norm_fp32", &AmpOptions::keep_batch_norm_fp32, Otherwise::kFollows),
        option("master_weights", &AmpOptions::master_weights, Otherwise::kFollows),
        option("cast_model_type", &AmpOptions::cast_model_type), option("autocast", &AmpOptions::autocast),
        option("cast_model_outputs", &AmpOptions::cast_model_outputs));
  }
  bool operator==(const AmpOptions&) const = default;
};

/// Values that contradict each other, which properties_of() and amp::initialize() refuse; empty where there are none.
FieldProblems problems_of(const AmpOptions& options);

/// The properties of an opt level, with those that the options say otherwise.
struct OptLevelProperties {
  DType compute_dtype = DType::kFloat32;
  bool autocast = false;            ///< operations cast by policy (O1)
  bool reduced_parameters = false;  ///< the model's weights are 16-bit (O2, O3)
  bool keep_batch_norm_fp32 = true;
  bool master_weights = true;
  std::optional<DType> output_dtype = {};  ///< of the model's output; nothing: as nn::ArenaOptions says

  /// The dtype to which nn::forward() casts inputs of numbers before all else. float32: their first use is unknown.
  DType input_dtype() const { return reduced_parameters ? compute_dtype : DType::kFloat32; }

  bool operator==(const OptLevelProperties&) const = default;
};
/// Throws FieldError for a level and a dtype, or overrides, that contradict each other.
OptLevelProperties properties_of(const AmpOptions& options);

}  // namespace lockstep::amp

namespace lockstep {

template <>
struct EnumNames<amp::OptLevel> {
  static constexpr std::array kNames{
      std::pair{amp::OptLevel::kO0, std::string_view("O0")}, std::pair{amp::OptLevel::kO1, std::string_view("O1")},
      std::pair{amp::OptLevel::kO2, std::string_view("O2")}, std::pair{amp::OptLevel::kO3, std::string_view("O3")}};
};

}  // namespace lockstep
