// SPDX-License-Identifier: Apache-2.0
#include "runtime/nn/layer_scope.h"

#include <utility>

namespace lockstep::nn {

namespace {
thread_local const Module* running = nullptr;
}

LayerScope::LayerScope(const Module& module) : outer_(std::exchange(running, &module)) {}
LayerScope::~LayerScope() { running = outer_; }
const Module* LayerScope::current() { return running; }

}  // namespace lockstep::nn
