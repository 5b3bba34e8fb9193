// SPDX-License-Identifier: Apache-2.0
#include "runtime/job/model_options.h"

#include "configs/job.pb.h"
#include "runtime/job/message_options.h"

namespace lockstep::job {

model_zoo::ModelOptions model_options(const Model& model) {
  return kind_options_of<model_zoo::ModelOptions>(model, "model");
}

std::string model_kind(const Model& model) {
  if (model.has_registered()) return model.registered().name();
  const auto* const kind = kind_of(model);
  return kind == nullptr ? "unknown" : kind->name();
}

}  // namespace lockstep::job
