// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/tensor/tensor.h"

namespace lockstep::nn {

/// The kind of a parameter, on which weight decay and precision depend.
enum class ParameterKind : std::uint8_t {
  kWeight,
  kBias,
  kNorm,  ///< gamma or beta of a batch norm: stays float32 under O2, never decays by default
  kGain,  ///< gamma of another normalisation: never decays by default
};

/// How a parameter starts.
struct Initializer {
  enum class Kind : std::uint8_t { kConstant, kUniform, kNormal } kind = Kind::kConstant;
  double value = 0.0;  ///< the constant, the bound of uniform [-value, value), or the standard deviation

  static Initializer constant(double value) { return {Kind::kConstant, value}; }
  static Initializer uniform(double bound) { return {Kind::kUniform, bound}; }
  static Initializer normal(double deviation) { return {Kind::kNormal, deviation}; }
  bool operator==(const Initializer&) const = default;
};

/// A tensor that training changes. Copies share the tensor.
struct Parameter {
  std::string name;  ///< dotted path from the root, such as "block0.conv.weight"
  Tensor tensor;
  ParameterKind kind = ParameterKind::kWeight;
  Initializer initializer;

  /// Whether both are the same tensor under the same name.
  bool operator==(const Parameter& other) const {
    return tensor.is(other.tensor) && name == other.name && kind == other.kind && initializer == other.initializer;
  }
};

}  // namespace lockstep::nn
