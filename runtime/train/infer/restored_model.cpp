// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/infer/restored_model.h"

#include <spdlog/spdlog.h>

#include "runtime/checkpoint/checkpoint.h"
#include "runtime/data/make_dataset.h"
#include "runtime/job/model_options.h"
#include "runtime/step/saved_tensors.h"
#include "runtime/train/training_state.h"

namespace lockstep::train {

RestoredModel restored_model(const job::Job& job, const SavedModel& saved) {
  const checkpoint::Checkpoint found = find_checkpoint(saved.checkpoint);
  for (const std::string& notice : found.notices) spdlog::warn(notice);
  RestoredModel restored{.checkpoint = found.path,
                         .of_mean = !saved.raw_weights && step::has_mean(found),
                         .options = job::model_options(job.model()),
                         .task = Task(job.train(), data::describe(data_of(job, saved), data::Split::kTrain)),
                         .model = {}};
  restored.model = model_zoo::outline(restored.options, restored.task.model_input());
  restore_for(job, found, [&] { step::restore_model(*restored.model, found, weights_of(saved.raw_weights)); });
  return restored;
}

}  // namespace lockstep::train
