// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "launcher/deploy/deployment.h"

namespace lockstep::launcher {

/// Lines of a container that runs a shell with the script, and gives it `words`: $0, then "$@". No dollar of theirs is
/// one of Kubernetes'.
std::string kubernetes_command(const std::string& script, const std::vector<std::string>& words);

/// The specification of a pod with one container, of the name `train`. `process`: lines of the container; `computes`:
/// whether the ranks of a node run in it.
std::string kubernetes_pod(const Deployment& deployment, const std::string& process, bool computes);

/// The program and its arguments.
std::vector<std::string> train_words(const Deployment& deployment);

}  // namespace lockstep::launcher
