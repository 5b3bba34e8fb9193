// SPDX-License-Identifier: Apache-2.0
#include "runtime/tensor/dtype.h"

#include <string>

#include "runtime/base/error.h"

namespace lockstep {

std::size_t size_of(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
    case DType::kInt32:
      return 4;
    case DType::kFloat16:
    case DType::kBFloat16:
      return 2;
    case DType::kFloat64:
    case DType::kInt64:
      return 8;
    case DType::kUInt8:
    case DType::kBool:
      return 1;
  }
  throw UsageError("unknown dtype " + std::to_string(static_cast<int>(dtype)));
}

std::string_view name_of(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return "float32";
    case DType::kFloat16:
      return "float16";
    case DType::kBFloat16:
      return "bfloat16";
    case DType::kFloat64:
      return "float64";
    case DType::kInt64:
      return "int64";
    case DType::kInt32:
      return "int32";
    case DType::kUInt8:
      return "uint8";
    case DType::kBool:
      return "bool";
  }
  return "unknown";
}

bool is_reduced(DType dtype) { return dtype == DType::kFloat16 || dtype == DType::kBFloat16; }

bool is_floating(DType dtype) { return is_reduced(dtype) || dtype == DType::kFloat32 || dtype == DType::kFloat64; }

DType promote(DType a, DType b) {
  if (!is_floating(a) || !is_floating(b)) {
    throw ShapeError("no common floating dtype of " + std::string(name_of(a)) + " and " + std::string(name_of(b)));
  }
  if (a == b) return a;
  if (a == DType::kFloat64 || b == DType::kFloat64) return DType::kFloat64;
  return DType::kFloat32;
}

}  // namespace lockstep
