// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/tensor/tensor.h"

namespace lockstep::nn {

class Module;

/// Says, while it lives, whose forward pass runs on this thread. A module that calls others may set it for each of
/// them, as Sequential does; a layer with parameters is known by those too.
class [[nodiscard]] LayerScope {
 public:
  [[nodiscard]] explicit LayerScope(const Module& module);
  ~LayerScope();
  LayerScope(const LayerScope&) = delete;
  LayerScope& operator=(const LayerScope&) = delete;

  /// The innermost one's; null outside any.
  static const Module* current();

 private:
  const Module* outer_;
};

/// layer.forward(x) in a scope of its own.
Tensor run_layer(Module& layer, const Tensor& x);

}  // namespace lockstep::nn
