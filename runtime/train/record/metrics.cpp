// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/record/metrics.h"

#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <utility>

#include "runtime/base/files/durable_file.h"
#include "runtime/train/record/run_end.h"
#include "runtime/train/record/run_files.h"
#include "runtime/train/record/set_aside.h"
#include "runtime/train/record/summary.h"

namespace lockstep::train {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMostRanksToList = 64;

/// Keeps the lines of steps up to `last`; what a killed process left half-written goes too.
EarlierMetrics drop_later_lines(const std::filesystem::path& path, std::uint64_t last) {
  const std::string content = read_record(path);
  KeptLines kept = lines_up_to(content, last);
  if (kept.text != content) write_text(path, kept.text);
  return std::move(kept.earlier);
}

/// What stays. First of all, TensorBoard's file too.
EarlierMetrics drop_later_steps(const std::filesystem::path& run_dir, std::uint64_t last) {
  drop_later_events(run_dir.string(), static_cast<std::int64_t>(last));
  const std::filesystem::path path = run_dir / "metrics.jsonl";
  try {
    return drop_later_lines(path, last);
  } catch (const FileError& error) {
    if (error.error() != ENOENT) set_aside_record(path, error.what());
  } catch (const StorageError& error) {  // no regular file, or more than memory holds
    set_aside_record(path, error.what());
  }
  return {};
}

/// metrics.jsonl, as an OutputWriter writes it.
class MetricLines final : public OutputSink {
 public:
  MetricLines(std::shared_ptr<LineFile> file, bool echo) : file_(std::move(file)), echo_(echo) {}

  std::string name() const override { return file_->path(); }
  std::size_t write(std::string_view lines) override {
    const std::size_t count = file_->write(lines);
    // Not before: what a killed run has printed stands in its file, too. A reader that goes away does not end the run.
    if (echo_) std::fwrite(lines.data(), 1, count, stdout), std::fflush(stdout);
    return count;
  }

 private:
  std::shared_ptr<LineFile> file_;
  bool echo_;
};

}  // namespace

Metrics::Metrics(OutputWriter& output, const std::filesystem::path& run_dir, std::uint64_t resumed_step, bool echo,
                 EventCommand* listener)
    : output_(output),
      earlier_(drop_later_steps(run_dir, resumed_step)),
      lines_(std::make_shared<LineFile>(run_dir / "metrics.jsonl")),
      sink_(output.add(std::make_unique<MetricLines>(lines_, echo))),
      listener_(listener),
      tensorboard_(output, run_dir.string(), static_cast<std::int64_t>(resumed_step) + 1) {}

void Metrics::step(const StepReport& report) {
  const std::chrono::duration<double> now = std::chrono::system_clock::now().time_since_epoch();
  const double rate = report.samples_per_second();
  Json line{{"step", report.step},
            {"epoch", report.epoch},
            {"time", now.count()},
            {"loss", report.loss},
            {"lr", report.lr},
            {"loss_scale", report.loss_scale},
            {"skipped", report.skipped},
            {"samples_per_s", rate},
            {"step_ms", 1e3 * report.seconds},
            {"wait_data_ms", 1e3 * report.data_seconds},
            {"queue_depth", report.queue_depth}};
  if (report.rank_seconds) line["wait_ranks_ms"] = 1e3 * *report.rank_seconds;
  // With more ranks the line would be longer than it is worth.
  if (report.rank_waits.size() <= kMostRanksToList) {
    for (const float seconds : report.rank_waits) line["wait_ms_of_ranks"].push_back(1e3 * double{seconds});
  }
  if (report.grad_norm) line["grad_norm"] = *report.grad_norm;
  if (report.skipped_samples) line["skipped_samples"] = *report.skipped_samples;
  if (report.skipped) {
    line["parameter"] = report.parameter.empty() ? Json(nullptr) : Json(report.parameter);
    line["rank"] = report.rank >= 0 ? Json(report.rank) : Json(nullptr);
  }
  add(line);
  const auto at = static_cast<std::int64_t>(report.step);
  tensorboard_.scalar("train/loss", at, static_cast<float>(report.loss));
  tensorboard_.scalar("train/lr", at, static_cast<float>(report.lr));
  tensorboard_.scalar("train/loss_scale", at, static_cast<float>(report.loss_scale));
  tensorboard_.scalar("train/skipped", at, report.skipped ? 1.0f : 0.0f);
  tensorboard_.scalar("train/samples_per_s", at, static_cast<float>(rate));
  tensorboard_.scalar("data/wait_ms", at, static_cast<float>(1e3 * report.data_seconds));
  tensorboard_.scalar("data/queue_depth", at, static_cast<float>(report.queue_depth));
  if (report.skipped_samples) {
    tensorboard_.scalar("data/skipped_samples", at, static_cast<float>(*report.skipped_samples));
  }
  if (report.grad_norm) tensorboard_.scalar("train/grad_norm", at, static_cast<float>(*report.grad_norm));
  // The metrics hold the reason before it may end the run.
  if (report.skipped || !std::isfinite(report.loss)) output_.nudge();
}

void Metrics::evaluation(std::uint64_t step, const EvalResult& result) {
  Json line = event_line("eval", step);
  line.update(to_json(result));
  if (timeless(nlohmann::json(line)) == earlier_.evaluation) return;
  add(line);
  tensorboard_.scalar("eval/loss", static_cast<std::int64_t>(step), static_cast<float>(result.loss));
  for (const Metric& metric : result.metrics) {
    tensorboard_.scalar("eval/" + metric.name, static_cast<std::int64_t>(step), static_cast<float>(metric.value));
  }
  output_.nudge();
}

void Metrics::event(const Json& line) {
  add(line);
  output_.nudge();
}

void Metrics::add(const Json& line) {
  std::string text = one_line(line) + '\n';
  if (listener_ != nullptr) listener_->write(text);
  output_.write(sink_, std::move(text));
}

}  // namespace lockstep::train
