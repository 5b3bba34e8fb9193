// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "amp/grad_scaler/grad_scaler.h"
#include "comm/ddp/distributed_data_parallel.h"
#include "runtime/data/data_digest.h"
#include "runtime/optim/optimizer.h"
#include "runtime/optim/weight_mean.h"

namespace lockstep::step {

template <class T>
struct Named {
  std::string name;
  T& object;
};

/// The models, optimizers and scalers of a loop. Names tell several of a kind apart; one alone needs no name.
struct LoopParts {
  std::vector<Named<comm::DistributedDataParallel>> models;
  std::vector<Named<optim::Optimizer>> optimizers = {};
  std::vector<Named<amp::GradScaler>> scalers = {};
  std::vector<Named<optim::WeightMean>> means = {};
  /// The digests of rank 0's data: data::digest_of(). A checkpoint keeps them, and a loop that goes on with other data
  /// is warned. Empty: no digest is kept, and nothing is warned of.
  std::vector<data::DataDigest> data = {};
};

/// Throws UsageError where there is no model, where several of a kind have one name or one has none, for a name with a
/// '/', and for an optimizer with a parameter, or a mean, of none of the models.
void require_parts(const LoopParts& parts);

}  // namespace lockstep::step
