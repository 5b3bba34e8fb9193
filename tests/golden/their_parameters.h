// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "runtime/nn/module.h"
#include "runtime/ops/movement.h"
#include "tests/golden/golden_fixture.h"

namespace lockstep::kernels {

/// A parameter as PyTorch's implementation of a model has it: one of theirs, or several whose rows lie one behind the
/// other.
struct Theirs {
  enum class Layout {
    kSame,          ///< but for dimensions of extent 1
    kTransposed,    ///< [in, out] there
    kChannelsLast,  ///< a convolution's weight, [out, in, kernel...] there
  };
  std::vector<std::string> names;
  Layout layout = Layout::kSame;
};

/// What a parameter of ours is there.
using Correspondence = Theirs (*)(const std::string& name);

/// The stored numbers in our order.
inline std::vector<double> values_in(const json& stored, const Theirs& theirs) {
  std::vector<double> values;
  for (const std::string& name : theirs.names) {
    Tensor part = tensor_in(stored.at(name), DType::kFloat64);
    if (theirs.layout == Theirs::Layout::kTransposed) part = ops::transpose(part, 0, 1);
    if (theirs.layout == Theirs::Layout::kChannelsLast) part = ops::permute(part, {0, 2, 3, 1});
    const std::vector<double> numbers = testing::values_of(part);
    values.insert(values.end(), numbers.begin(), numbers.end());
  }
  return values;
}

/// Gives the model their weights, all of them.
inline void take_parameters(nn::Module& model, Correspondence theirs, const json& stored) {
  std::size_t known = 0;
  for (const nn::Parameter& parameter : model.parameters()) {
    const Theirs from = theirs(parameter.name);
    known += from.names.size();
    const std::vector<double> values = values_in(stored, from);
    ASSERT_EQ(static_cast<std::int64_t>(values.size()), parameter.tensor.numel()) << parameter.name;
    parameter.tensor.copy_from(testing::tensor_of(values, parameter.tensor.shape(), parameter.tensor.dtype()));
  }
  EXPECT_EQ(known, stored.size());
}

inline void expect_gradients(const nn::Module& model, Correspondence theirs, const json& stored,
                             const testing::Bounds& bounds) {
  for (const nn::Parameter& parameter : model.parameters()) {
    SCOPED_TRACE(parameter.name);
    testing::expect_close(testing::values_of(parameter.tensor.grad()), values_in(stored, theirs(parameter.name)),
                          bounds);
  }
}

}  // namespace lockstep::kernels
