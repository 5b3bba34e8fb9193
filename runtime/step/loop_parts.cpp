// SPDX-License-Identifier: Apache-2.0
#include "runtime/step/loop_parts.h"

#include <algorithm>
#include <set>

#include "runtime/base/error.h"

namespace lockstep::step {

namespace {

template <class T>
void require_names(const std::vector<Named<T>>& parts, const std::string& kind) {
  std::set<std::string> names;
  for (const Named<T>& part : parts) {
    if (part.name.empty() && parts.size() > 1) {
      throw UsageError("one of several " + kind + "s has no name",
                       "Give each a name of its own: {\"generator\", ddp}.");
    }
    if (part.name.find('/') != std::string::npos) {
      throw UsageError("the " + kind + " \"" + part.name + "\": names have no '/'");
    }
    if (!names.insert(part.name).second) throw UsageError("two " + kind + "s have the name \"" + part.name + "\"");
  }
}

}  // namespace

void require_parts(const LoopParts& parts) {
  if (parts.models.empty()) throw UsageError("a checkpoint needs a model");
  require_names(parts.models, "model");
  require_names(parts.optimizers, "optimizer");
  require_names(parts.scalers, "scaler");
  require_names(parts.means, "mean");
  const auto is_known = [&](const nn::Arena* arena) {
    return std::ranges::any_of(parts.models,
                               [&](const auto& model) { return model.object.model().arena().get() == arena; });
  };
  for (const auto& [name, mean] : parts.means) {
    if (!is_known(&mean.arena())) throw UsageError("a mean of the weights of none of the models that are named");
  }
  for (const auto& [name, optimizer] : parts.optimizers) {
    for (const optim::Optimizer::Slot& slot : optimizer.slots()) {
      if (is_known(slot.arena)) continue;
      throw UsageError("the optimizer " + optimizer.name() + " has " + slot.parameter().name +
                           ", a parameter of none of the models that are named",
                       "Name every model of its parameters.");
    }
  }
}

}  // namespace lockstep::step
