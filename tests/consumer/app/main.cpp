// SPDX-License-Identifier: Apache-2.0
// A program of its own that trains with Lockstep's pieces: the loop of docs/cpp.md, on synthetic data. Ends with 0 when
// the loss has fallen.
#include <cstdio>

#include "amp/grad_scaler/grad_scaler.h"
#include "amp/grad_scaler/opt_level.h"
#include "comm/ddp/distributed_data_parallel.h"
#include "model_zoo/build.h"
#include "runtime/data/loader.h"
#include "runtime/data/make_dataset.h"
#include "runtime/job/data_options.h"
#include "runtime/job/job.h"
#include "runtime/job/model_options.h"
#include "runtime/ops/ops.h"
#include "runtime/optim/sgd.h"
#include "runtime/step/training_step.h"
#include "runtime/tensor/error.h"

using namespace lockstep;

namespace {

constexpr const char* kJob = R"(
  name: "embedded" seed: 1
  model { mlp { hidden: 32 } }
  data { global_batch: 16 train { synthetic { samples: 64 shape: 8 classes: 3 } } }
  amp { opt_level: O1 dtype: FP16 }
  optimizer { sgd { lr: 0.1 momentum: 0.9 } }
  train { steps: 40 }
)";

double train() {
  const job::Job job = job::load_text(kJob, "embedded.pbtxt", {}, ".");
  const data::DatasetPtr dataset = data::make_dataset(job::data_options(job.data()), data::Split::kTrain);

  const auto world = comm::World::from_environment();
  const auto model =
      model_zoo::build(job::model_options(job.model()), {dataset->sample_shape(), dataset->classes()}, job.seed());
  const auto optimizer = optim::sgd(model->parameters(), {.lr = 0.1, .momentum = 0.9});
  amp::initialize(*model, *optimizer, {.opt_level = amp::OptLevel::kO1, .dtype = DType::kFloat16});
  comm::DistributedDataParallel ddp(*model, world);
  amp::GradScaler scaler(world);

  data::LoaderOptions options;
  options.global_batch = job.data().global_batch();
  options.rank = world.rank();
  options.world_size = world.size();
  options.seed = job.seed();
  data::Loader loader(dataset, options);

  step::TrainingStep training(ddp, *optimizer, scaler, ops::cross_entropy);
  double first = 0, last = 0;
  for (std::uint32_t step = 0; step < job.train().steps(); ++step) {
    training.run(loader.next());
    last = static_cast<double>(training.outcome().loss);
    if (step == 0) first = last;
  }
  std::printf("loss %.3f -> %.3f\n", first, last);
  return last / first;
}

}  // namespace

int main() {
  try {
    return train() < 0.5 ? 0 : 1;
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n%s\n", error.what(), error.advice().c_str());
    return static_cast<int>(error.code());
  }
}
