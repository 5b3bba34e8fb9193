// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/infer/restored_model.h"

#include <spdlog/spdlog.h>

#include "runtime/checkpoint/checkpoint.h"
#include "runtime/data/make_dataset.h"
#include "runtime/job/data_options.h"
#include "runtime/job/model_options.h"
#include "runtime/step/saved_tensors.h"
#include "runtime/train/training_state.h"

namespace lockstep::train {

RestoredModel restored_model(const job::Job& job, const std::filesystem::path& checkpoint, bool raw_weights) {
  const checkpoint::Checkpoint saved = find_checkpoint(checkpoint);
  for (const std::string& notice : saved.notices) spdlog::warn(notice);
  RestoredModel restored{.checkpoint = saved.path,
                         .of_mean = !raw_weights && step::has_mean(saved),
                         .options = job::model_options(job.model()),
                         .task = Task(job.train(), data::describe(job::data_options(job.data()), data::Split::kTrain)),
                         .model = {}};
  restored.model = model_zoo::outline(restored.options, restored.task.model_input());
  restore_for(job, saved, [&] { step::restore_model(*restored.model, saved, weights_of(raw_weights)); });
  return restored;
}

}  // namespace lockstep::train
