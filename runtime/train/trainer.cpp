// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/trainer.h"

#include <chrono>
#include <cmath>
#include <cstdio>
#include <utility>

#include "comm/ddp/digest.h"
#include "runtime/data/make_dataset.h"
#include "runtime/job/data_options.h"
#include "runtime/job/job.h"
#include "runtime/job/model_options.h"
#include "runtime/job/training_options.h"
#include "runtime/kernels/cpu/threads.h"
#include "runtime/tensor/error.h"
#include "runtime/tensor/gpu.h"
#include "runtime/train/compute_environment.h"
#include "runtime/train/replicated.h"
#include "runtime/train/run_files.h"
#include "runtime/train/training_state.h"

namespace lockstep::train {

namespace {

using Clock = std::chrono::steady_clock;

/// Null where the job has none. Throws FieldError where it does not fit what the model is trained on.
data::DatasetPtr eval_data(const job::Job& job, const data::Dataset& train) {
  if (!job.data().has_eval()) return nullptr;
  data::DatasetPtr eval = data::make_dataset(job::data_options(job.data()), data::Split::kEval);
  data::require_alike(data::describe(*eval), data::describe(train));
  return eval;
}

data::LoaderOptions loader_options(const job::Job& job, const comm::World& world, const data::SamplerState& start) {
  data::LoaderOptions options = job::loader_options(job);
  options.rank = world.rank();
  options.world_size = world.size();
  options.start = start;
  return options;
}

double base_learning_rate(const job::Optimizer& optimizer) {
  if (optimizer.has_sgd()) return optimizer.sgd().lr();
  return optimizer.has_adamw() ? optimizer.adamw().lr() : optimizer.adam().lr();
}

/// Whether and how this process answers a request to stop. Our launcher, which gets it first, answers by itself.
StopNotice stop_notice(const TrainOptions& options, const comm::World& world, const StatusBoard& board) {
  if (board.ranks() > 0 || world.rank() != 0) return {};
  const int words = options.output.json ? STDERR_FILENO : STDOUT_FILENO;
  return {.descriptor = options.output.quiet ? -1 : words, .ends_on_second = world.size() == 1};
}

std::string precision_text(const job::Amp& amp) {
  std::string text = job::OptLevel_Name(amp.opt_level()) + ", " + job::Precision_Name(amp.dtype());
  const job::LossScale& scale = amp.loss_scale();
  if (!scale.dynamic() && scale.init() == 1.0) return text;
  char number[32];
  std::snprintf(number, sizeof number, "%g", scale.init());
  return text + ", loss scale " + number + (scale.dynamic() ? " at first" : "");
}

}  // namespace

Trainer::Trainer(comm::World& world, const TrainOptions& options, std::vector<RunObserver*> observers)
    : world_(world),
      options_(options),
      observers_(std::move(observers)),
      job_(options_.job),
      board_(StatusBoard::from_environment()),
      signals_(stop_notice(options_, world_, board_)),
      environment_(environment_of_run(world, options_.device)),
      train_data_(data::make_dataset(job::data_options(job_.data()), data::Split::kTrain)),
      eval_data_(eval_data(job_, *train_data_)),
      network_(job_, *train_data_, options_.device),
      train_step_(job_, world, network_),
      schedule_(job::schedule_options(job_.schedule()), base_learning_rate(job_.optimizer()), job_.train().steps()),
      store_((options_.run_dir / "checkpoints").string()),
      uploader_(options_.device),
      readbacks_{Readback(options_.device), Readback(options_.device)} {
  board_.set(world_.rank(), RankPhase::kInit, 0);
  train_step_.faults().at(job::INIT);
  const data::SamplerState start = begin();
  loader_.emplace(train_data_, loader_options(job_, world_, start));
  // On a GPU nobody on the host knows how many steps were applied: it looks its rate up.
  if (options_.device != kCpu) network_.optimizer().set_learning_rates(schedule_.table());
  board_.set(world_.rank(), RankPhase::kInit, step_);
}

RunFacts Trainer::facts() const {
  std::uint64_t parameters = 0;
  for (const nn::Arena::Slot& slot : network_.arena().slots()) {
    parameters += static_cast<std::uint64_t>(slot.end - slot.begin);
  }
  RunFacts facts{.job = job_.name(),
                 .model = model_zoo::name_of(job::model_options(job_.model())),
                 .parameters = parameters,
                 .samples = static_cast<std::uint64_t>(train_data_->size()),
                 .sample_shape = train_data_->sample_shape().str(),
                 .classes = train_data_->classes(),
                 .eval_samples = std::nullopt,
                 .steps = job_.train().steps(),
                 .global_batch = job_.data().global_batch(),
                 .steps_per_epoch = loader_->steps_per_epoch(),
                 .ranks = world_.size(),
                 .threads = kernels::cpu::threads(),
                 .device = str(options_.device),
                 .precision = precision_text(job_.amp()),
                 .run_dir = options_.run_dir,
                 .remarks = remarks_};
  if (eval_data_) facts.eval_samples = static_cast<std::uint64_t>(eval_data_->size());
  if (options_.device != kCpu) facts.device += ", " + gpu::describe(options_.device).name;
  return facts;
}

std::string Trainer::place() const {
  return current_step_ == 0 ? "during start-up" : "in step " + std::to_string(current_step_);
}

std::uint64_t Trainer::applied_steps() { return static_cast<std::uint64_t>(network_.optimizer().applied_steps()); }

std::uint64_t Trainer::skipped_steps() const { return train_step_.scaler().state_dict().skipped_steps; }

std::string Trainer::weights_digest() const { return comm::weights_digest(network_.arena()); }

std::optional<GpuSummary> Trainer::gpu_summary() const {
  if (options_.device == kCpu) return std::nullopt;
  return gpu_use_.summary(options_.device, train_step_.graph_launches());
}

template <class Tell>
void Trainer::tell(Tell&& tell) const {
  for (RunObserver* const observer : observers_) tell(*observer);
}

data::SamplerState Trainer::begin() {
  std::string text;
  on_rank_zero(*world_.communicator(), [&] {
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
  current_step_ = step_;
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
  restore_for(job_, *found, [&] {
    require_resumable(*found, job_, network_.optimizer().name());
    restore_tensors(network_, *found, true);
  });
  network_.optimizer().set_applied_steps(static_cast<std::int64_t>(found->state.applied_steps()));
  resumed_from_ = found->path;
  if (!automatic) set_aside_later_checkpoints(options_.run_dir, found->state.step());
  remarks_.push_back("resuming from " + found->path);
  for (const job::Difference& change : job::differences(found->state.job(), job_)) {
    remarks_.push_back("  the job changed: " + change.path + ": " + change.before + " -> " + change.after);
  }
  if (found->state.step() >= job_.train().steps()) {
    remarks_.push_back("all " + std::to_string(found->state.step()) +
                       " steps are done; --set train.steps=N trains on, another --run-dir starts anew");
  }
  const std::string warning = resume_warning(found->state, environment_, world_.size());
  if (!warning.empty()) std::fprintf(stderr, "lockstep: %s\n", warning.c_str());
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
  const bool done = step_ >= steps && evaluate_at_end();
  return done ? ExitCode::kDone : ExitCode::kPreempted;
}

void Trainer::launch_step() {
  const std::uint64_t number = ++launched_;
  current_step_ = number;
  InFlight& step = in_flight_.emplace_back();
  step.waited = world_.communicator()->waited();
  step.report.step = number;
  step.readback = &readbacks_[number % readbacks_.size()];
  std::vector<data::Batch> micro_batches;
  for (std::uint32_t m = 0; m < job_.train().accumulate(); ++m) micro_batches.push_back(loader_->next());
  step.report.epoch = micro_batches.back().epoch;
  step.report.samples = micro_batches.back().step_samples;
  step.report.data_seconds = std::chrono::duration<double>(Clock::now() - step.begin).count();
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
  current_step_ = step.report.step;
  const StepOutcome outcome = step.readback->take();
  stop_requested_ = stop_requested_ || outcome.stop > 0.0f;
  const auto end = Clock::now();
  StepReport report = report_of(step, outcome);
  if (options_.device != kCpu) gpu_use_.count(step.launch);
  report.seconds = std::chrono::duration<double>(end - std::max(step.begin, last_end_)).count();
  if (const auto waited = world_.communicator()->waited(); waited && step.waited) {
    report.rank_seconds = std::chrono::duration<double>(*waited - *step.waited).count();
  }
  last_end_ = end;
  after_step(report, outcome.scale);
}

StepReport Trainer::report_of(const InFlight& step, const StepOutcome& outcome) const {
  StepReport report = step.report;
  report.skipped = outcome.verdict.found_inf != 0.0f;
  report.loss = static_cast<double>(outcome.loss);
  report.lr = schedule_.learning_rate(outcome.schedule.applied_steps - (report.skipped ? 0 : 1));
  report.loss_scale = static_cast<double>(outcome.scale.used);
  report.next_loss_scale = static_cast<double>(outcome.scale.scale);
  report.applied_steps = static_cast<std::uint64_t>(outcome.schedule.applied_steps);
  report.skipped_steps = static_cast<std::uint64_t>(outcome.scale.skipped_steps);
  if (job_.optimizer().clip_norm() > 0) report.grad_norm = static_cast<double>(outcome.grad_norm);
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
  tell([&](RunObserver& observer) { observer.step(report); });
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

void Trainer::evaluate(bool heeds_stop) {
  board_.set(world_.rank(), RankPhase::kEval, step_);
  train_step_.ddp().share_statistics();
  const auto stop = [&] { return heeds_stop && signals_.requested(); };
  const auto result = network_.evaluate(eval_data_, job_.data().eval_batch(), *world_.communicator(), stop);
  stop_requested_ = !result;
  if (!result) return;
  evaluated_step_ = step_;
  tell([&](RunObserver& observer) { observer.evaluation(step_, *result); });
}

bool Trainer::evaluate_at_end() {
  if (!eval_data_ || (step_ > 0 && evaluated_step_ == step_)) return true;
  // Who asked during the last step asked for nothing that is left but this: the run ends as a whole one.
  evaluate(!any_rank_was_told_to_stop());
  return evaluated_step_ == step_;
}

bool Trainer::any_rank_was_told_to_stop() {
  const Tensor told = Tensor::from<float>({signals_.requested() ? 1.0f : 0.0f}, {1});
  world_.communicator()->all_reduce(told, comm::ReduceOp::kMax, 1.0f, Stream::calling_thread());
  return told.as<float>()[0] > 0.0f;
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
  *state.mutable_scaler() = to_message(train_step_.scaler().state_dict());
  state.mutable_schedule()->set_applied_steps(state.applied_steps());
  state.mutable_schedule()->set_last_learning_rate(static_cast<float>(network_.optimizer().learning_rate()));
  *state.mutable_bucket_plan() =
      to_message(comm::describe_plan(train_step_.ddp().reducer().buckets(), network_.arena()));
  *state.mutable_job() = job_;
  state.set_job_hash(job::hash(job_));
  state.set_world_size(static_cast<std::uint32_t>(world_.size()));
  state.set_optimizer(network_.optimizer().name());
  state.set_weights_digest(comm::weights_digest(network_.arena()));
  *state.mutable_environment() = environment_;
  return state;
}

void Trainer::save() {
  // What the ranks do not agree on must not become what they resume from.
  if (job_.comm().digest_every() > 0 && compared_step_ != step_) compare_weights();
  board_.set(world_.rank(), RankPhase::kSave, step_);
  train_step_.faults().at(job::SAVE);
  const auto begin = Clock::now();
  std::string path;
  on_rank_zero(*world_.communicator(), [&] {
    tell([this](RunObserver& observer) { observer.saving(step_); });
    path = store_.save(state(), host_copies(state_tensors(network_)));
    prune();
  });
  saved_step_ = step_;
  const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  tell([&](RunObserver& observer) { observer.saved(step_, path, seconds); });
}

void Trainer::prune() {
  try {
    store_.prune(job_.checkpoint().keep());
  } catch (const StorageError& error) {
    // The new one is safe; an old one that cannot be deleted is no reason to stop.
    const std::string remark = std::string("old checkpoints stay: ") + error.what();
    if (!prune_failed_) tell([&](RunObserver& observer) { observer.note(remark); });
    prune_failed_ = true;
  }
}

}  // namespace lockstep::train
