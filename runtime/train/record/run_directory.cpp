// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/record/run_directory.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "runtime/base/files/durable_file.h"
#include "runtime/base/files/storage_calls.h"
#include "runtime/job/job.h"
#include "runtime/train/record/median.h"
#include "runtime/train/record/record_room.h"
#include "runtime/train/record/restarts.h"
#include "runtime/train/record/run_files.h"
#include "runtime/train/record/terminal.h"

namespace lockstep::train {

namespace {

using std::chrono::milliseconds;

/// For what a run wrote last, where it ends as it should. Otherwise somebody may wait for this process to end.
constexpr milliseconds kEndPatience{10'000};
constexpr milliseconds kPatience{2000};
/// In which a command that is told of events may send what it has to a server.
constexpr milliseconds kPatienceForCommand{30'000};

void warn(const std::string& trouble) {
  end_live_line();
  spdlog::warn(trouble);
}

}  // namespace

RunDirectory::RunDirectory(const TrainOptions& options, int world_size, const std::string& transport,
                           double mpi_init_ms)
    : options_(options), lock_(options_.run_dir), output_(warn) {
  summary_.world_size = world_size;
  summary_.transport = transport;
  summary_.device = str(options_.device);
  summary_.precision = job::Precision_Name(options_.job.amp().dtype());
  summary_.final_loss = std::numeric_limits<double>::quiet_NaN();
  summary_.mpi_init_ms = mpi_init_ms;
}

void RunDirectory::begin(std::uint64_t step, std::uint64_t applied, std::uint64_t skipped,
                         std::optional<std::uint64_t> skipped_samples, const std::string& resumed_from,
                         const std::string& environment) {
  try {
    const std::string note = options_.epochs ? fmt::format("# train.steps are {} epochs\n", *options_.epochs) : "";
    write_text(options_.run_dir / "job.pbtxt", note + job::to_text(options_.job));
  } catch (const StorageError& error) {
    warn(std::string(error.what()) + "; training goes on");
  }
  take_record_room(options_.run_dir);
  if (!options_.output.on_event.empty()) listener_.emplace(options_.output.on_event, warn);
  metrics_.emplace(output_, options_.run_dir, step, options_.output.json, listener_ ? &*listener_ : nullptr);
  summary_.steps = step;
  summary_.applied_steps = applied;
  summary_.skipped_steps = skipped;
  summary_.skipped_samples = skipped_samples;
  summary_.final_loss = metrics_->last_loss();
  summary_.environment = environment;
  if (const int restarts = restart_count(); restarts > 0) {
    nlohmann::ordered_json line = event_line("restarted", step);
    line["restarts"] = restarts;
    metrics_->event(line);
  }
  if (resumed_from.empty()) return;
  nlohmann::ordered_json line = event_line("resumed", step);
  line["detail"] = resumed_from;
  metrics_->event(line);
}

void RunDirectory::step(const StepReport& report) {
  if (step_ms_.empty()) {
    const auto since_start = std::chrono::system_clock::now() - options_.process_start;
    summary_.time_to_first_step_ms = std::chrono::duration<double, std::milli>(since_start).count();
  } else {
    samples_ += static_cast<double>(report.samples);
    summary_.training_seconds += report.seconds;
  }
  step_ms_.push_back(static_cast<float>(report.seconds * 1e3));
  wait_data_ms_.push_back(static_cast<float>(report.data_seconds * 1e3));
  queue_depth_.push_back(static_cast<float>(report.queue_depth));
  summary_.steps = report.step;
  summary_.applied_steps = report.applied_steps;
  summary_.skipped_steps = report.skipped_steps;
  summary_.skipped_samples = report.skipped_samples;
  summary_.final_loss = report.loss;
  metrics_->step(report);
}

void RunDirectory::evaluation(std::uint64_t step, const EvalResult& result) {
  summary_.eval = result;
  metrics_->evaluation(step, result);
}

void RunDirectory::best(std::uint64_t step, const std::string& metric, double value, const std::string& path) {
  nlohmann::ordered_json line = event_line("best", step);
  line["metric"] = metric;
  line["value"] = value;
  line["detail"] = path;
  metrics_->event(line);
}

void RunDirectory::stopped_early(std::uint64_t step, const std::string& reason) {
  nlohmann::ordered_json line = event_line("stopped_early", step);
  line["detail"] = reason;
  metrics_->event(line);
}

void RunDirectory::learning_rate_reduced(std::uint64_t step, double rate, const std::string& reason) {
  nlohmann::ordered_json line = event_line("lr_reduced", step);
  line["lr"] = rate;
  line["detail"] = reason;
  metrics_->event(line);
}

void RunDirectory::straggler(std::uint64_t step, const Straggler& straggler) {
  nlohmann::ordered_json line = event_line(straggler.ended ? "straggler_ended" : "straggler", step);
  line["rank"] = straggler.rank;
  line["host"] = straggler.host;
  line["factor"] = straggler.factor;
  metrics_->event(line);
}

void RunDirectory::saving(std::uint64_t step) {
  const std::string path = metrics_->file()->path();
  // A disk that never answers is the StallWatch's.
  const CallUnderWay waiting(StorageOperation::kWrite, path);
  output_.settle(
      [file = metrics_->file()] {
        file->require_in_place();
        file->sync();
      },
      kPatience,
      [&] {
        warn(fmt::format("{}: the disk is slow; the checkpoint of step {} waits until the steps before it stand there",
                         path, step));
      });
  // A file that this run has made is safe once its name is.
  if (std::exchange(names_are_durable_, true)) return;
  try {
    sync_directory(options_.run_dir.string());
  } catch (const StorageError&) {
    // Lines that a power cut may take are no reason to end.
  }
}

void RunDirectory::require_in_place(milliseconds patience) {
  output_.perform([file = metrics_->file()] { file->require_in_place(); }, patience);
}

RunDirectory::~RunDirectory() { return_record_room(options_.run_dir); }

Summary RunDirectory::end(const RunEnd& end, const std::string& weights_digest, const std::optional<GpuSummary>& gpu) {
  output_.flush(kEndPatience);
  require_in_place(kEndPatience);
  summary_.weights_digest = weights_digest;
  summary_.gpu = gpu;
  // A run that was done before is not described by one that had nothing left to do.
  const bool told = end.status == RunEnd::Status::kDone && step_ms_.empty() &&
                    describes(options_.run_dir / "summary.json", summary_.steps, weights_digest);
  if (told) return summary_;
  write(end, kEndPatience);
  close(end, kEndPatience);
  return summary_;
}

void RunDirectory::write(const RunEnd& end, milliseconds patience) {
  summary_.samples_per_s = summary_.training_seconds > 0 ? samples_ / summary_.training_seconds : 0.0;
  summary_.step_ms_p50 = median(step_ms_);
  summary_.wait_data_ms_p50 = median(wait_data_ms_);
  summary_.queue_depth_p50 = median(queue_depth_);
  summary_.memory = memory_peaks(options_.device);
  summary_.lost_output = output_.lost();
  const auto work = [run_dir = options_.run_dir, end, summary = to_json(summary_), since = options_.process_start] {
    write_summary(run_dir, end, summary, since);
  };
  try {
    if (!output_.perform(work, patience)) warn("summary.json is not written: the disk does not answer");
  } catch (const StorageError& error) {
    warn(error.what());
  }
}

void RunDirectory::close(const RunEnd& end, milliseconds patience) {
  if (!metrics_) {
    const auto work = [run_dir = options_.run_dir, line = event_line(end), echo = options_.output.json] {
      append_event(run_dir, line, echo);
    };
    output_.perform(work, patience);
    return;
  }
  metrics_->event(event_line(end));
  output_.flush(patience);
  if (listener_) listener_->finish(end.status == RunEnd::Status::kDone ? kPatienceForCommand : patience);
  for (const auto& [name, count] : output_.lost()) warn(fmt::format("{}: {} entries are not written", name, count));
}

void RunDirectory::fail(const RunEnd& end) noexcept {
  try {
    output_.flush(kPatience);
    // A deleted file does not come back, and a file that another run may have put there is not ours.
    if (metrics_) require_in_place(kPatience);
    if (!metrics_ && leaves_earlier_record(options_.run_dir, end.code)) return;
    write(end, kPatience);
    close(end, kPatience);
  } catch (const std::exception&) {
    // The failure itself is what the user has to hear of.
  }
}

}  // namespace lockstep::train
