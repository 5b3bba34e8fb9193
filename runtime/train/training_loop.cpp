// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/training_loop.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "comm/ddp/digest.h"
#include "runtime/base/error.h"
#include "runtime/base/files/whole_file.h"
#include "runtime/base/host_name.h"
#include "runtime/job/data_options.h"
#include "runtime/train/facts.h"
#include "runtime/train/loading.h"
#include "runtime/train/over_ranks.h"
#include "runtime/train/same_data.h"

namespace lockstep::train {

namespace {

/// Whether and how this process answers a request to stop. Our launcher, which gets it first, answers by itself.
StopNotice stop_notice(const TrainOptions& options, const comm::World& world, const RankStatus& status) {
  if (status.is_read() || world.rank() != 0) return {};
  const int words = options.output.json ? STDERR_FILENO : STDOUT_FILENO;
  return {.descriptor = options.output.quiet ? -1 : words, .ends_on_second = world.size() == 1};
}

std::unique_ptr<StepTrace> trace_of(const TrainOptions& options, comm::World& world) {
  if (!options.trace) return nullptr;
  const std::uint32_t steps = options.job.train().steps();
  if (options.trace->from > steps) {
    throw UsageError(
        "--trace begins with step " + std::to_string(options.trace->from) + " of a run of " + std::to_string(steps),
        "Trace steps that it trains.");
  }
  return std::make_unique<StepTrace>(world, *options.trace, options.run_dir / "trace.json", options.device);
}

std::vector<step::StepObserver*> observers_of(LastEvents& last_events, const std::unique_ptr<StepTrace>& trace) {
  std::vector<step::StepObserver*> observers{&last_events};
  if (trace) observers.push_back(trace.get());
  return observers;
}

/// Before the ranks that wait for the one that hangs give it up.
std::chrono::milliseconds hang_limit(const job::Job& job) {
  return std::chrono::milliseconds(static_cast<std::int64_t>(0.5e3 * job.comm().timeout_s()));
}

}  // namespace

TrainingLoop::TrainingLoop(comm::World& world, const TrainOptions& options, std::vector<RunObserver*> observers)
    : world_(world),
      options_(options),
      job_(options_.job),
      observers_(std::move(observers)),
      status_(world.rank()),
      signals_(stop_notice(options_, world_, status_)),
      data_(job_),
      sample_errors_(job::sample_errors(job_.data())),
      network_(job_, data::describe(*data_.train()), options_.device),
      trace_(trace_of(options_, world)),
      job_step_(job_, world, network_, status_, observers_of(last_events_, trace_)),
      goals_(job_),
      checkpointer_(options_, network_, job_step_, goals_, observers_),
      in_flight_(network_, job_step_, *world.communicator()),
      hosts_(world.communicator()->all_gather_text(host_name())),
      stragglers_(hosts_),
      current_step_(*options_.reached),
      hang_watch_(last_events_, hang_limit(job_), [this] { on_hang(); }) {
  status_.set(RankPhase::kInit, 0);
  std::vector<data::DataDigest> digests = require_same_data([this] { return data_.digests(); }, *world_.communicator());
  job_step_.faults().at(job::INIT);
  const step::Progress start = checkpointer_.resume(std::move(digests), data_.preparation());
  in_flight_.set_reductions(goals_.reductions());
  launched_ = step_ = start.step;
  if (trace_ && options_.trace->to <= step_ && world.rank() == 0) {
    spdlog::warn("--trace ends with step {}, and the run goes on after step {}: nothing is traced", options_.trace->to,
                 step_);
  }
  skipped_samples_.restore(start);
  data_.begin(job_, world_, start.step + 1, start.sampler, network_.device());
  if (data_.eval()) {
    const Task task(job_.train(), data::as_trained(data::describe(*data_.eval()), data::describe(*data_.train())));
    evaluator_.emplace(network_, task, data_.eval(), evaluation_loader(job_, world_, network_.device()),
                       *world_.communicator());
  }
  status_.set(RankPhase::kInit, step_);
  current_step_ = step_;
}

RunFacts TrainingLoop::facts() const {
  RunFacts facts = facts_of(options_, network_, data_, world_.size(), checkpointer_.remarks());
  const std::string& host = hosts_.front();
  if (std::ranges::any_of(hosts_, [&host](const std::string& other) { return other != host; })) {
    facts.host = host;
    // NCCL carries the data of GPUs.
    if (options_.device == kCpu) facts.transport = world_.transport() == "tcp" ? "TCP" : "MPI";
  }
  return facts;
}

std::uint64_t TrainingLoop::applied_steps() { return static_cast<std::uint64_t>(network_.optimizer().applied_steps()); }

std::uint64_t TrainingLoop::skipped_steps() { return job_step_.scaler().state_dict().skipped_steps; }

std::optional<std::uint64_t> TrainingLoop::skipped_samples() const {
  if (sample_errors_.on_error == data::OnError::kFail) return std::nullopt;
  return skipped_samples_.of_run();
}

std::string TrainingLoop::weights_digest() const { return comm::weights_digest(network_.arena()); }

std::uint64_t TrainingLoop::last_step() const {
  const std::uint64_t steps = job_.train().steps();
  return std::min(steps, options_.until.value_or(steps));
}

bool TrainingLoop::due(std::uint64_t step) const {
  const auto every = [step](std::uint32_t steps) { return steps > 0 && step % steps == 0; };
  return step == last_step() || every(job_.train().eval_every()) || every(job_.checkpoint().every_steps()) ||
         every(job_.comm().digest_every());
}

ExitCode TrainingLoop::run() {
  const std::uint64_t steps = job_.train().steps();
  const std::uint32_t eval_every = job_.train().eval_every();
  const std::uint32_t save_every = job_.checkpoint().every_steps();
  const bool had_ended = goals_.reached();
  if (missed_evaluation()) evaluate();
  while (launched_ < last_step() && !stop_requested_ && !goals_.reached()) {
    launch_step();
    while (in_flight_.size() > in_flight_.ahead()) finish_step();
    if (!due(launched_)) continue;
    finish_steps();
    if (step_ == steps || stop_requested_) break;
    const bool evaluates = eval_every > 0 && step_ % eval_every == 0;
    // Saved first, as an evaluation may take long; but what follows from one stands in the checkpoint of its step.
    if (evaluates && goals_.any()) evaluate();
    if (save_every > 0 && step_ % save_every == 0) save();
    if (evaluates && !goals_.any()) evaluate();
  }
  finish_steps();
  if (trace_) trace_->finish();
  const bool ends = stop_requested_ && program_ends();
  if (goals_.reached() && !had_ended) {
    observers_.stopped_early(step_, goals_.reason());
  } else if (ends) {
    observers_.stopped_early(step_, "the program asked for it");
  }
  if (step_ > checkpointer_.saved_step()) save();
  const bool done = (step_ >= steps || goals_.reached() || ends) && evaluate_at_end();
  return done ? ExitCode::kDone : ExitCode::kPreempted;
}

void TrainingLoop::launch_step() {
  current_step_ = ++launched_;
  in_flight_.launch(launched_, data_, [this] { return signals_.requested() || *options_.end; });
}

void TrainingLoop::finish_steps() {
  while (in_flight_.size() > 0) finish_step();
}

void TrainingLoop::finish_step() {
  current_step_ = in_flight_.oldest();
  auto [report, outcome, unread] = in_flight_.finish();
  if (outcome.skipped_samples > 0) skipped_names_.tell(std::move(unread), *world_.communicator());
  skipped_samples_.add(report.epoch, static_cast<std::uint64_t>(outcome.skipped_samples));
  report.skipped_samples = skipped_samples();
  stop_requested_ = stop_requested_ || outcome.stop > 0.0f;
  step_ = report.step;
  observers_.step(report);
  look_for_stragglers(report);
  // The metrics hold the reason before the run ends.
  job_step_.step().require_progress(outcome);
  require_few(skipped_samples_.of_epoch(), sample_errors_, "epoch " + std::to_string(report.epoch));
  require_finite(report);
  const std::uint32_t digest_every = job_.comm().digest_every();
  if (digest_every > 0 && step_ % digest_every == 0) compare_weights();
}

void TrainingLoop::look_for_stragglers(const StepReport& report) {
  std::vector<double> seconds;
  for (const float waited : report.rank_waits) seconds.push_back(std::max(0.0, report.seconds - double{waited}));
  for (const Straggler& straggler : stragglers_.add(seconds)) {
    observers_.straggler(report.step, straggler);
    if (!straggler.ended) keep_last_events(str(straggler));
  }
}

void TrainingLoop::keep_last_events(const std::string& reason) const {
  const std::filesystem::path file = options_.run_dir / "last_events" / fmt::format("rank{}.json", world_.rank());
  if (const std::error_code error = write_whole_file(file, last_events_.text(world_.rank(), reason))) {
    spdlog::warn("cannot write {}: {}", file.string(), error.message());
  }
}

void TrainingLoop::on_hang() const {
  const std::string what =
      fmt::format("nothing has begun or ended for {:.1f} s {}", std::chrono::duration<double>(hang_limit(job_)).count(),
                  place_at(current_step_));
  keep_last_events(what);
  if (world_.rank() != 0) return;
  spdlog::warn("{}; each rank that runs writes what it did last to {}: open these files in ui.perfetto.dev", what,
               (options_.run_dir / "last_events").string());
}

void TrainingLoop::require_finite(const StepReport& report) {
  // With a dynamic scale a bad loss may be an overflow that a lower scale cures; without, nothing will.
  if (std::isfinite(report.loss) || job_step_.scaler().dynamic()) return;
  throw NumericsError("the loss is " + std::to_string(report.loss) + " at step " + std::to_string(report.step) +
                          (report.skipped ? "; " + report.reason() : ""),
                      std::string("Lower the learning rate, clip the gradients (optimizer.clip_norm), or look at the "
                                  "data. ") +
                          (report.skipped ? "The weights are those before this step."
                                          : "This step was applied: go on "
                                            "from an earlier checkpoint."));
}

void TrainingLoop::compare_weights() {
  job_step_.step().compare_weights();
  compared_step_ = step_;
}

void TrainingLoop::evaluate(bool heeds_stop) {
  status_.set(RankPhase::kEval, step_);
  job_step_.ddp().share_statistics();
  std::optional<optim::WeightMean::InPlace> mean;
  if (job_step_.mean() != nullptr) mean.emplace(*job_step_.mean());
  auto result = evaluator_->run([&] { return heeds_stop && signals_.requested(); });
  if (result) result->of_mean = mean.has_value();
  mean.reset();
  stop_requested_ = !result;
  if (!result) return;
  evaluated_step_ = step_;
  observers_.evaluation(step_, *result);
  // Otherwise one more step would be trained.
  stop_requested_ = any_rank(*options_.end, *world_.communicator());
  // Before it counts: no weights are the best ones by such a loss, and no run ends early.
  train::require_finite(*result, "at step " + std::to_string(step_));
  const bool is_best = goals_.add(step_, *result);
  follow_plateau();
  if (!is_best) return;
  require_agreement();
  status_.set(RankPhase::kSave, step_);
  checkpointer_.save_best(progress());
}

void TrainingLoop::follow_plateau() {
  const bool is_last = step_ >= job_.train().steps();
  if (!in_flight_.set_reductions(goals_.reductions()) || is_last) return;
  const double rate = job_step_.schedule().learning_rate(network_.optimizer().applied_steps());
  observers_.learning_rate_reduced(step_, rate, goals_.reason_to_reduce());
}

bool TrainingLoop::program_ends() {
  comm::Communicator& communicator = *world_.communicator();
  const bool asked = any_rank(*options_.end, communicator);
  return !any_rank(signals_.requested(), communicator) && asked;
}

bool TrainingLoop::missed_evaluation() const {
  const std::uint32_t every = job_.train().eval_every();
  if (every == 0 || step_ == 0 || step_ % every != 0) return false;
  return goals_.any() ? goals_.evaluated_step() != step_ : evaluator_ && options_.until == step_;
}

bool TrainingLoop::evaluate_at_end() {
  if (!evaluator_ || (step_ > 0 && evaluated_step_ == step_)) return true;
  // A stop that was requested during the last step finds nothing left but this evaluation: it is made, and the run ends
  // as a whole one.
  evaluate(!any_rank(signals_.requested(), *world_.communicator()));
  return evaluated_step_ == step_;
}

void TrainingLoop::require_agreement() {
  if (job_.comm().digest_every() > 0 && compared_step_ != step_) compare_weights();
}

step::Progress TrainingLoop::progress() const {
  step::Progress progress{.step = step_, .sampler = data_.state()};
  skipped_samples_.save(progress);
  return progress;
}

void TrainingLoop::save() {
  require_agreement();
  status_.set(RankPhase::kSave, step_);
  job_step_.faults().at(job::SAVE);
  checkpointer_.save(progress());
}

}  // namespace lockstep::train
