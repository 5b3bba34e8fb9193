// SPDX-License-Identifier: Apache-2.0
#include "runtime/job/make_optimizer.h"

#include "runtime/job/training_options.h"

namespace lockstep::job {

std::unique_ptr<optim::Optimizer> make_optimizer(const Optimizer& optimizer,
                                                 const std::vector<nn::Parameter>& parameters) {
  return optim::make(parameters, optimizer_kind(optimizer), optimizer_options(optimizer));
}

}  // namespace lockstep::job
