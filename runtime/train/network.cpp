// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/network.h"

#include "amp/grad_scaler/opt_level.h"
#include "model_zoo/build.h"
#include "runtime/job/job.h"
#include "runtime/job/model_options.h"
#include "runtime/job/training_options.h"

namespace lockstep::train {

std::unique_ptr<nn::Module> build_model(const job::Job& job, const Task& task) {
  return model_zoo::build(job::model_options(job.model()), task.model_input(), job.seed());
}

Network::Network(const job::Job& job, const data::Description& data, Device device)
    : device_(device), task_(job.train(), data, device), model_(build_model(job, task_)) {
  optimizer_ = job::make_optimizer(job.optimizer(), model_->parameters());
  amp::initialize(*model_, *optimizer_, job::amp_options(job.amp()), device);
}

}  // namespace lockstep::train
