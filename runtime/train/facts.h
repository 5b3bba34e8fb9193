// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "runtime/train/network.h"
#include "runtime/train/record/run_facts.h"
#include "runtime/train/record/train_options.h"
#include "runtime/train/training_data.h"

namespace lockstep::train {

/// The facts of a run of several `ranks`. `remarks` as RunFacts has them.
RunFacts facts_of(const TrainOptions& options, const Network& network, const TrainingData& data, int ranks,
                  std::vector<std::string> remarks);

}  // namespace lockstep::train
