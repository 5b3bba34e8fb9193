// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "runtime/tensor/dtype.h"
#include "runtime/tensor/shape.h"

namespace lockstep {

/// One input of a model, as a sample has it.
struct InputSpec {
  Shape shape = {};             ///< without the samples' extent: channels last, or [T] tokens
  std::int64_t vocabulary = 0;  ///< tokens (int64) below this number; 0: numbers (float32)

  DType dtype() const { return vocabulary > 0 ? DType::kInt64 : DType::kFloat32; }
  /// "[8, 8, 3]", "[6] tokens below 50"
  std::string str() const {
    return shape.str() + (vocabulary > 0 ? " tokens below " + std::to_string(vocabulary) : "");
  }
  bool operator==(const InputSpec&) const = default;
};

}  // namespace lockstep
