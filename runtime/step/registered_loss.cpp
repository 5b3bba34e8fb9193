// SPDX-License-Identifier: Apache-2.0
#include "runtime/step/registered_loss.h"

#include <utility>

namespace lockstep::step {

namespace {

Registry<Loss>& losses() {
  static Registry<Loss> registry("loss");
  return registry;
}

}  // namespace

void register_loss(const std::string& name, MakeLoss make) { losses().add(name, std::move(make)); }

Registration lend_loss(const std::string& name, MakeLoss make) { return losses().lend(name, std::move(make)); }

Loss make_registered_loss(const RegisteredOptions& call) {
  try {
    return losses().make(call);
  } catch (const UsageError& error) {
    throw FieldError("train.registered_loss", error.what(), error.advice());
  }
}

}  // namespace lockstep::step
