// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "launcher/commands/autocast_inspection.h"
#include "launcher/commands/commands.h"
#include "launcher/commands/inspection.h"

namespace lockstep::launcher {

namespace {

using Json = nlohmann::ordered_json;

struct InspectCommand {
  std::string path;
  bool autocast = false;
  std::vector<std::string> overrides;
  bool json = false;
};

void print(const Json& found, const std::string& text, bool json) {
  // Names inside a file may be any bytes; JSON may not.
  std::fputs((json ? found.dump(2, ' ', false, Json::error_handler_t::replace) + "\n" : text).c_str(), stdout);
}

ExitCode run(const InspectCommand& command) {
  if (command.autocast) {
    const Json found = inspect_autocast(job::load(command.path, command.overrides));
    print(found, autocast_text(found), command.json);
    return ExitCode::kDone;
  }
  const Json found = inspect(command.path);
  print(found, inspection_text(found), command.json);
  return is_damaged(found) ? ExitCode::kStorage : ExitCode::kDone;
}

}  // namespace

void add_inspect(CLI::App& app, Action& chosen) {
  const auto command = std::make_shared<InspectCommand>();
  CLI::App& inspect =
      *app.add_subcommand("inspect", "say what a checkpoint, a run, a bundle or a *.safetensors file holds");
  inspect
      .add_option("PATH", command->path, "the checkpoint, the run's directory or the file; with --autocast, the job")
      ->required();
  CLI::Option* autocast =
      inspect.add_flag("--autocast", command->autocast,
                       "run a forward pass of the job PATH and say which dtypes its operations run in, and why");
  add_overrides(inspect, command->overrides)->needs(autocast);
  inspect.add_flag("--json", command->json, "print it as JSON");
  inspect.callback([command, &chosen] { chosen = [command] { return run(*command); }; });
}

}  // namespace lockstep::launcher
