// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "configs/job.pb.h"
#include "launcher/commands/commands.h"
#include "runtime/base/error.h"
#include "runtime/base/files/durable_file.h"
#include "runtime/base/json_text.h"
#include "runtime/base/printable.h"
#include "runtime/job/saved_job.h"
#include "runtime/train/history/event_text.h"
#include "runtime/train/history/metrics_follower.h"
#include "runtime/train/history/run_record.h"
#include "runtime/train/history/watched_run.h"
#include "runtime/train/record/terminal.h"

namespace lockstep::launcher {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using std::chrono::steady_clock;

namespace {

constexpr std::chrono::milliseconds kPoll{200};
constexpr std::chrono::seconds kSilence{10};
/// In which a launcher starts lost ranks again.
constexpr std::chrono::seconds kRestartTime{3};

struct WatchCommand {
  std::string run;
  double every = 10.0;
  bool wait = false;
};

std::uint64_t steps_of_job(const fs::path& run) {
  try {
    const auto job = job::read_saved(read_file((run / "job.pbtxt").string(), job::kMostSavedBytes));
    return job ? job->train().steps() : 0;
  } catch (const StorageError&) {
    return 0;  // the run is about to write it
  }
}

/// "2026-11-27 10:51:07"
std::string clock_text(double time) {
  const auto seconds = static_cast<std::time_t>(time);
  std::tm local{};
  localtime_r(&seconds, &local);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &local);
  return text;
}

void end_watching(int number) {
  train::end_live_line();
  _exit(128 + number);
}

class Watch {
 public:
  explicit Watch(const WatchCommand& command)
      : command_(command),
        directory_(command.run),
        follower_(directory_ / "metrics.jsonl"),
        terminal_(stdout, train::Terminal::shows_live_line(stdout)) {}

  /// Returns the exit code of the run.
  ExitCode follow() {
    const bool was_there = fs::is_directory(directory_);
    if (!was_there) wait_for_run();
    // Lines that a run wrote before the watching began are read, but not shown.
    for (bool first = was_there;; first = false) {
      const std::vector<Json> lines = follower_.poll();
      for (const Json& line : lines) add(line, first);
      if (!lines.empty() || first) run_.set_steps(steps_of_job(directory_));
      show(first);
      if (const std::optional<ExitCode> code = end(first)) return *code;
      std::this_thread::sleep_for(kPoll);
    }
  }

 private:
  void wait_for_run() {
    const std::string name = printable(command_.run);
    if (!command_.wait) {
      throw StorageError("there is no run " + name, "Name a run's directory; --wait waits until there is one.");
    }
    terminal_.print("waiting for " + name);
    while (!fs::is_directory(directory_)) std::this_thread::sleep_for(kPoll);
  }

  void add(const Json& line, bool first) {
    run_.add(line);
    if (first) return;
    if (!field_of(line, "event").is_null()) {
      say(train::event_text(line), line);
    } else if (field_of(line, "skipped") == true) {
      say(skip_text(line), line);
    }
  }

  static std::string skip_text(const Json& line) {
    const Json& parameter = field_of(line, "parameter");
    return "step " + field_of(line, "step").dump() + " skipped" +
           (parameter.is_string() ? ": inf or NaN in the gradient of " + parameter.get<std::string>() : "");
  }

  void say(const std::string& text, const Json& line) {
    const Json& time = field_of(line, "time");
    const std::string clock = terminal_.live() || !time.is_number() ? "" : clock_text(time.get<double>()) + "  ";
    terminal_.print(clock + printable(text));
  }

  void show(bool first) {
    if (!run_.has_step() || !run_.end().is_null()) return;
    const train::ProgressState progress = run_.progress();
    // A character in the last column would make some terminals wrap.
    if (terminal_.live()) return terminal_.draw(train::progress_line(progress, terminal_.columns() - 1));
    const auto now = steady_clock::now();
    if (!first && now - last_shown_ < std::chrono::duration<double>(command_.every)) return;
    const bool moved = progress.step != shown_step_;
    // A run writes its lines every second.
    if (!moved && silence() < kSilence) return;
    last_shown_ = now;
    shown_step_ = progress.step;
    terminal_.print(moved ? log_line(progress) : silence_line(progress.step));
  }

  std::chrono::seconds silence() const {
    return std::chrono::seconds(std::time(nullptr) - static_cast<std::time_t>(run_.last_time()));
  }

  std::string log_line(const train::ProgressState& progress) const {
    std::string text = fmt::format("{}  step {}/{}  loss {:.4g}  lr {:.4g}", clock_text(run_.last_time()),
                                   progress.step, progress.steps, progress.loss, run_.lr());
    if (progress.loss_scale) text += fmt::format("  scale {:g}", *progress.loss_scale);
    text += fmt::format("  {:.0f} samples/s", progress.samples_per_s);
    if (progress.skips > 0) text += fmt::format("  {} skipped", progress.skips);
    text += "  elapsed " + train::duration_text(progress.elapsed);
    return progress.left ? text + "  eta " + train::duration_text(*progress.left) : text;
  }

  std::string silence_line(std::uint64_t step) const {
    return fmt::format("{}  step {}, and nothing for {}", clock_text(static_cast<double>(std::time(nullptr))), step,
                       train::duration_text(silence()));
  }

  /// Throws PeerError where the run was killed, and so has told of no end.
  void require_alive() {
    if (command_.wait || !run_.has_step() || silence() < kSilence || steady_clock::now() - last_search_ < kSilence)
      return;
    last_search_ = steady_clock::now();
    if (train::read_run(directory_).status != train::RunStatus::kLost) return;
    throw PeerError("the run is lost: it has told of no end, and no process trains there",
                    "Train it again: it goes on from its newest checkpoint. --wait waits for that.");
  }

  /// The exit code of a run that has ended and is not about to go on.
  std::optional<ExitCode> end(bool first) {
    const Json& end = run_.end();
    if (end.is_null()) {
      ended_at_.reset();
      require_alive();
      return std::nullopt;
    }
    if (first) say(train::event_text(end), end);
    const bool done = field_of(end, "event") == "done";
    if (!done && command_.wait) return std::nullopt;
    if (!ended_at_) ended_at_ = steady_clock::now();
    // What has ended before this was started is over.
    if (first) began_ended_ = true;
    if (!done && !began_ended_ && steady_clock::now() - *ended_at_ < kRestartTime) return std::nullopt;
    const Json& code = field_of(end, "exit_code");
    return static_cast<ExitCode>(code.is_number_integer() ? code.get<int>() : 0);
  }

  const WatchCommand& command_;
  fs::path directory_;
  train::MetricsFollower follower_;
  train::Terminal terminal_;
  train::WatchedRun run_;
  steady_clock::time_point last_shown_{};
  steady_clock::time_point last_search_{};  ///< for its process
  std::uint64_t shown_step_ = 0;
  std::optional<steady_clock::time_point> ended_at_;
  bool began_ended_ = false;
};

ExitCode run(const WatchCommand& command) {
  std::signal(SIGINT, end_watching);
  std::signal(SIGTERM, end_watching);
  return Watch(command).follow();
}

}  // namespace

void add_watch(CLI::App& app, Action& chosen) {
  const auto command = std::make_shared<WatchCommand>();
  CLI::App& watch = *app.add_subcommand("watch", "follow a run from another terminal until it ends");
  watch.add_option("RUN", command->run, "the run's directory")->required();
  watch
      .add_option("--every", command->every,
                  "where stdout is no terminal: seconds from one line of progress to the next")
      ->type_name("S")
      ->check(CLI::Range(0.1, 86400.0))
      ->capture_default_str();
  watch.add_flag("--wait", command->wait, "wait for a run that is not there yet, and for one that stopped to go on");
  watch.callback([command, &chosen] { chosen = [command] { return run(*command); }; });
}

}  // namespace lockstep::launcher
