// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "amp/grad_scaler/amp_options.h"
#include "amp/grad_scaler/grad_scaler_options.h"
#include "comm/ddp/ddp_options.h"
#include "runtime/base/registered.h"
#include "runtime/nn/parameter.h"
#include "runtime/optim/any_optimizer.h"
#include "runtime/optim/optimizer.h"
#include "runtime/optim/schedule.h"
#include "runtime/optim/weight_mean.h"

namespace lockstep::job {

class Amp;
class Comm;
class Ema;
class LossScale;
class Optimizer;
class Schedule;
class Train;

// The options of the core, from a job's messages. An option has its field's name, and its default where the field
// has no value; nothing is checked here, but where options are used.

amp::AmpOptions amp_options(const Amp& amp);
amp::GradScalerOptions grad_scaler_options(const LossScale& scale);
comm::DdpOptions ddp_options(const Comm& comm);
optim::WeightMeanOptions weight_mean_options(const Ema& ema);
/// The loss of the program's own, where the job names one.
std::optional<RegisteredOptions> registered_loss(const Train& train);
/// A constant rate where the schedule names none.
optim::ScheduleOptions schedule_options(const Schedule& schedule);

/// Throws FieldError where the job names none.
optim::AnyOptions optimizer_kind(const Optimizer& optimizer);
/// The kind's; 0 where none is named.
double learning_rate_of(const Optimizer& optimizer);
/// The fields beside the kind.
optim::OptimizerOptions optimizer_options(const Optimizer& optimizer);

/// The optimizer that the job names, for these parameters. Throws FieldError with the job's field, "optimizer.sgd.lr",
/// for an option out of range, a group that matches no parameter, and where no kind is named.
std::unique_ptr<optim::Optimizer> make_optimizer(const Optimizer& optimizer,
                                                 const std::vector<nn::Parameter>& parameters);

}  // namespace lockstep::job
