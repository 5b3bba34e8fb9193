// SPDX-License-Identifier: Apache-2.0
#include "runtime/job/make_optimizer.h"

#include "runtime/job/training_options.h"
#include "runtime/optim/adam.h"
#include "runtime/optim/sgd.h"
#include "runtime/tensor/error.h"

namespace lockstep::job {

std::unique_ptr<optim::Optimizer> make_optimizer(const Optimizer& optimizer,
                                                 const std::vector<nn::Parameter>& parameters) {
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

}  // namespace lockstep::job
