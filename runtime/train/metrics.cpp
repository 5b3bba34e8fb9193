// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/metrics.h"

#include <limits>
#include <nlohmann/json.hpp>
#include <vector>

#include "runtime/tensor/error.h"

namespace lockstep::train {

namespace {

using Json = nlohmann::ordered_json;

/// Keeps the lines of steps up to `last`; what a killed process left half-written goes too. The last step's loss.
double drop_later_lines(const std::filesystem::path& path, std::uint64_t last) {
  double loss = std::numeric_limits<double>::quiet_NaN();
  std::ifstream in(path);
  if (!in) return loss;
  std::vector<std::string> kept;
  for (std::string line; std::getline(in, line);) {
    const Json entry = Json::parse(line, nullptr, false);
    if (!entry.is_object() || !entry.contains("step") || !entry["step"].is_number_unsigned()) continue;
    if (entry["step"].get<std::uint64_t>() > last) continue;
    kept.push_back(line);
    if (!entry.contains("event") && entry.contains("loss") && entry["loss"].is_number()) loss = entry["loss"];
  }
  const std::filesystem::path temporary = path.string() + ".tmp";
  std::ofstream out(temporary);
  for (const std::string& line : kept) out << line << '\n';
  out.close();
  if (!out) throw StorageError("cannot write " + temporary.string(), "Check the space and the permissions there.");
  std::filesystem::rename(temporary, path);
  return loss;
}

}  // namespace

Metrics::Metrics(const std::filesystem::path& run_dir, std::uint64_t resumed_step)
    : path_(run_dir / "metrics.jsonl"), tensorboard_(run_dir.string()) {
  last_loss_ = drop_later_lines(path_, resumed_step);
  lines_.open(path_, std::ios::app);
  if (!lines_) throw StorageError("cannot write " + path_.string(), "Check the permissions of the run directory.");
}

void Metrics::step(const StepReport& report) {
  const double rate = report.seconds > 0 ? static_cast<double>(report.samples) / report.seconds : 0.0;
  Json line{{"step", report.step},  {"epoch", report.epoch},           {"loss", report.loss},
            {"lr", report.lr},      {"loss_scale", report.loss_scale}, {"skipped", report.skipped},
            {"samples_per_s", rate}};
  if (report.skipped) {
    line["parameter"] = report.parameter;
    line["rank"] = report.rank >= 0 ? Json(report.rank) : Json(nullptr);
  }
  lines_ << line.dump() << '\n';
  const auto at = static_cast<std::int64_t>(report.step);
  tensorboard_.scalar("train/loss", at, static_cast<float>(report.loss));
  tensorboard_.scalar("train/lr", at, static_cast<float>(report.lr));
  tensorboard_.scalar("train/loss_scale", at, static_cast<float>(report.loss_scale));
  tensorboard_.scalar("train/skipped", at, report.skipped ? 1.0f : 0.0f);
  tensorboard_.scalar("train/samples_per_s", at, static_cast<float>(rate));
  if (std::chrono::steady_clock::now() - flushed_ >= std::chrono::seconds(1)) flush();
}

void Metrics::evaluation(std::uint64_t step, const EvalResult& result) {
  Json line{{"event", "eval"}, {"step", step}, {"samples", result.samples}, {"loss", result.loss}};
  if (result.accuracy) line["accuracy"] = *result.accuracy;
  lines_ << line.dump() << '\n';
  tensorboard_.scalar("eval/loss", static_cast<std::int64_t>(step), static_cast<float>(result.loss));
  if (result.accuracy) {
    tensorboard_.scalar("eval/accuracy", static_cast<std::int64_t>(step), static_cast<float>(*result.accuracy));
  }
  flush();
}

void Metrics::event(const std::string& name, std::uint64_t step, const std::string& detail) {
  lines_ << Json{{"event", name}, {"step", step}, {"detail", detail}}.dump(-1, ' ', false,
                                                                           Json::error_handler_t::replace)
         << '\n';
  flush();
}

void Metrics::flush() {
  lines_.flush();
  if (!lines_) throw StorageError("cannot write " + path_.string(), "Check the space of the run directory.");
  tensorboard_.flush();
  flushed_ = std::chrono::steady_clock::now();
}

}  // namespace lockstep::train
