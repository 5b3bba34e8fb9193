// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/metrics.h"

#include <cstdio>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "runtime/train/run_end.h"
#include "runtime/train/run_files.h"

namespace lockstep::train {

namespace {

using Json = nlohmann::ordered_json;

/// Whether the line belongs to steps that are trained again, rather than to the run's history.
bool is_of_steps(const Json& line) {
  if (!line.contains("event")) return true;
  const Json& event = line["event"];
  return event == "eval" || event == "best" || event == "stopped_early";
}

/// Keeps the lines of steps up to `last`; what a killed process left half-written goes too. The last step's loss.
double drop_later_lines(const std::filesystem::path& path, std::uint64_t last) {
  double loss = std::numeric_limits<double>::quiet_NaN();
  std::ifstream in(path);
  if (!in) return loss;
  std::string kept;
  for (std::string line; std::getline(in, line);) {
    const Json entry = Json::parse(line, nullptr, false);
    if (!entry.is_object() || !entry.contains("step") || !entry["step"].is_number_unsigned()) continue;
    if (is_of_steps(entry) && entry["step"].get<std::uint64_t>() > last) continue;
    kept += line + '\n';
    if (!entry.contains("event") && entry.contains("loss") && entry["loss"].is_number()) loss = entry["loss"];
  }
  write_text(path, kept);
  return loss;
}

/// The loss of the last step that stays. First of all, TensorBoard's file too.
double drop_later_steps(const std::filesystem::path& run_dir, std::uint64_t last) {
  drop_later_events(run_dir.string(), static_cast<std::int64_t>(last));
  return drop_later_lines(run_dir / "metrics.jsonl", last);
}

}  // namespace

Metrics::Metrics(const std::filesystem::path& run_dir, std::uint64_t resumed_step, bool echo)
    : echo_(echo),
      last_loss_(drop_later_steps(run_dir, resumed_step)),
      lines_(run_dir / "metrics.jsonl"),
      tensorboard_(run_dir.string(), static_cast<std::int64_t>(resumed_step) + 1) {}

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
  if (report.grad_norm) line["grad_norm"] = *report.grad_norm;
  if (report.skipped_samples) line["skipped_samples"] = *report.skipped_samples;
  if (report.skipped) {
    line["parameter"] = report.parameter;
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
  if (std::chrono::steady_clock::now() - flushed_ >= std::chrono::seconds(1)) flush();
}

void Metrics::evaluation(std::uint64_t step, const EvalResult& result) {
  Json line = event_line("eval", step);
  line.update(to_json(result));
  add(line);
  tensorboard_.scalar("eval/loss", static_cast<std::int64_t>(step), static_cast<float>(result.loss));
  for (const Metric& metric : result.metrics) {
    tensorboard_.scalar("eval/" + metric.name, static_cast<std::int64_t>(step), static_cast<float>(metric.value));
  }
  flush();
}

void Metrics::event(const Json& line) {
  add(line);
  flush();
}

void Metrics::add(const Json& line) {
  const std::string text = one_line(line);
  lines_.add(text);
  if (echo_) echoed_ += text + '\n';
}

void Metrics::flush() {
  lines_.flush();
  // Not before: what a killed run has printed stands in its file, too. A reader that goes away does not end the run.
  if (echo_) {
    std::fwrite(echoed_.data(), 1, echoed_.size(), stdout);
    std::fflush(stdout);
    echoed_.clear();
  }
  tensorboard_.flush();
  flushed_ = std::chrono::steady_clock::now();
}

}  // namespace lockstep::train
