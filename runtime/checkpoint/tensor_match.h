// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "runtime/tensor/tensor.h"

namespace lockstep::checkpoint {

struct TensorSpec {
  DType dtype = DType::kFloat32;
  Shape shape;

  friend bool operator==(const TensorSpec&, const TensorSpec&) = default;
};

/// One line for every name that is missing, that nothing asked for, or whose dtype or shape differs.
std::vector<std::string> list_differences(const std::map<std::string, TensorSpec>& expected,
                                          const std::map<std::string, Tensor>& found);

/// Throws one UsageError with every difference, before anything is loaded. `path` names the checkpoint.
void require_match(const std::map<std::string, TensorSpec>& expected, const std::map<std::string, Tensor>& found,
                   const std::string& path);

}  // namespace lockstep::checkpoint
