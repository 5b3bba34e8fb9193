// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "launcher/commands/commands.h"
#include "launcher/commands/doctor.h"

namespace lockstep::launcher {

namespace {

ExitCode run(bool json) {
  const nlohmann::ordered_json found = examine();
  // A driver's name of its device may be any bytes; JSON's text may not.
  const std::string text =
      json ? found.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n" : doctor_text(found);
  std::fputs(text.c_str(), stdout);
  return can_train(found) ? ExitCode::kDone : ExitCode::kEnvironment;
}

}  // namespace

void add_doctor(CLI::App& app, Action& chosen) {
  const auto json = std::make_shared<bool>(false);
  CLI::App& doctor = *app.add_subcommand("doctor", "say what this machine can train on, and what it lacks");
  doctor.add_flag("--json", *json, "print it as JSON");
  doctor.callback([json, &chosen] { chosen = [json] { return run(*json); }; });
}

}  // namespace lockstep::launcher
