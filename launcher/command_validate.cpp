// SPDX-License-Identifier: Apache-2.0
#include "launcher/command_validate.h"

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "runtime/job/job.h"

namespace lockstep::launcher {

namespace {

using Json = nlohmann::ordered_json;

struct ValidateCommand {
  JobOptions job;
  bool json = false;
  bool print = false;
};

Json to_json(const job::Checked& checked, const std::string& file) {
  Json diagnostics = Json::array();
  for (const job::Diagnostic& diagnostic : checked.diagnostics) {
    diagnostics.push_back({{"file", diagnostic.position.source},
                           {"line", diagnostic.position.line},
                           {"column", diagnostic.position.column},
                           {"path", diagnostic.path},
                           {"message", diagnostic.message}});
  }
  Json result{{"job", file}, {"valid", diagnostics.empty()}, {"diagnostics", diagnostics}};
  if (diagnostics.empty()) {
    result["name"] = checked.job.name();
    result["hash"] = job::hash(checked.job);
  }
  return result;
}

ExitCode run(const ValidateCommand& command) {
  const job::Checked checked = job::check(command.job.job, command.job.overrides);
  const std::size_t errors = checked.diagnostics.size();
  if (command.json) {
    // A job may hold any bytes; JSON may not.
    const Json result = to_json(checked, command.job.job);
    std::printf("%s\n", result.dump(2, ' ', false, Json::error_handler_t::replace).c_str());
  } else if (errors > 0) {
    for (const job::Diagnostic& diagnostic : checked.diagnostics)
      std::fprintf(stderr, "%s\n", diagnostic.str().c_str());
    std::fprintf(stderr, "%s: %zu error%s\n", command.job.job.c_str(), errors, errors == 1 ? "" : "s");
  } else if (command.print) {
    std::fputs(job::to_text(checked.job).c_str(), stdout);
  } else {
    std::printf("%s: a sound job, \"%s\"\n", command.job.job.c_str(), checked.job.name().c_str());
  }
  return errors == 0 ? ExitCode::kDone : ExitCode::kUsage;
}

}  // namespace

void add_validate(CLI::App& app, Action& chosen) {
  const auto command = std::make_shared<ValidateCommand>();
  CLI::App& validate = *app.add_subcommand("validate", "check a job without training it");
  command->job.add_to(validate);
  CLI::Option* json = validate.add_flag("--json", command->json, "print the findings as JSON");
  validate.add_flag("--print", command->print, "print the job as resolved, with every default")->excludes(json);
  validate.callback([command, &chosen] { chosen = [command] { return run(*command); }; });
}

}  // namespace lockstep::launcher
