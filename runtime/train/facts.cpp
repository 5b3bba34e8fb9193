// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/facts.h"

#include <cstdio>
#include <utility>

#include "model_zoo/build.h"
#include "runtime/data/description.h"
#include "runtime/job/model_options.h"
#include "runtime/kernels/cpu/threads.h"
#include "runtime/tensor/gpu.h"

namespace lockstep::train {

namespace {

std::string precision_text(const job::Amp& amp) {
  std::string text = job::OptLevel_Name(amp.opt_level()) + ", " + job::Precision_Name(amp.dtype());
  const job::LossScale& scale = amp.loss_scale();
  if (!scale.dynamic() && scale.init() == 1.0) return text;
  char number[32];
  std::snprintf(number, sizeof number, "%g", scale.init());
  return text + ", loss scale " + number + (scale.dynamic() ? " at first" : "");
}

}  // namespace

RunFacts facts_of(const TrainOptions& options, const Network& network, const TrainingData& data, int ranks,
                  std::vector<std::string> remarks) {
  const job::Job& job = options.job;
  std::uint64_t parameters = 0;
  for (const nn::Arena::Slot& slot : network.arena().slots()) {
    parameters += static_cast<std::uint64_t>(slot.end - slot.begin);
  }
  RunFacts facts{.job = job.name(),
                 .model = model_zoo::name_of(job::model_options(job.model())),
                 .parameters = parameters,
                 .samples = static_cast<std::uint64_t>(data.train()->size()),
                 .sample_shape = data::describe(*data.train()).inputs_text(),
                 .classes = data.train()->classes(),
                 .eval_samples = std::nullopt,
                 .steps = job.train().steps(),
                 .global_batch = job.data().global_batch(),
                 .steps_per_epoch = data.steps_per_epoch(),
                 .ranks = ranks,
                 .threads = kernels::cpu::threads(),
                 .device = str(options.device),
                 .precision = precision_text(job.amp()),
                 .run_dir = options.run_dir,
                 .remarks = std::move(remarks)};
  if (data.eval()) facts.eval_samples = static_cast<std::uint64_t>(data.eval()->size());
  if (options.device != kCpu) facts.device += ", " + gpu::describe(options.device).name;
  return facts;
}

}  // namespace lockstep::train
