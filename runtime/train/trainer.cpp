// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/trainer.h"

#include <chrono>
#include <cmath>
#include <cstdio>

#include "comm/ddp/digest.h"
#include "runtime/data/make_dataset.h"
#include "runtime/job/job.h"
#include "runtime/tensor/error.h"
#include "runtime/tensor/gpu.h"
#include "runtime/train/replicated.h"
#include "runtime/train/summary.h"
#include "runtime/train/training_state.h"

namespace lockstep::train {

namespace {

using Clock = std::chrono::steady_clock;

/// Null where the job has none. Throws UsageError where it does not fit what the model is trained on.
data::DatasetPtr eval_data(const job::Job& job, const data::Dataset& train) {
  if (!job.data().has_eval()) return nullptr;
  data::DatasetPtr eval = data::make_dataset(job.data(), data::Split::kEval);
  const auto require = [](bool fits, const std::string& what, const std::string& found, const std::string& expected) {
    if (!fits) throw UsageError("data.eval: " + what + " " + found + ", but those of data.train " + expected);
  };
  require(eval->sample_shape() == train.sample_shape(), "its samples are", eval->sample_shape().str(),
          train.sample_shape().str());
  require((eval->classes() > 0) == (train.classes() > 0) && eval->classes() <= train.classes(), "its classes are",
          std::to_string(eval->classes()), std::to_string(train.classes()));
  require(eval->target_shape() == train.target_shape(), "its targets are", eval->target_shape().str(),
          train.target_shape().str());
  return eval;
}

data::LoaderOptions loader_options(const job::Job& job, const comm::World& world, const data::SamplerState& start) {
  data::LoaderOptions options;
  options.global_batch = job.data().global_batch();
  options.accumulate = job.train().accumulate();
  options.rank = world.rank();
  options.world_size = world.size();
  options.seed = job.seed();
  options.shuffle = job.data().shuffle();
  options.drop_last = job.data().drop_last();
  options.prefetch = job.data().prefetch();
  options.start = start;
  return options;
}

double base_learning_rate(const job::Optimizer& optimizer) {
  if (optimizer.has_sgd()) return optimizer.sgd().lr();
  return optimizer.has_adamw() ? optimizer.adamw().lr() : optimizer.adam().lr();
}

}  // namespace

Trainer::Trainer(comm::World& world, const TrainOptions& options)
    : world_(world),
      options_(options),
      job_(options_.job),
      board_(StatusBoard::from_environment()),
      train_data_(data::make_dataset(job_.data(), data::Split::kTrain)),
      eval_data_(eval_data(job_, *train_data_)),
      network_(job_, *train_data_, options_.device),
      train_step_(job_, world, network_),
      schedule_(job_.schedule(), base_learning_rate(job_.optimizer()), job_.train().steps()),
      store_((options_.run_dir / "checkpoints").string()),
      uploader_(options_.device),
      readbacks_{Readback(options_.device), Readback(options_.device)} {
  board_.set(world_.rank(), RankPhase::kInit, 0);
  train_step_.faults().at(job::INIT);
  const data::SamplerState start = begin();
  loader_.emplace(train_data_, loader_options(job_, world_, start));
  on_rank_zero(*world_.communicator(), [this] { metrics_.emplace(options_.run_dir, step_); });
  // On a GPU nobody on the host knows how many steps were applied: it looks its rate up.
  if (options_.device != kCpu) network_.optimizer().set_learning_rates(schedule_.table());
  progress_.emplace(job_.train().steps(), job_.train().log_every(), is_root());
  if (metrics_ && step_ > 0) metrics_->event("resumed", step_, resumed_from_);
  if (step_ > 0 && step_ >= job_.train().steps()) {
    progress_->note("all " + std::to_string(step_) +
                    " steps are done; --set train.steps=N trains on, another --run-dir "
                    "starts anew");
  }
}

data::SamplerState Trainer::begin() {
  std::string text;
  on_rank_zero(*world_.communicator(), [&] {
    lock_.emplace(options_.run_dir);
    if (const auto saved = restore()) text = saved->SerializeAsString();
    write_text(options_.run_dir / "job.pbtxt", job::to_text(job_));
  });
  text = world_.communicator()->broadcast_text(text, 0);
  if (text.empty()) return {};
  checkpoint::TrainingState saved;
  saved.ParseFromString(text);
  train_step_.ddp().broadcast_weights();
  broadcast_optimizer(network_.optimizer(), *world_.communicator());
  train_step_.scaler().load_state_dict(scaler_state(saved, job_));
  step_ = saved.step();
  launched_ = step_;
  saved_step_ = step_;
  return {saved.sampler().epoch(), static_cast<std::int64_t>(saved.sampler().cursor())};
}

std::optional<checkpoint::TrainingState> Trainer::restore() {
  if (options_.resume == "never") {
    set_aside_earlier_run(options_.run_dir);
    return std::nullopt;
  }
  const bool automatic = options_.resume == "auto";
  const std::optional<checkpoint::Checkpoint> found = automatic ? store_.latest() : find_checkpoint(options_.resume);
  if (!found) return std::nullopt;
  for (const std::string& notice : found->notices) std::fprintf(stderr, "lockstep: %s\n", notice.c_str());
  require_resumable(*found, job_, network_.optimizer().name());
  restore_tensors(network_, *found, true);
  network_.optimizer().set_applied_steps(static_cast<std::int64_t>(found->state.applied_steps()));
  resumed_from_ = found->path;
  if (!automatic) set_aside_later_checkpoints(options_.run_dir, found->state.step());
  std::printf("resuming from %s\n", found->path.c_str());
  for (const std::string& line : job::differences(found->state.job(), job_)) {
    std::printf("  the job changed: %s\n", line.c_str());
  }
  return found->state;
}

bool Trainer::due(std::uint64_t step) const {
  const auto every = [step](std::uint32_t steps) { return steps > 0 && step % steps == 0; };
  return step == job_.train().steps() || every(job_.train().eval_every()) || every(job_.checkpoint().every_steps()) ||
         every(job_.comm().digest_every());
}

ExitCode Trainer::run() {
  const std::uint64_t steps = job_.train().steps();
  const std::uint32_t eval_every = job_.train().eval_every();
  const std::uint32_t save_every = job_.checkpoint().every_steps();
  // A GPU gets its next step before the one that it works on is read; every rank reads as many steps late, so that all
  // stop behind the same one.
  const std::size_t ahead = options_.device == kCpu ? 0 : 1;
  while (launched_ < steps && !stop_requested_) {
    launch_step();
    while (in_flight_.size() > ahead) finish_step();
    if (!due(launched_)) continue;
    finish_steps();
    if (step_ == steps || stop_requested_) break;
    // Saved first: an evaluation may take long.
    if (save_every > 0 && step_ % save_every == 0) save();
    if (eval_every > 0 && step_ % eval_every == 0) evaluate();
  }
  finish_steps();
  if (step_ > saved_step_) save();
  if (eval_data_ && !stop_requested_ && !(last_eval_ && last_eval_step_ == step_)) evaluate();
  if (stop_requested_) {
    if (metrics_) metrics_->event("preempted", step_, "asked to stop; saved");
    // A resume that starts anew, or from a step that was named, would do so again.
    const std::string how =
        options_.resume == "auto" ? "run the same command" : "run the same command with --resume auto";
    progress_->note("stopped after step " + std::to_string(step_) + ", as asked; " + how + " to resume");
    board_.set(world_.rank(), RankPhase::kDone, step_);
    return ExitCode::kPreempted;
  }
  write_summary();
  board_.set(world_.rank(), RankPhase::kDone, step_);
  return ExitCode::kDone;
}

void Trainer::launch_step() {
  const std::uint64_t number = ++launched_;
  InFlight& step = in_flight_.emplace_back();
  step.report.step = number;
  step.readback = &readbacks_[number % readbacks_.size()];
  std::vector<data::Batch> micro_batches;
  for (std::uint32_t m = 0; m < job_.train().accumulate(); ++m) micro_batches.push_back(loader_->next());
  step.report.epoch = micro_batches.back().epoch;
  step.report.samples = micro_batches.back().step_samples;
  const LaunchTimer timer;
  optim::Optimizer& optimizer = network_.optimizer();
  if (options_.device == kCpu) optimizer.set_learning_rate(schedule_.learning_rate(optimizer.applied_steps()));
  train_step_.run(uploader_.upload(number, std::move(micro_batches), signals_.requested()));
  step.readback->request(train_step_.outcome());
  step.launch = timer.stop();
}

void Trainer::finish_steps() {
  while (!in_flight_.empty()) finish_step();
}

void Trainer::finish_step() {
  const InFlight step = std::move(in_flight_.front());
  in_flight_.pop_front();
  const StepOutcome outcome = step.readback->take();
  stop_requested_ = stop_requested_ || outcome.stop > 0.0f;
  const auto end = Clock::now();
  StepReport report = report_of(step, outcome);
  if (options_.device != kCpu) gpu_use_.count(step.launch);
  report.seconds = std::chrono::duration<double>(end - std::max(step.begin, last_end_)).count();
  last_end_ = end;
  after_step(report, outcome.scale);
}

StepReport Trainer::report_of(const InFlight& step, const StepOutcome& outcome) const {
  StepReport report = step.report;
  report.skipped = outcome.verdict.found_inf != 0.0f;
  report.loss = static_cast<double>(outcome.loss);
  report.lr = schedule_.learning_rate(outcome.schedule.applied_steps - (report.skipped ? 0 : 1));
  report.loss_scale = static_cast<double>(outcome.scale.used);
  if (report.skipped) {
    const auto slot = static_cast<std::size_t>(outcome.verdict.slot);
    report.parameter = network_.arena().slots().at(slot).parameter.name;
    report.rank = outcome.verdict.rank;
  }
  return report;
}

void Trainer::require_finite(const StepReport& report) const {
  // With a dynamic scale a bad loss may be an overflow that a lower scale cures; without, nothing will.
  if (std::isfinite(report.loss) || train_step_.scaler().dynamic()) return;
  throw NumericsError("the loss is " + std::to_string(report.loss) + " at step " + std::to_string(report.step) +
                          (report.skipped ? "; the first bad gradient is that of " + report.parameter +
                                                (report.rank >= 0 ? " on rank " + std::to_string(report.rank) : "")
                                          : ""),
                      std::string("Lower the learning rate, clip the gradients (optimizer.clip_norm), or look at the "
                                  "data. ") +
                          (report.skipped ? "The weights are those before this step."
                                          : "This step was applied: go on "
                                            "from an earlier checkpoint."));
}

void Trainer::after_step(const StepReport& report, const kernels::LossScaleState& scale) {
  step_ = report.step;
  last_loss_ = report.loss;
  if (step_ms_.empty()) {
    time_to_first_step_ms_ =
        std::chrono::duration<double, std::milli>(std::chrono::system_clock::now() - options_.process_start).count();
  } else {
    samples_ += static_cast<double>(report.samples);
    seconds_ += report.seconds;
  }
  step_ms_.push_back(static_cast<float>(report.seconds * 1e3));
  if (metrics_) {
    metrics_->step(report);
    if (report.skipped || !std::isfinite(report.loss)) metrics_->flush();
  }
  progress_->step(report);
  // What ends the run stands in its metrics before.
  train_step_.scaler().require_progress(scale, report.parameter, report.rank);
  require_finite(report);
  const std::uint32_t digest_every = job_.comm().digest_every();
  if (digest_every > 0 && step_ % digest_every == 0) compare_weights();
}

void Trainer::compare_weights() {
  train_step_.ddp().share_statistics();
  comm::require_equal_weights(network_.arena(), network_.optimizer().state(), *world_.communicator());
  compared_step_ = step_;
}

void Trainer::evaluate() {
  board_.set(world_.rank(), RankPhase::kEval, step_);
  train_step_.ddp().share_statistics();
  const auto stop = [this] { return signals_.requested(); };
  const auto result = network_.evaluate(eval_data_, job_.data().eval_batch(), *world_.communicator(), stop);
  stop_requested_ = !result;
  if (!result) return;
  last_eval_ = result;
  last_eval_step_ = step_;
  if (metrics_) metrics_->evaluation(step_, *last_eval_);
  progress_->evaluation(step_, *last_eval_);
}

checkpoint::TrainingState Trainer::state() {
  checkpoint::TrainingState state;
  state.set_lockstep_version(LOCKSTEP_VERSION);
  state.set_step(step_);
  state.set_applied_steps(static_cast<std::uint64_t>(network_.optimizer().applied_steps()));
  const data::SamplerState sampler = loader_->state();
  state.set_epoch(sampler.epoch);
  state.mutable_sampler()->set_seed(job_.seed());
  state.mutable_sampler()->set_epoch(sampler.epoch);
  state.mutable_sampler()->set_cursor(static_cast<std::uint64_t>(sampler.cursor));
  state.set_rng_seed(job_.seed());
  *state.mutable_scaler() = train_step_.scaler().state_dict();
  state.mutable_schedule()->set_applied_steps(state.applied_steps());
  state.mutable_schedule()->set_last_learning_rate(static_cast<float>(network_.optimizer().learning_rate()));
  *state.mutable_bucket_plan() = comm::describe_plan(train_step_.ddp().reducer().buckets(), network_.arena());
  *state.mutable_job() = job_;
  state.set_job_hash(job::hash(job_));
  state.set_world_size(static_cast<std::uint32_t>(world_.size()));
  state.set_optimizer(network_.optimizer().name());
  state.set_weights_digest(comm::weights_digest(network_.arena()));
  return state;
}

void Trainer::save() {
  // What the ranks do not agree on must not become what they resume from.
  if (job_.comm().digest_every() > 0 && compared_step_ != step_) compare_weights();
  board_.set(world_.rank(), RankPhase::kSave, step_);
  train_step_.faults().at(job::SAVE);
  on_rank_zero(*world_.communicator(), [this] {
    metrics_->flush();
    store_.save(state(), host_copies(state_tensors(network_)));
    prune();
  });
  saved_step_ = step_;
}

void Trainer::prune() {
  try {
    store_.prune(job_.checkpoint().keep());
  } catch (const StorageError& error) {
    // The new one is safe; an old one that cannot be deleted is no reason to stop.
    if (!prune_failed_) std::fprintf(stderr, "lockstep: old checkpoints stay: %s\n", error.what());
    prune_failed_ = true;
  }
}

void Trainer::write_summary() {
  if (!is_root()) return;
  const std::filesystem::path path = options_.run_dir / "summary.json";
  const std::string digest = comm::weights_digest(network_.arena());
  // A run that had been finished before is not described by one that had nothing left to do.
  if (step_ms_.empty() && describes(path, step_, digest)) return;
  Summary summary;
  summary.world_size = world_.size();
  summary.device = str(options_.device);
  summary.precision = job::Precision_Name(job_.amp().dtype());
  summary.steps = step_;
  summary.skipped_steps = train_step_.scaler().state_dict().skipped_steps();
  summary.applied_steps = static_cast<std::uint64_t>(network_.optimizer().applied_steps());
  summary.final_loss = step_ms_.empty() ? metrics_->last_loss() : last_loss_;
  summary.eval = last_eval_;
  summary.samples_per_s = seconds_ > 0 ? samples_ / seconds_ : 0.0;
  summary.step_ms_p50 = median(step_ms_);
  summary.time_to_first_step_ms = time_to_first_step_ms_;
  summary.mpi_init_ms = world_.mpi_start_time().count();
  summary.weights_digest = digest;
  if (options_.device != kCpu) summary.gpu = gpu_use_.summary(options_.device, train_step_.graph_launches());
  write_text(path, to_json(summary));
  metrics_->flush();
}

ExitCode train(comm::World& world, const TrainOptions& options) { return Trainer(world, options).run(); }

EvalResult evaluate(comm::World& world, const job::Job& job, const std::filesystem::path& checkpoint, Device device) {
  if (!job.data().has_eval())
    throw UsageError("data.eval: the job names no evaluation data", "Add data { eval { ... } }.");
  const data::DatasetPtr dataset = data::make_dataset(job.data(), data::Split::kEval);
  Network network(job, *dataset, device);
  comm::Communicator& communicator = *world.communicator();
  std::string path;
  on_rank_zero(communicator, [&] {
    const checkpoint::Checkpoint found = find_checkpoint(checkpoint);
    for (const std::string& notice : found.notices) std::fprintf(stderr, "lockstep: %s\n", notice.c_str());
    restore_tensors(network, found, false);
    path = found.path;
  });
  const comm::DistributedDataParallel ddp(network.model(), world, job.comm());  // rank 0's weights on every rank
  EvalResult result = *network.evaluate(dataset, job.data().eval_batch(), communicator, [] { return false; });
  result.checkpoint = path;
  return result;
}

}  // namespace lockstep::train
