// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "launcher/commands/commands.h"
#include "launcher/commands/job_plan.h"
#include "launcher/commands/run_directory.h"
#include "launcher/supervisor/launch.h"
#include "runtime/job/job.h"
#include "runtime/train/derived_steps.h"
#include "runtime/train/dry_run.h"

namespace lockstep::launcher {

namespace {

using Json = nlohmann::ordered_json;

struct ValidateCommand {
  JobOptions job;
  LaunchOptions launch;
  std::string run_dir;
  bool json = false;
  bool print = false;
  bool dry_run = false;
};

/// The contents of the job, whether it can be trained, and the errors and oddities of both.
struct Validation {
  job::Checked checked;
  train::Plan plan;  ///< of a job that reads as sound
  std::optional<train::DryRun> measured;

  ExitCode code() const { return plan.errors.empty() ? ExitCode::kDone : plan.errors.front().code; }
};

Validation validate(const ValidateCommand& command) {
  command.launch.require_device();
  Validation found{job::check(command.job.job, command.job.overrides), {}};
  if (found.checked.diagnostics.empty()) {
    found.plan = plan_of(found.checked, command.launch, run_directory(command.run_dir, found.checked.job), true);
    // The plan has said what is wrong with the job's epochs.
    if (found.plan.errors.empty()) found.checked.job = train::with_steps(found.checked.job, found.plan.steps_per_epoch);
  }
  for (const job::Diagnostic& diagnostic : found.checked.diagnostics) {
    found.plan.errors.push_back({diagnostic, ExitCode::kUsage, {}});
  }
  if (command.dry_run && found.plan.errors.empty()) {
    found.measured = train::dry_run(found.checked.job, rank_count(command.launch), command.launch.device_of(0));
  }
  return found;
}

Json list(const std::vector<train::Finding>& findings) {
  Json entries = Json::array();
  for (const train::Finding& finding : findings) {
    Json entry{{"file", finding.at.position.source},
               {"line", finding.at.position.line},
               {"column", finding.at.position.column},
               {"path", finding.at.path},
               {"message", finding.at.message}};
    if (!finding.advice.empty()) entry["advice"] = finding.advice;
    entries.push_back(std::move(entry));
  }
  return entries;
}

Json describe(const Validation& found, const ValidateCommand& command) {
  Json result{{"job", command.job.job},
              {"valid", found.plan.errors.empty()},
              {"exit_code", static_cast<int>(found.code())},
              {"diagnostics", list(found.plan.errors)},
              {"warnings", list(found.plan.warnings)}};
  if (found.plan.errors.empty()) {
    result["name"] = found.checked.job.name();
    result["hash"] = job::hash(found.checked.job);
    result["plan"] = to_json(found.plan, found.checked.job, rank_count(command.launch));
  }
  if (found.measured) result["measured"] = to_json(*found.measured);
  return result;
}

void print_errors(const std::vector<train::Finding>& errors, const std::string& note, const std::string& job) {
  for (const train::Finding& error : errors) {
    std::fprintf(stderr, "%s\n", error.at.str().c_str());
    if (!error.advice.empty()) std::fprintf(stderr, "  → %s\n", error.advice.c_str());
  }
  if (!note.empty()) std::fprintf(stderr, "%s\n", note.c_str());
  std::fprintf(stderr, "%s: %zu error%s\n", job.c_str(), errors.size(), errors.size() == 1 ? "" : "s");
}

ExitCode run(const ValidateCommand& command) {
  const Validation found = validate(command);
  if (command.json) {
    // A job may hold any bytes; JSON may not.
    const Json result = describe(found, command);
    std::printf("%s\n", result.dump(2, ' ', false, Json::error_handler_t::replace).c_str());
    return found.code();
  }
  train::print_warnings(found.plan);
  if (found.code() != ExitCode::kDone) {
    print_errors(found.plan.errors, found.checked.data_note, command.job.job);
  } else if (command.print) {
    std::fputs(job::to_text(found.checked.job).c_str(), stdout);
  } else {
    std::printf("%s: a sound job, \"%s\"\n%s", command.job.job.c_str(), found.checked.job.name().c_str(),
                plan_text(to_json(found.plan, found.checked.job, rank_count(command.launch))).c_str());
    if (found.measured) std::fputs(measured_text(to_json(*found.measured)).c_str(), stdout);
  }
  return found.code();
}

}  // namespace

void add_validate(CLI::App& app, Action& chosen) {
  const auto command = std::make_shared<ValidateCommand>();
  CLI::App& validate = *app.add_subcommand("validate", "say what a job would train, or what is wrong with it");
  command->job.add_to(validate);
  command->launch.add_to(validate, false);
  add_run_dir(validate, command->run_dir);
  CLI::Option* json = validate.add_flag("--json", command->json, "print the findings and the plan as JSON");
  validate.add_flag("--print", command->print, "print the job as resolved, with every default")->excludes(json);
  validate.add_flag("--dry-run", command->dry_run,
                    "also train one step of the first rank's samples, and say what memory it takes; writes nothing");
  validate.callback([command, &chosen] { chosen = [command] { return run(*command); }; });
}

}  // namespace lockstep::launcher
