// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "launcher/commands/commands.h"
#include "launcher/commands/doctor.h"
#include "launcher/hosts/answers.h"
#include "launcher/hosts/host_list.h"
#include "launcher/hosts/hosts_examination.h"
#include "launcher/supervisor/launch_options.h"
#include "launcher/supervisor/mpirun.h"

namespace lockstep::launcher {

namespace {

struct DoctorCommand {
  bool json = false;
  std::string hosts;
  std::string interface;
  std::string answer;  ///< the folder in which ranks would start; empty: not the other end of an examination
};

void print(const DoctorCommand& command, const nlohmann::ordered_json& found,
           std::string (*text)(const nlohmann::ordered_json&)) {
  // A driver's name of its device may be any bytes; JSON's text may not.
  const std::string words =
      command.json ? found.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n" : text(found);
  std::fputs(words.c_str(), stdout);
}

ExitCode run(const DoctorCommand& command) {
  if (!command.answer.empty()) {
    answer_about_this_host(command.answer);
    return ExitCode::kDone;
  }
  if (command.hosts.empty()) {
    const nlohmann::ordered_json found = examine();
    print(command, found, doctor_text);
    return can_train(found) ? ExitCode::kDone : ExitCode::kEnvironment;
  }
  ranks_on(command.hosts);
  const nlohmann::ordered_json found = examine_hosts(host_names(command.hosts));
  print(command, found, hosts_text);
  return found["findings"].empty() ? ExitCode::kDone : ExitCode::kEnvironment;
}

}  // namespace

void add_doctor(CLI::App& app, Action& chosen) {
  const auto command = std::make_shared<DoctorCommand>();
  CLI::App& doctor =
      *app.add_subcommand("doctor", "say what this machine, or several, can train on, and what they lack");
  CLI::Option* const hosts =
      doctor.add_option("--hosts", command->hosts, "try what ranks on these hosts need: ssh, programs, networks")
          ->type_name("A,B")
          ->check(not_empty());
  CLI::Option* const interface = add_interface(doctor, command->interface);
  // The other end of an examination of hosts; ssh starts it.
  doctor.add_option("--answer", command->answer)->group("")->excludes(hosts);
  doctor.callback([=, &chosen] {
    if (interface->count() > 0 && command->hosts.empty() && command->answer.empty())
      throw CLI::RequiresError("--interface", "--hosts");
    chosen = [command] { return run(*command); };
  });
  doctor.add_flag("--json", command->json, "print it as JSON");
}

}  // namespace lockstep::launcher
