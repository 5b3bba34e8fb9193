// SPDX-License-Identifier: Apache-2.0
#include "runtime/job/make_optimizer.h"

#include <string>

#include "runtime/job/diagnostic.h"
#include "runtime/job/training_options.h"
#include "runtime/optim/adam.h"
#include "runtime/optim/sgd.h"
#include "runtime/tensor/error.h"

namespace lockstep::job {

namespace {

std::unique_ptr<optim::Optimizer> make(const Optimizer& optimizer, const std::vector<nn::Parameter>& parameters) {
  const optim::OptimizerOptions more = optimizer_options(optimizer);
  switch (optimizer.kind_case()) {
    case Optimizer::kSgd:
      return optim::sgd(parameters, sgd_options(optimizer.sgd()), more);
    case Optimizer::kAdam:
      return optim::adam(parameters, adam_options(optimizer.adam()), more);
    case Optimizer::kAdamw:
      return optim::adamw(parameters, adamw_options(optimizer.adamw()), more);
    case Optimizer::KIND_NOT_SET:
      break;
  }
  throw FieldError("optimizer", "none is named", "Name one of sgd, adam, adamw.");
}

/// The job's path of "optim::SgdOptions.lr" or "optim::OptimizerOptions.group[0].match".
std::string path_of(const std::string& option, const Optimizer& optimizer) {
  const std::size_t dot = option.find('.');
  if (dot == std::string::npos) return option;  // the job's already
  const bool beside_the_kind = option.starts_with("optim::OptimizerOptions");
  const auto* kind = Optimizer::descriptor()->FindOneofByName("kind");
  const std::string parent =
      beside_the_kind
          ? "optimizer"
          : join_path("optimizer", optimizer.GetReflection()->GetOneofFieldDescriptor(optimizer, kind)->name());
  return join_path(parent, option.substr(dot + 1));
}

}  // namespace

std::unique_ptr<optim::Optimizer> make_optimizer(const Optimizer& optimizer,
                                                 const std::vector<nn::Parameter>& parameters) {
  try {
    return make(optimizer, parameters);
  } catch (const FieldError& error) {
    throw FieldError(path_of(error.path(), optimizer), error.message(), error.advice());
  }
}

}  // namespace lockstep::job
