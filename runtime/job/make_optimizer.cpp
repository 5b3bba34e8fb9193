// SPDX-License-Identifier: Apache-2.0
#include "runtime/job/make_optimizer.h"

#include "configs/job.pb.h"
#include "runtime/base/error.h"
#include "runtime/job/training_options.h"
#include "runtime/optim/adagrad.h"
#include "runtime/optim/adam.h"
#include "runtime/optim/lamb.h"
#include "runtime/optim/lars.h"
#include "runtime/optim/novograd.h"
#include "runtime/optim/sgd.h"

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
    case Optimizer::kAdagrad:
      return optim::adagrad(parameters, adagrad_options(optimizer.adagrad()), more);
    case Optimizer::kLamb:
      return optim::lamb(parameters, lamb_options(optimizer.lamb()), more);
    case Optimizer::kNovograd:
      return optim::novograd(parameters, novograd_options(optimizer.novograd()), more);
    case Optimizer::kLars:
      return optim::lars(parameters, lars_options(optimizer.lars()), more);
    case Optimizer::KIND_NOT_SET:
      break;
  }
  throw FieldError("optimizer", "none is named", "Name one of sgd, adam, adamw, adagrad, lamb, novograd, lars.");
}

}  // namespace lockstep::job
