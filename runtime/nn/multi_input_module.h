// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <utility>

#include "runtime/nn/module.h"

namespace lockstep::nn {

template <std::size_t kInputs, class = std::make_index_sequence<kInputs>>
class MultiInputModule;

/// A module whose forward pass takes several tensors, as an image and a table of numbers:
///
///   class TwoBranches : public nn::MultiInputModule<2> {
///     Tensor forward(const Tensor& image, const Tensor& table) override;
///
/// A data set gives them in this order: its sample, then Dataset::more_inputs().
template <std::size_t kInputs, std::size_t... kAt>
class MultiInputModule<kInputs, std::index_sequence<kAt...>> : public Module {
  static_assert(kInputs > 1, "a module of one input is a Module");
  template <std::size_t>
  using Input = const Tensor&;

 public:
  virtual Tensor forward(Input<kAt>... inputs) = 0;
  /// Throws UsageError: one input is too few.
  Tensor forward(const Tensor& input) final { return forward_all(std::span<const Tensor>(&input, 1)); }

  using Module::operator();
  /// forward() with the module's hooks, as Module has it for one input.
  Tensor operator()(Input<kAt>... inputs) {
    const std::array<Tensor, kInputs> all{inputs...};
    return (*this)(std::span<const Tensor>(all));
  }

 protected:
  Tensor forward_all(std::span<const Tensor> inputs) final {
    require_inputs(inputs.size(), kInputs);
    return forward(inputs[kAt]...);
  }
};

}  // namespace lockstep::nn
