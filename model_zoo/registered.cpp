// SPDX-License-Identifier: Apache-2.0
#include "model_zoo/registered.h"

#include <utility>

namespace lockstep::model_zoo {

namespace {

Registry<std::unique_ptr<nn::Module>, const ModelInput&>& models() {
  static Registry<std::unique_ptr<nn::Module>, const ModelInput&> registry("model");
  return registry;
}

}  // namespace

void register_model(const std::string& name, MakeModel make) { models().add(name, std::move(make)); }

Registration lend_model(const std::string& name, MakeModel make) { return models().lend(name, std::move(make)); }

std::unique_ptr<nn::Module> make_model(const RegisteredOptions& call, const ModelInput& input) {
  try {
    return models().make(call, input);
  } catch (const FieldError&) {
    throw;
  } catch (const UsageError& error) {
    throw FieldError("model.registered", error.what(), error.advice());
  }
}

}  // namespace lockstep::model_zoo
