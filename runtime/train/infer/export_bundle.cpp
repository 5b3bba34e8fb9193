// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/infer/export_bundle.h"

#include <spdlog/spdlog.h>

#include <map>
#include <nlohmann/json.hpp>

#include "runtime/base/error.h"
#include "runtime/checkpoint/bundle.h"
#include "runtime/checkpoint/checkpoint.h"
#include "runtime/job/job.h"
#include "runtime/job/model_options.h"
#include "runtime/step/saved_preparation.h"
#include "runtime/step/saved_tensors.h"
#include "runtime/train/infer/prediction_file.h"
#include "runtime/train/training_state.h"

namespace lockstep::train {

namespace {

/// For people and other tools; nothing here is read back.
std::string description_of(const job::Job& job, const checkpoint::TrainingState& state,
                           const data::Preparation& preparation) {
  nlohmann::ordered_json text{{"lockstep_version", state.lockstep_version()},
                              {"job", job.name()},
                              {"model", job::model_kind(job.model())},
                              {"step", state.step()},
                              {"input", preparation.trained.inputs_text()}};
  if (preparation.trained.classes > 0) text["classes"] = preparation.trained.classes;
  if (!preparation.class_names.empty()) text["class_names"] = preparation.class_names;
  if (state.has_best()) text["best"] = {{"metric", state.best().metric()}, {"value", state.best().best()}};
  text["job_text"] = job::to_text(job);
  return text.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace

BundleResult export_bundle(const job::Job& job, const SavedModel& saved, const std::filesystem::path& out) {
  if (!checkpoint::is_bundle(out)) throw UsageError("--bundle " + out.string() + ": the name must end in .lockstep");
  require_writable(out);
  const checkpoint::Checkpoint found = find_checkpoint(saved.checkpoint);
  for (const std::string& notice : found.notices) spdlog::warn(notice);
  checkpoint::TrainingState state;
  state.set_lockstep_version(found.state.lockstep_version());
  state.set_step(found.state.step());
  state.set_format(found.state.format());
  *state.mutable_job() = job;
  if (found.state.has_best()) *state.mutable_best() = found.state.best();
  const data::Preparation preparation = *known_data_of(job, saved).prepared;
  step::save_preparation(preparation, state);
  const auto weights = step::weights_of(found, weights_of(saved.raw_weights));
  checkpoint::write_bundle(out, state, weights, description_of(job, state, preparation));
  return {.checkpoint = found.path,
          .of_mean = !saved.raw_weights && step::has_mean(found),
          .bytes = static_cast<std::int64_t>(std::filesystem::file_size(out))};
}

}  // namespace lockstep::train
