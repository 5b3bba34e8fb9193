// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/train.h"

#include "comm/group/launch_environment.h"
#include "runtime/base/program_name.h"
#include "runtime/base/shell_word.h"
#include "runtime/data/description.h"
#include "runtime/data/make_dataset.h"
#include "runtime/job/data_options.h"
#include "runtime/job/training_options.h"
#include "runtime/step/compute_environment.h"
#include "runtime/step/replicated.h"
#include "runtime/tensor/as_error.h"
#include "runtime/tensor/memory_room.h"
#include "runtime/train/checkpoints_elsewhere.h"
#include "runtime/train/derived_steps.h"
#include "runtime/train/evaluator.h"
#include "runtime/train/loading.h"
#include "runtime/train/pictures.h"
#include "runtime/train/plan.h"
#include "runtime/train/record/progress.h"
#include "runtime/train/record/restarts.h"
#include "runtime/train/record/run_directory.h"
#include "runtime/train/restored_network.h"
#include "runtime/train/same_data.h"
#include "runtime/train/training_loop.h"

namespace lockstep::train {

namespace {

/// A job that validate refuses is refused before anything is made, once for all ranks. Returns the steps of an epoch.
/// A collective.
std::int64_t require_sound_plan(comm::World& world, const TrainOptions& options) {
  Plan planned;
  if (world.rank() == 0) {
    const PlanOptions here{.ranks = world.size(),
                           .ranks_here = comm::launch_environment().local_size,
                           .cores = cores_of_this_machine(),
                           .run_dir = options.run_dir,
                           .device = options.device};
    planned = plan(options.job, here, options.locations);
    if (options.device == kCpu) {
      require_memory(planned, options.job, options.locations, whole_memory(), here.ranks_here);
    }
  }
  step::on_rank_zero(*world.communicator(), [&] {
    require_sound(planned);
    if (!options.output.quiet) print_warnings(planned);
  });
  // A rank that sees other data is found later; until then all count as rank 0 does.
  return std::stoll(world.communicator()->all_gather_text(std::to_string(planned.steps_per_epoch)).front());
}

/// The option of `lockstep infer` that gives a run of such a job what to predict; none where no file holds its samples.
std::string input_option(const job::Dataset& data) {
  if (data.has_tokens()) return data.tokens().has_masked() ? "" : "--prompt TEXT";
  if (data.has_volumes() || data.has_image_masks()) return "--input PATH... --out FOLDER/";
  return data.has_synthetic() || data.has_spheres() || data.has_registered() ? "" : "--input PATH...";
}

/// What to do after a run that ended so, the first thing first.
std::vector<std::string> next_steps(const TrainOptions& options, ExitCode code) {
  if (code == ExitCode::kPreempted) {
    // A resume that starts anew, or from a step that was named, would do so again.
    const std::string command = "run the same command";
    return {command + (options.resume == "auto" ? "" : " with --resume auto") + " to resume"};
  }
  const std::string run = shell_word(options.run_dir.string());
  const auto command = [&](const std::string& name) { return program_name() + " " + name + " " + run; };
  std::vector<std::string> steps;
  if (options.is_command && job::evaluates(options.job.data())) steps.push_back(command("eval"));
  const std::string input = input_option(options.job.data().train());
  if (options.is_command && !input.empty()) steps.push_back(command("infer") + " " + input);
  if (steps.empty()) steps.push_back(command("inspect"));
  return steps;
}

/// Each rank tells of its own failure: that of rank 0 has the run's numbers, and another one's may explain it.
void record_failure(const TrainOptions& options, const comm::World& world, const Error& error, RunDirectory* record) {
  const std::string rank = world.size() > 1 ? "rank " + std::to_string(world.rank()) + ", " : "";
  const std::uint64_t step = *options.reached;
  const RunEnd end = end_of(error, step, rank + place_at(step), restart_count());
  if (record != nullptr) return record->fail(end);
  if (error.code() == ExitCode::kPeerLost) return;
  try {
    record_end(options.run_dir, end, options.process_start);
  } catch (const std::exception&) {
    // The failure itself is what the user has to hear of.
  }
}

}  // namespace

std::string place_at(std::uint64_t step) { return step == 0 ? "during start-up" : "in step " + std::to_string(step); }

ExitCode train(comm::World& world, const TrainOptions& given) {
  TrainOptions options = given;
  *options.reached = 0;
  try {
    const std::int64_t steps_per_epoch = require_sound_plan(world, options);
    if (options.job.train().has_epochs()) options.epochs = options.job.train().epochs();
    options.job = with_steps(std::move(options.job), steps_per_epoch);
  } catch (const Error& error) {
    if (world.rank() == 0) {
      record_early_failure(options.run_dir, error, options.process_start, options.output.json);
    }
    throw;
  }
  comm::Communicator& communicator = *world.communicator();
  look_for_checkpoints_elsewhere(communicator, options);
  std::optional<RunDirectory> record;
  step::on_rank_zero(communicator,
                     [&] { record.emplace(options, world.size(), world.transport(), world.mpi_start_time().count()); });
  std::optional<TrainingLoop> loop;
  try {
    std::optional<Progress> progress;  // ends its live line before an error is told
    std::vector<RunObserver*> observers;
    if (record) {
      progress.emplace(options.output, options.job.train().log_every());
      observers = {&*record, &*progress};
    }
    observers.insert(observers.end(), options.observers.begin(), options.observers.end());
    loop.emplace(world, options, observers);
    step::on_rank_zero(communicator, [&] {
      Checkpointer& checkpointer = loop->checkpointer();
      record->begin(loop->step(), loop->applied_steps(), loop->skipped_steps(), loop->skipped_samples(),
                    checkpointer.resumed_from(), step::to_json(checkpointer.environment()));
    });
    if (progress) progress->header(loop->facts());
    const ExitCode code = loop->run();
    if (record) {
      const bool done = code == ExitCode::kDone;
      const RunEnd end{.status = done ? RunEnd::Status::kDone : RunEnd::Status::kPreempted,
                       .code = code,
                       .step = loop->step(),
                       .restarts = restart_count()};
      const Summary summary = record->end(end, loop->weights_digest(), loop->gpu_summary());
      progress->result(end, summary, next_steps(options, code));
    }
    return code;
  } catch (const std::exception& exception) {
    record_failure(options, world, as_error(exception), record ? &*record : nullptr);
    throw;
  }
}

EvalResult evaluate(comm::World& world, const job::Job& job, const EvalOptions& options) {
  if (!job::evaluates(job.data())) {
    throw UsageError("data.eval: the job names no evaluation data",
                     "Add data { eval { ... } }, or data { eval_share: 0.1 }.");
  }
  const data::DataOptions data = data_of(job, options.saved);
  const data::DatasetPtr dataset = data::make_dataset(data, data::Split::kEval);
  Network network(job, data::as_trained(data::describe(*dataset), data::describe(data, data::Split::kTrain)),
                  options.device);
  const auto confusion = options.confusion ? EvalMetrics::Confusion::kCounted : EvalMetrics::Confusion::kNotCounted;
  comm::Communicator& communicator = *world.communicator();
  if (world.size() > 1) {
    require_same_data([&] { return std::vector{data::digest_of("data.eval", *dataset)}; }, communicator);
  }
  const RestoredFrom restored = restore_network(network, world, job, options.saved);
  Evaluator evaluator(network, network.task(), dataset, evaluation_loader(job, world, options.device), communicator);
  std::unique_ptr<Pictures> pictures;
  if (!options.pictures.empty()) {
    const auto& preparation = options.saved.preparation;
    pictures = make_pictures(network.task(), data.normalize, options.picture_count,
                             preparation ? preparation->class_names : std::vector<std::string>());
  }
  EvalResult result = *evaluator.run([] { return false; }, confusion, pictures.get());
  if (pictures) pictures->write(options.pictures, result.samples, communicator);
  result.checkpoint = restored.checkpoint;
  result.of_mean = restored.of_mean;
  return result;
}

}  // namespace lockstep::train
