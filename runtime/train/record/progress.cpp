// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/record/progress.h"

#include <algorithm>
#include <cstdio>

#include "runtime/base/printable.h"

namespace lockstep::train {

namespace {

constexpr auto kRedraw = std::chrono::milliseconds(100);
constexpr const char* kBold = "\033[1m";
constexpr const char* kYellow = "\033[33m";
constexpr const char* kGreen = "\033[32m";

std::FILE* stream_of(const TrainOutput& output) { return output.json ? stderr : stdout; }

template <class... Values>
std::string formatted(const char* pattern, Values... values) {
  char text[256];
  std::snprintf(text, sizeof text, pattern, values...);
  return text;
}

unsigned long long number(std::uint64_t value) { return value; }

std::string fact(std::string name, const std::string& value) {
  name.resize(11, ' ');
  return "\n" + name + value;
}

/// "loss 0.0412, accuracy 98.99 %"
std::string result_text(const EvalResult& result) {
  std::string text = formatted("loss %.4f", result.loss);
  for (const Metric& metric : result.metrics) text += ", " + metric.name + " " + text_beside_baseline(result, metric);
  return text;
}

}  // namespace

Progress::Progress(const TrainOutput& output, std::uint32_t log_every)
    : quiet_(output.quiet),
      color_(shows_color(stream_of(output))),
      log_every_(std::max(log_every, 1u)),
      terminal_(stream_of(output), is_live(output)) {}

bool Progress::is_live(const TrainOutput& output) {
  // Behind a pipe that passes whole lines, and beside metrics in the same window, a live line has no place.
  return !output.quiet && !output.json && Terminal::shows_live_line(stdout);
}

void Progress::header(const RunFacts& facts) {
  facts_ = facts;
  facts_.job = printable(facts.job);
  facts_.run_dir = printable(facts.run_dir.string());
  facts_.host = printable(facts.host);
  for (std::string& remark : facts_.remarks) remark = printable(remark);
  if (!quiet_) terminal_.print(header_text(facts_, color_));
}

void Progress::step(const StepReport& report) {
  if (quiet_) return;
  const auto now = Clock::now();
  if (first_step_ == 0) {
    first_step_ = report.step;
    first_end_ = now;
  }
  samples_ += report.samples;
  seconds_ += report.seconds;
  scale_changes_ = scale_changes_ || report.loss_scale != 1.0;
  if (report.skipped) tell_of_skip(report);
  if (terminal_.live()) {
    if (now - last_drawn_ >= kRedraw || report.step == facts_.steps) draw(report, now);
  } else if (report.step % log_every_ == 0 || report.step == facts_.steps || report.step == 1) {
    print_step(report);
  }
}

void Progress::draw(const StepReport& report, Clock::time_point now) {
  ProgressState state{.step = report.step,
                      .steps = facts_.steps,
                      .elapsed = std::chrono::duration_cast<std::chrono::seconds>(now - first_end_),
                      .left = std::nullopt,
                      .loss = report.loss,
                      .samples_per_s = seconds_ > 0 ? static_cast<double>(samples_) / seconds_ : 0.0,
                      .loss_scale = std::nullopt,
                      .skips = report.skipped_steps};
  if (scale_changes_) state.loss_scale = report.loss_scale;
  if (report.step > first_step_) {
    const double done = static_cast<double>(report.step - first_step_);
    const double seconds = std::chrono::duration<double>(now - first_end_).count();
    const double left = seconds / done * static_cast<double>(facts_.steps - std::min(report.step, facts_.steps));
    state.left = std::chrono::seconds(static_cast<std::int64_t>(left + 0.5));
  }
  // A character in the last column would make some terminals wrap.
  terminal_.draw(progress_line(state, terminal_.columns() - 1));
  last_drawn_ = now;
  samples_ = 0;
  seconds_ = 0.0;
}

void Progress::print_step(const StepReport& report) {
  terminal_.print(formatted("step %llu/%llu  epoch %llu  loss %.4f  lr %.4g  scale %g  %.0f samples/s",
                            number(report.step), number(facts_.steps), number(report.epoch), report.loss, report.lr,
                            report.loss_scale, seconds_ > 0 ? static_cast<double>(samples_) / seconds_ : 0.0));
  samples_ = 0;
  seconds_ = 0.0;
}

void Progress::tell_of_skip(const StepReport& report) {
  std::string text = "step " + std::to_string(report.step) + " skipped: " + report.reason();
  if (report.next_loss_scale != report.loss_scale) {
    text += formatted("; loss scale %g, now %g", report.loss_scale, report.next_loss_scale);
  }
  terminal_.print(colored(kYellow, printable(text)));
}

void Progress::evaluation(std::uint64_t step, const EvalResult& result) {
  note("eval at step " + std::to_string(step) + ": " + result_text(result));
}

void Progress::saved(std::uint64_t step, const std::string& path, double seconds) {
  saved_path_ = printable(path);
  note("saved at step " + std::to_string(step) + formatted(" in %.0f ms: ", 1e3 * seconds) + path);
}

void Progress::best(std::uint64_t step, const std::string& metric, double value, const std::string& path) {
  note("best at step " + std::to_string(step) + formatted(": %s %.6g: ", metric.c_str(), value) + path);
}

void Progress::stopped_early(std::uint64_t step, const std::string& reason) {
  note("stopped early after step " + std::to_string(step) + ": " + reason);
}

void Progress::learning_rate_reduced(std::uint64_t step, double rate, const std::string& reason) {
  note("learning rate " + formatted("%.4g", rate) + " after step " + std::to_string(step) + ": " + reason);
}

void Progress::straggler(std::uint64_t step, const Straggler& straggler) {
  note("step " + std::to_string(step) + ": " + str(straggler));
}

void Progress::note(const std::string& text) {
  if (!quiet_) terminal_.print(printable(text));
}

void Progress::result(const RunEnd& end, const Summary& summary, const std::vector<std::string>& next) {
  end_live_line();
  std::string text;
  if (end.status == RunEnd::Status::kPreempted) {
    text = colored(kYellow, "stopped") + " after step " + std::to_string(end.step) + ", as asked; " +
           printable(next.front());
  } else {
    const auto trained = std::chrono::seconds(static_cast<std::int64_t>(summary.training_seconds + 0.5));
    text = colored(kGreen, "done") + "       " + grouped(summary.steps) + " steps";
    if (summary.samples_per_s > 0) {
      text += " in " + duration_text(trained) + ", " + grouped(static_cast<std::uint64_t>(summary.samples_per_s)) +
              " samples/s";
    }
    if (summary.skipped_steps > 0) text += ", " + grouped(summary.skipped_steps) + " skipped";
  }
  if (summary.eval) text += fact("eval", result_text(*summary.eval));
  if (!saved_path_.empty()) text += fact("saved", saved_path_);
  text += fact("record", (facts_.run_dir / "summary.json").string());
  if (end.status == RunEnd::Status::kDone) {
    for (const std::string& step : next) {
      text += fact(&step == &next.front() ? "next" : "", colored(kBold, printable(step)));
    }
  }
  terminal_.print(text);
}

std::string Progress::colored(const char* color, const std::string& text) const {
  return color_ ? color + text + "\033[0m" : text;
}

}  // namespace lockstep::train
