// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/progress.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

namespace lockstep::train {

namespace {

constexpr std::size_t kBarWidth = 30;
constexpr auto kRedraw = std::chrono::milliseconds(100);

/// What a rank of mpirun writes to is no terminal, or one that mpirun made up; our launcher, which sees the real one,
/// says so.
bool on_terminal() {
  const char* said = std::getenv("LOCKSTEP_PROGRESS");
  if (said != nullptr) return std::string_view(said) == "bar";
  return std::getenv("OMPI_COMM_WORLD_RANK") == nullptr && isatty(STDOUT_FILENO) == 1;
}

}  // namespace

Progress::Progress(std::uint64_t steps, std::uint32_t log_every, bool shown)
    : steps_(steps), log_every_(std::max(log_every, 1u)), shown_(shown), terminal_(on_terminal()) {}

void Progress::step(const StepReport& report) {
  if (!shown_) return;
  const double rate = report.seconds > 0 ? static_cast<double>(report.samples) / report.seconds : 0.0;
  const bool last = report.step == steps_;
  if (terminal_) {
    const auto now = std::chrono::steady_clock::now();
    if (now - last_drawn_ < kRedraw && !last) return;
    last_drawn_ = now;
    const std::size_t filled = kBarWidth * report.step / std::max<std::uint64_t>(steps_, 1);
    std::printf("\r[%s%s] %llu/%llu  loss %.4f  scale %g  %.0f samples/s\033[K", std::string(filled, '#').c_str(),
                std::string(kBarWidth - filled, '.').c_str(), static_cast<unsigned long long>(report.step),
                static_cast<unsigned long long>(steps_), report.loss, report.loss_scale, rate);
    bar_drawn_ = true;
  } else if (report.step % log_every_ == 0 || last || report.step == 1) {
    std::printf("step %llu/%llu  epoch %llu  loss %.4f  lr %.4g  scale %g  %.0f samples/s%s\n",
                static_cast<unsigned long long>(report.step), static_cast<unsigned long long>(steps_),
                static_cast<unsigned long long>(report.epoch), report.loss, report.lr, report.loss_scale, rate,
                report.skipped ? "  skipped" : "");
  }
  std::fflush(stdout);
}

void Progress::evaluation(std::uint64_t step, const EvalResult& result) {
  char text[160];
  const int length = std::snprintf(text, sizeof text, "eval at step %llu: loss %.4f",
                                   static_cast<unsigned long long>(step), result.loss);
  if (result.accuracy) {
    std::snprintf(text + length, sizeof text - static_cast<std::size_t>(length), ", accuracy %.2f %%",
                  100.0 * *result.accuracy);
  }
  note(text);
}

void Progress::note(const std::string& text) {
  if (!shown_) return;
  clear_bar();
  std::printf("%s\n", text.c_str());
  std::fflush(stdout);
}

void Progress::clear_bar() {
  if (bar_drawn_) std::printf("\r\033[K");
  bar_drawn_ = false;
}

}  // namespace lockstep::train
