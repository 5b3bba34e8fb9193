// SPDX-License-Identifier: Apache-2.0
#include "configs/job.pb.h"
#include "runtime/job/check_given.h"
#include "runtime/job/message_options.h"
#include "runtime/job/model_options.h"
#include "runtime/job/validate_parts.h"

namespace lockstep::job {

void validate_model(const Model& model, const Model& written, Checker& checker) {
  if (!checker.require(kind_of(model) != nullptr, "model", "one of " + kinds_of(*Model::descriptor()))) return;
  check_given_kind<model_zoo::ModelOptions>(written, "model", checker);
  const auto adopt = [&](const auto& options) {
    checker.adopt(problems_of(options), "model." + kind_of(model)->name());
  };
  std::visit(adopt, model_options(model));
}

}  // namespace lockstep::job
