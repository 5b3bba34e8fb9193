// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "launcher/commands/commands.h"
#include "launcher/commands/job_plan.h"
#include "launcher/commands/rank.h"
#include "launcher/supervisor/launch.h"
#include "runtime/base/program_name.h"
#include "runtime/job/message_options.h"
#include "runtime/step/replicated.h"
#include "runtime/train/find_lr.h"
#include "runtime/train/plan.h"

namespace lockstep::launcher {

namespace {

using optim::LrRangeTest;

struct FindLrCommand {
  JobOptions job;
  LaunchOptions launch;
  optim::LrRangeTestOptions test;
  bool json = false;
};

constexpr std::size_t kMostRows = 25;
constexpr double kBarWidth = 40;

void require_options(const optim::LrRangeTestOptions& test) {
  for (const FieldProblem& problem : problems_of(test)) {
    throw UsageError("--" + problem.field + ": " + problem.message, "The rates rise from --from to --to.");
  }
}

std::vector<std::string> rank_arguments(const FindLrCommand& command) {
  std::vector<std::string> arguments{"find-lr"};
  for (const std::string& argument : command.job.arguments()) arguments.push_back(argument);
  arguments.insert(arguments.end(),
                   {"--device", command.launch.device, "--from", shortest_text(command.test.from), "--to",
                    shortest_text(command.test.to), "--steps", std::to_string(command.test.steps)});
  if (command.json) arguments.emplace_back("--json");
  return arguments;
}

/// "optimizer.sgd.lr"
std::string field_of_rate(const job::Job& job) { return "optimizer." + job::kind_of(job.optimizer())->name() + ".lr"; }

nlohmann::ordered_json json_of(const LrRangeTest& test, const job::Job& job) {
  nlohmann::ordered_json points = nlohmann::ordered_json::array();
  for (const LrRangeTest::Point& point : test.points()) {
    points.push_back({{"lr", point.rate}, {"loss", point.loss}, {"smoothed", point.smoothed}});
  }
  return {{"suggestion", test.suggestion()}, {"field", field_of_rate(job)},   {"lowest", test.lowest_loss().rate},
          {"end", reason_of(test)},          {"steps", test.points().size()}, {"points", std::move(points)}};
}

/// Some of the points, evenly chosen, the two that count and the last one. A bar is as long as the smoothed loss is
/// high, within what it is up to its lowest value: behind that it may be of any size.
std::string table_of(const LrRangeTest& test) {
  const std::vector<LrRangeTest::Point>& points = test.points();
  const LrRangeTest::Point &lowest = test.lowest_loss(), &steepest = test.steepest();
  const double low = lowest.smoothed;
  double high = low;
  for (const LrRangeTest::Point& point : points) {
    if (point.rate <= lowest.rate) high = std::max(high, point.smoothed);
  }
  const std::size_t every = (points.size() + kMostRows - 1) / kMostRows;
  std::string text = fmt::format("{:<10} {:>10} {:>10}\n", "rate", "loss", "smoothed");
  for (std::size_t i = 0; i < points.size(); ++i) {
    const LrRangeTest::Point& point = points[i];
    const bool is_steepest = &point == &steepest, is_lowest = &point == &lowest;
    if (i % every != 0 && i + 1 != points.size() && !is_steepest && !is_lowest) continue;
    const double share = std::clamp((point.smoothed - low) / (high - low), 0.0, 1.0);
    const auto length = static_cast<std::size_t>(std::lround(1 + (kBarWidth - 1) * share));
    text += fmt::format("{:<10.3g} {:>10.4f} {:>10.4f}  {}{}{}\n", point.rate, point.loss, point.smoothed,
                        std::string(length, '#'), is_steepest ? "  steepest" : "", is_lowest ? "  lowest" : "");
  }
  return text;
}

/// A line that says so where the loss still falls at the last rate; otherwise empty.
std::string remark_on(const LrRangeTest& test) {
  const bool still_falls = &test.lowest_loss() == &test.points().back() && test.end() == LrRangeTest::End::kAllSteps;
  return still_falls ? "note        the loss still falls at the last rate: --to may be higher\n" : "";
}

void print(const LrRangeTest& test, const FindLrCommand& command, const job::Job& job) {
  const double rate = test.suggestion();
  const std::string text =
      command.json
          ? json_of(test, job).dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n"
          : table_of(test) +
                fmt::format(
                    "\nend         after {} of {} steps: {}\nsuggestion  {:.2g}, where the smoothed loss falls "
                    "fastest for the logarithm of the rate\n{}next        {} train {} --set {}={:.2g}\n",
                    test.points().size(), test.options().steps, reason_of(test), rate, remark_on(test), program_name(),
                    command.job.job, field_of_rate(job), rate);
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
}

/// Where a run of the job would keep checkpoints, of which there are none here.
const std::filesystem::path kNoRunDirectory;

ExitCode run(const FindLrCommand& command) {
  command.launch.require_device();
  require_options(command.test);
  if (must_start_ranks(command.launch)) {
    // A wrong job is one error, not one a rank.
    const job::Checked checked = job::load_checked(command.job.job, command.job.overrides);
    train::require_sound(plan_of(checked, command.launch, kNoRunDirectory));
    return launch(command.launch, {.arguments = [&](int) { return rank_arguments(command); },
                                   .timeout = timeout_of(checked.job.comm())});
  }
  return run_rank(command.job, command.launch, [&](comm::World& world, const job::Checked& checked, Device device) {
    comm::Communicator& communicator = *world.communicator();
    step::on_rank_zero(communicator, [&] { train::require_sound(plan_of(checked, command.launch, kNoRunDirectory)); });
    const LrRangeTest test = train::find_lr(world, checked.job, command.test, device);
    // No rank ends the others before the result is written; what is wrong with it is wrong on all.
    step::on_rank_zero(communicator, [&] { print(test, command, checked.job); });
    return ExitCode::kDone;
  });
}

}  // namespace

void add_find_lr(CLI::App& app, Action& chosen) {
  const auto command = std::make_shared<FindLrCommand>();
  CLI::App& find =
      *app.add_subcommand("find-lr", "train while the learning rate rises, and suggest one; writes nothing");
  command->job.add_to(find);
  command->launch.add_to(find, false);
  find.add_option("--from", command->test.from, "the first learning rate")->capture_default_str();
  find.add_option("--to", command->test.to, "the last learning rate")->capture_default_str();
  find.add_option("--steps", command->test.steps, "from the first rate to the last one")->capture_default_str();
  find.add_flag("--json", command->json, "print the suggestion and all points as JSON");
  find.callback([command, &chosen] { chosen = [command] { return run(*command); }; });
}

}  // namespace lockstep::launcher
