// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "runtime/tensor/device.h"

namespace lockstep::gpu {

/// Registers a Graph with give_up_graphs() while it lives, for those who implement one.
class LivingGraph {
 public:
  /// `give_up` destroys what the graph has recorded. It may be called by any thread, beside calls of the graph, until
  /// the destructor of this has returned.
  LivingGraph(Device device, std::function<void()> give_up);
  ~LivingGraph();
  LivingGraph(const LivingGraph&) = delete;
  LivingGraph& operator=(const LivingGraph&) = delete;

  Device device() const { return device_; }
  void give_up() const { give_up_(); }

 private:
  Device device_;
  std::function<void()> give_up_;
};

}  // namespace lockstep::gpu
