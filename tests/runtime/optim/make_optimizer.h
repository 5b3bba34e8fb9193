// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <ostream>
#include <vector>

#include "runtime/optim/adagrad.h"
#include "runtime/optim/adam.h"
#include "runtime/optim/lamb.h"
#include "runtime/optim/lars.h"
#include "runtime/optim/lion.h"
#include "runtime/optim/novograd.h"
#include "runtime/optim/rmsprop.h"
#include "runtime/optim/sgd.h"

namespace lockstep::optim::testing {

/// An optimizer of parameters that are not known yet.
struct MakeOptimizer {
  const char* name;
  std::function<std::unique_ptr<Optimizer>(const std::vector<nn::Parameter>&)> of;
};

inline void PrintTo(const MakeOptimizer& make, std::ostream* out) { *out << make.name; }

inline MakeOptimizer with_sgd(const SgdOptions& options, const OptimizerOptions& more = {}) {
  return {"sgd", [=](const auto& parameters) { return sgd(parameters, options, more); }};
}
inline MakeOptimizer with_adam(const AdamOptions& options, const OptimizerOptions& more = {}) {
  return {"adam", [=](const auto& parameters) { return adam(parameters, options, more); }};
}
inline MakeOptimizer with_adamw(const AdamwOptions& options, const OptimizerOptions& more = {}) {
  return {"adamw", [=](const auto& parameters) { return adamw(parameters, options, more); }};
}
inline MakeOptimizer with_adagrad(const AdagradOptions& options, const OptimizerOptions& more = {}) {
  return {"adagrad", [=](const auto& parameters) { return adagrad(parameters, options, more); }};
}
inline MakeOptimizer with_rmsprop(const RmspropOptions& options, const OptimizerOptions& more = {}) {
  return {"rmsprop", [=](const auto& parameters) { return rmsprop(parameters, options, more); }};
}
inline MakeOptimizer with_lion(const LionOptions& options, const OptimizerOptions& more = {}) {
  return {"lion", [=](const auto& parameters) { return lion(parameters, options, more); }};
}
inline MakeOptimizer with_lamb(const LambOptions& options, const OptimizerOptions& more = {}) {
  return {"lamb", [=](const auto& parameters) { return lamb(parameters, options, more); }};
}
inline MakeOptimizer with_novograd(const NovogradOptions& options, const OptimizerOptions& more = {}) {
  return {"novograd", [=](const auto& parameters) { return novograd(parameters, options, more); }};
}
inline MakeOptimizer with_lars(const LarsOptions& options, const OptimizerOptions& more = {}) {
  return {"lars", [=](const auto& parameters) { return lars(parameters, options, more); }};
}

/// One of each kind, and of each path through its step, with weight decay; the names are distinct.
inline std::vector<MakeOptimizer> every_optimizer() {
  std::vector<MakeOptimizer> all{
      with_sgd({.lr = 0.1, .momentum = 0.9, .weight_decay = 0.1, .dampening = 0.5}, {.clip_norm = 1}),
      with_adam({.lr = 0.1, .weight_decay = 0.1}, {.clip_value = 0.5}),
      with_adamw({.lr = 0.1, .weight_decay = 0.1}),
      with_adagrad({.lr = 0.1, .lr_decay = 0.1, .weight_decay = 0.1}),
      with_rmsprop({.lr = 0.1, .weight_decay = 0.1, .momentum = 0.9, .centered = true}),
      with_lion({.lr = 0.1, .weight_decay = 0.1}),
      with_lamb({.lr = 0.1, .weight_decay = 0.1}),
      with_novograd({.lr = 0.1, .weight_decay = 0.1}),
      with_lars({.lr = 1, .weight_decay = 0.1, .trust_coefficient = 0.1})};
  const auto add = [&all](const char* name, MakeOptimizer make) {
    make.name = name;
    all.push_back(std::move(make));
  };
  add("amsgrad", with_adam({.lr = 0.1, .weight_decay = 0.1, .amsgrad = true}));
  add("larc", with_sgd({.lr = 0.1, .momentum = 0.9, .weight_decay = 0.1}, {.larc = LarcOptions{}}));
  add("novograd_of_largest", with_novograd({.lr = 0.1, .weight_decay = 0.1, .norm = NovogradNorm::kLargest}));
  return all;
}

}  // namespace lockstep::optim::testing
