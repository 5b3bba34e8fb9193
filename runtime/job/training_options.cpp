// SPDX-License-Identifier: Apache-2.0
#include "runtime/job/training_options.h"

#include "configs/job.pb.h"
#include "runtime/job/message_options.h"

namespace lockstep::job {

amp::AmpOptions amp_options(const Amp& amp) { return options_of<amp::AmpOptions>(amp); }

amp::GradScalerOptions grad_scaler_options(const LossScale& scale) { return options_of<amp::GradScalerOptions>(scale); }

comm::DdpOptions ddp_options(const Comm& comm) { return options_of<comm::DdpOptions>(comm); }

optim::WeightMeanOptions weight_mean_options(const Ema& ema) { return options_of<optim::WeightMeanOptions>(ema); }

std::optional<RegisteredOptions> registered_loss(const Train& train) {
  if (!train.has_registered_loss()) return std::nullopt;
  return options_of<RegisteredOptions>(train.registered_loss());
}

optim::ScheduleOptions schedule_options(const Schedule& schedule) {
  if (kind_of(schedule) == nullptr) return {};
  return kind_options_of<optim::ScheduleOptions>(schedule, "schedule");
}

optim::AnyOptions optimizer_kind(const Optimizer& optimizer) {
  return kind_options_of<optim::AnyOptions>(optimizer, "optimizer");
}

double learning_rate_of(const Optimizer& optimizer) {
  if (kind_of(optimizer) == nullptr) return 0;
  return std::visit([](const auto& kind) { return kind.lr; }, optimizer_kind(optimizer));
}

optim::OptimizerOptions optimizer_options(const Optimizer& optimizer) {
  return options_of<optim::OptimizerOptions>(optimizer);
}

std::unique_ptr<optim::Optimizer> make_optimizer(const Optimizer& optimizer,
                                                 const std::vector<nn::Parameter>& parameters) {
  return optim::make(parameters, optimizer_kind(optimizer), optimizer_options(optimizer));
}

}  // namespace lockstep::job
