// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "launcher/deploy/kubernetes_pod.h"
#include "launcher/deploy/yaml_text.h"

namespace lockstep::launcher {

namespace {

constexpr const char* kJob =
    R"(# A training whose ranks join over TCP: a pod a node, several ranks in each. Kubernetes 1.29 or newer.
#   kubectl apply -f FILE
# Gives the pods names, of which the first is where rank 0 is.
apiVersion: v1
kind: Service
metadata:
  name: {name}
spec:
  clusterIP: None
  publishNotReadyAddresses: true
  selector:
    app: {name}
---
apiVersion: batch/v1
kind: Job
metadata:
  name: {name}
spec:
  completionMode: Indexed
  completions: {nodes}
  parallelism: {nodes}
  # Where a rank is lost, the pods of all ranks end, and start again from the newest checkpoint.
  backoffLimit: {restarts}
{deadline}  podFailurePolicy:
    rules:
    # The job, the machine or the numbers are wrong: once more would be the same.
    - action: FailJob
      onExitCodes:
        containerName: train
        operator: In
        values: [2, 3, 4, 5, 6]
    # Saved on a signal, or had not begun when it came.
    - action: Ignore
      onExitCodes:
        containerName: train
        operator: In
        values: [75, 143]
    # Preempted, or its node was drained.
    - action: Ignore
      onPodConditions:
      - type: DisruptionTarget
        status: "True"
  template:
    metadata:
      labels:
        app: {name}
    spec:
      subdomain: {name}
      restartPolicy: Never
      {pod}
)";

constexpr const char* kRanksOfAPod =
    R"(# Starts this pod's ranks. They get SIGTERM and save; the exit code is the highest of theirs.
trap 'kill -TERM $ranks' TERM
ranks= LOCAL_RANK=0 code=0
while [ $LOCAL_RANK -lt $LOCAL_WORLD_SIZE ]; do
  export LOCAL_RANK RANK=$((JOB_COMPLETION_INDEX * LOCAL_WORLD_SIZE + LOCAL_RANK))
  "$0" "$@" &
  ranks="$ranks $!" LOCAL_RANK=$((LOCAL_RANK + 1))
done
for rank in $ranks; do
  wait $rank
  ended=$?
  # The signal has ended the wait, and not the rank.
  while kill -0 $rank 2> /dev/null; do wait $rank; ended=$?; done
  [ $ended -le $code ] || code=$ended
done
exit $code
)";

constexpr const char* kVariables = R"(env:
- name: WORLD_SIZE
  value: "{0}"
- name: LOCAL_WORLD_SIZE
  value: "{1}"
- name: MASTER_ADDR
  value: {2}-0.{2}
- name: MASTER_PORT
  value: "29500"
)";

}  // namespace

std::string kubernetes_indexed_job(const Deployment& deployment) {
  const std::string process =
      kubernetes_command(kRanksOfAPod, train_words(deployment)) +
      fmt::format(kVariables, deployment.nodes * deployment.ranks, deployment.ranks, deployment.name);
  const std::string deadline =
      deployment.minutes > 0 ? fmt::format("  activeDeadlineSeconds: {}\n", deployment.minutes * 60) : "";
  return fmt::format(kJob, fmt::arg("name", yaml_quoted(deployment.name)), fmt::arg("nodes", deployment.nodes),
                     fmt::arg("restarts", kRestarts * deployment.nodes), fmt::arg("deadline", deadline),
                     fmt::arg("pod", indented(kubernetes_pod(deployment, process, true), 6)));
}

}  // namespace lockstep::launcher
