// SPDX-License-Identifier: Apache-2.0
#include "launcher/command_inspect.h"

#include <cstdio>
#include <memory>

#include "launcher/inspection.h"
#include "launcher/inspection_text.h"

namespace lockstep::launcher {

namespace {

struct InspectCommand {
  std::string path;
  bool json = false;
};

ExitCode run(const InspectCommand& command) {
  const nlohmann::ordered_json found = inspect(command.path);
  // Names inside a file may be any bytes; JSON may not.
  const std::string text = command.json
                               ? found.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n"
                               : inspection_text(found);
  std::fputs(text.c_str(), stdout);
  return is_damaged(found) ? ExitCode::kStorage : ExitCode::kDone;
}

}  // namespace

void add_inspect(CLI::App& app, Action& chosen) {
  const auto command = std::make_shared<InspectCommand>();
  CLI::App& inspect = *app.add_subcommand("inspect", "say what a checkpoint, a run or a *.safetensors file holds");
  inspect.add_option("PATH", command->path, "the checkpoint, the run's directory or the file")->required();
  inspect.add_flag("--json", command->json, "print it as JSON");
  inspect.callback([command, &chosen] { chosen = [command] { return run(*command); }; });
}

}  // namespace lockstep::launcher
