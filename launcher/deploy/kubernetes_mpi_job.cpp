// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "launcher/deploy/kubernetes_pod.h"
#include "launcher/deploy/yaml_text.h"

namespace lockstep::launcher {

namespace {

constexpr const char* kMpiJob =
    R"(# A training whose ranks mpirun starts, for the MPI operator of Kubeflow. The image has sshd: the target `cluster` of
# the Containerfile.
#   kubectl apply -f FILE
apiVersion: kubeflow.org/v2beta1
kind: MPIJob
metadata:
  name: {name}
spec:
  slotsPerWorker: {ranks}
  # The key with which the launcher reaches the workers.
  sshAuthMountPath: /etc/mpi-ssh
  launcherCreationPolicy: WaitForWorkersReady
  runPolicy:
    cleanPodPolicy: Running
    # Restarts of the launcher, after a save on a signal too.
    backoffLimit: {restarts}
{deadline}  mpiReplicaSpecs:
    Launcher:
      replicas: 1
      restartPolicy: OnFailure
      template:
        spec:
          {launcher}
    Worker:
      replicas: {nodes}
      restartPolicy: OnFailure
      template:
        spec:
          {worker}
)";

constexpr const char* kLaunches = R"(# The operator's key and hosts, as ssh and the command read them.
umask 077
mkdir -p ~/.ssh
cp /etc/mpi-ssh/id_rsa ~/.ssh/id_mpi
cat > ~/.ssh/config << END
Port 2222
IdentityFile ~/.ssh/id_mpi
StrictHostKeyChecking no
UserKnownHostsFile /dev/null
LogLevel ERROR
END
hosts=$(sed 's/ slots=/:/' /etc/mpi/hostfile | paste -s -d ,)
# A restart waits for a worker that is started elsewhere. On SIGTERM the ranks save.
exec "$0" "$@" --hosts "$hosts"
)";

constexpr const char* kListens = R"(ssh-keygen -q -t ed25519 -N '' -f /tmp/host_key
exec /usr/sbin/sshd -D -e -f /dev/null -p 2222 -h /tmp/host_key -o PidFile=none -o UsePAM=no -o StrictModes=no \
  -o PasswordAuthentication=no -o AuthorizedKeysFile=/etc/mpi-ssh/authorized_keys
)";

constexpr const char* kListening = R"(readinessProbe:
  tcpSocket:
    port: 2222
)";

}  // namespace

std::string kubernetes_mpi_job(const Deployment& deployment) {
  std::vector<std::string> words = train_words(deployment);
  words.insert(words.end(), {"--max-restarts", std::to_string(kRestarts)});
  const std::string launcher = kubernetes_pod(deployment, kubernetes_command(kLaunches, words), false);
  const std::string worker = kubernetes_pod(deployment, kubernetes_command(kListens, {}) + kListening, true);
  const std::string deadline =
      deployment.minutes > 0 ? fmt::format("    activeDeadlineSeconds: {}\n", deployment.minutes * 60) : "";
  return fmt::format(kMpiJob, fmt::arg("name", yaml_quoted(deployment.name)), fmt::arg("ranks", deployment.ranks),
                     fmt::arg("restarts", kRestarts), fmt::arg("deadline", deadline),
                     fmt::arg("nodes", deployment.nodes), fmt::arg("launcher", indented(launcher, 10)),
                     fmt::arg("worker", indented(worker, 10)));
}

}  // namespace lockstep::launcher
