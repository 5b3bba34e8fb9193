// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace lockstep::nn {

class Module;

/// Says, while it lives, whose forward pass runs on this thread: Module::operator() sets it.
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

}  // namespace lockstep::nn
