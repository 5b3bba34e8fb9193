// SPDX-License-Identifier: Apache-2.0
#include "configs/job.pb.h"
#include "runtime/job/message_options.h"
#include "runtime/job/model_options.h"
#include "runtime/job/validate_parts.h"

namespace lockstep::job {

namespace {

void check(const Convnet& convnet, Checker& checker) {
  checker.require(convnet.block_size() > 0, "model.convnet.block", "at least one convolution, block { channels: 32 }");
  for (int i = 0; i < convnet.block_size(); ++i) {
    const std::string path = element_path("model.convnet.block", i);
    checker.require_value(path + ".channels", "the number of output channels");
    // To the options, 0 is none, which a job says by leaving the field out.
    if (convnet.block(i).has_max_pool()) checker.at_least_one(convnet.block(i).max_pool(), path + ".max_pool");
  }
}

}  // namespace

void validate_model(const Model& model, Checker& checker) {
  if (kind_of(model) == nullptr) {
    checker.require(false, "model", "one of " + kinds_of(*Model::descriptor()));
    return;
  }
  if (model.has_convnet()) check(model.convnet(), checker);
  if (model.has_resnet()) checker.require_value("model.resnet.depth", "one of 18, 34, 50, 101, 152");
  const auto adopt = [&](const auto& options) { checker.adopt(problems_of(options), "model." + model_kind(model)); };
  std::visit(adopt, model_options(model));
}

}  // namespace lockstep::job
