// SPDX-License-Identifier: Apache-2.0
#include "launcher/deploy/kubernetes_pod.h"

#include <fmt/format.h>

#include "launcher/deploy/yaml_text.h"

namespace lockstep::launcher {

namespace {

constexpr const char* kPod = R"(terminationGracePeriodSeconds: {seconds}
# The user of the image may write into the volume.
securityContext:
  fsGroup: 1000
containers:
- name: train
  image: {image}
  workingDir: {folder}
  {process}
  resources:{resources}
  volumeMounts:
  - name: work
    mountPath: {folder}
  - name: shared-memory
    mountPath: /dev/shm
volumes:
# Holds job, data and run, as the folder here does.
- name: work
  persistentVolumeClaim:
    claimName: {claim}
# Ranks of a node share it.
- name: shared-memory
  emptyDir:
    medium: Memory)";

/// Kubernetes takes $(NAME) for a variable, and $$ for a dollar.
std::string with_kubernetes_dollars(const std::string& text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    result += text[i];
    if (text[i] == '$' && i + 1 < text.size() && (text[i + 1] == '(' || text[i + 1] == '$')) result += '$';
  }
  return result;
}

std::string resources_of(const Deployment& deployment) {
  std::string resources;
  if (deployment.cpus > 0) {
    resources += fmt::format("\n    requests:\n      cpu: \"{0}\"\n    limits:\n      cpu: \"{0}\"",
                             deployment.cpus * deployment.ranks);
  }
  if (deployment.gpus > 0) {
    resources +=
        fmt::format("{}\n      nvidia.com/gpu: \"{}\"", resources.empty() ? "\n    limits:" : "", deployment.gpus);
  }
  return resources.empty() ? " {}" : resources;
}

}  // namespace

std::string kubernetes_command(const std::string& script, const std::vector<std::string>& words) {
  std::vector<std::string> arguments;
  for (const std::string& word : words) arguments.push_back(with_kubernetes_dollars(word));
  return "command:\n- sh\n- -c\n- |\n  " + indented(with_kubernetes_dollars(script), 2) +
         (words.empty() ? "" : "args: " + yaml_words(arguments) + "\n");
}

std::string kubernetes_pod(const Deployment& deployment, const std::string& process, bool computes) {
  std::string lines = process;
  lines.pop_back();  // its last end of line
  return fmt::format(kPod, fmt::arg("seconds", kSecondsToSave), fmt::arg("image", yaml_quoted(deployment.image)),
                     fmt::arg("folder", yaml_quoted(deployment.folder)), fmt::arg("process", indented(lines, 2)),
                     fmt::arg("resources", computes ? resources_of(deployment) : " {}"),
                     fmt::arg("claim", yaml_quoted(deployment.claim)));
}

std::vector<std::string> train_words(const Deployment& deployment) {
  std::vector<std::string> words{deployment.program};
  words.insert(words.end(), deployment.train.begin(), deployment.train.end());
  return words;
}

}  // namespace lockstep::launcher
