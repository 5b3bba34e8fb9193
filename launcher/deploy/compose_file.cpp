// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include "launcher/deploy/deployment.h"
#include "launcher/deploy/yaml_text.h"

namespace lockstep::launcher {

namespace {

constexpr const char* kService = R"(# A training on one machine.
#   docker compose -f FILE up       trains, or resumes what was stopped
#   docker compose -f FILE stop     saves and ends with 75
name: {name}
services:
  train:
    image: {image}
    entrypoint: [{program}]
    # Starts the ranks, and starts them again where one is lost.
    command: {command}
    # The owner of the run's files. Under podman without root add userns_mode: keep-id
    user: "{user}:{group}"
    # Job, data and run lie at the same path as outside.
    working_dir: {folder}
    volumes:
    - type: bind
      source: {folder}
      target: {folder}
    # Ranks share memory in /dev/shm.
    ipc: host
    # The time to save.
    stop_grace_period: {seconds}s
)";

constexpr const char* kComposeGpus = R"(    deploy:
      resources:
        reservations:
          devices:
          - driver: nvidia
            count: {}
            capabilities: [gpu]
)";

/// Compose takes $NAME for a variable, and $$ for a dollar.
std::string with_compose_dollars(const std::string& text) {
  std::string result;
  for (const char c : text) result += c == '$' ? "$$" : std::string(1, c);
  return result;
}

std::string in_compose(const std::string& text) { return yaml_quoted(with_compose_dollars(text)); }

}  // namespace

std::string compose_file(const Deployment& deployment) {
  std::vector<std::string> command;
  for (const std::string& word : deployment.train) command.push_back(with_compose_dollars(word));
  command.insert(command.end(),
                 {"--nproc", std::to_string(deployment.ranks), "--max-restarts", std::to_string(kRestarts)});
  std::string file = fmt::format(
      kService, fmt::arg("name", yaml_quoted(deployment.name)), fmt::arg("image", in_compose(deployment.image)),
      fmt::arg("program", in_compose(deployment.program)), fmt::arg("command", indented(yaml_words(command), 4)),
      fmt::arg("user", getuid()), fmt::arg("group", getgid()), fmt::arg("folder", in_compose(deployment.folder)),
      fmt::arg("seconds", kSecondsToSave));
  if (deployment.cpus > 0) file += fmt::format("    cpus: {}\n", deployment.cpus * deployment.ranks);
  if (deployment.gpus > 0) file += fmt::format(kComposeGpus, deployment.gpus);
  return file;
}

}  // namespace lockstep::launcher
