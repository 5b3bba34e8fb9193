# SPDX-License-Identifier: Apache-2.0
"""Slurm on the hosts of a cluster: munge and slurmd on each, slurmctld on the first, in the namespaces of the hosts. All
that they write lies in the hosts' /run and /etc, and ends with them."""
import secrets
import shutil
import time

from cluster import PATH, ClusterError

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch")
START_S = 60
GRACE_S = 20  # between the signal to a preempted job and its end
# What jobs of two partitions may do to each other, and short times: nothing here waits for a person or for a slow site.
# A host may have more tasks than this machine has cores. The first host, which slurmctld has to go on, is the last to get
# jobs.
SETTINGS = """ClusterName=lockstep
SlurmctldHost={first}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=cred_expire=5
CryptoType=crypto/munge
StateSaveLocation=/run/slurm/state
SlurmdSpoolDir=/run/slurm/node
SlurmctldPidFile=/run/slurm/slurmctld.pid
SlurmdPidFile=/run/slurm/slurmd.pid
SlurmctldLogFile=/run/slurm/slurmctld.log
SlurmdLogFile=/run/slurm/slurmd.log
ProctrackType=proctrack/pgid
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
SchedulerType=sched/builtin
SchedulerParameters=batch_sched_delay=0,sched_min_interval=0,sched_interval=1
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
SlurmdTimeout=6
MessageTimeout=5
KillWait=10
ReturnToService=2
NodeName={first} CPUs=4 State=UNKNOWN Weight=2
NodeName={others} CPUs=4 State=UNKNOWN
PartitionName=work Nodes={nodes} Default=YES PriorityTier=1 PreemptMode=REQUEUE GraceTime={grace}
PartitionName=urgent Nodes={nodes} PriorityTier=2 PreemptMode=OFF
"""
# The key is munge's, the settings are Slurm's. No groups of control are used; slurmd looks for those of version 2.
PREPARES = """umask 022
mkdir -p /run/munge /run/slurm/state /run/slurm/node /etc/slurm
(umask 077; printf %s "$1" > /run/munge/key)
printf %s "$2" > /etc/slurm/slurm.conf
echo CgroupPlugin=cgroup/v1 > /etc/slurm/cgroup.conf
"""


def missing():
    """Why this machine can have no Slurm; empty where it can."""
    lacking = [program for program in PROGRAMS if not shutil.which(program, path=PATH)]
    return f"{', '.join(lacking)} not installed: scripts/setup slurm" if lacking else ""


class Slurm:
    def __init__(self, cluster):
        self.cluster = cluster
        self.hosts = list(cluster.status()["hosts"])
        self.first = self.hosts[0]

    def start(self, hosts):
        """The daemons of these hosts: all, or some whose power is on again, where nothing is left of Slurm."""
        if reason := missing():
            raise ClusterError(reason)
        for host in hosts:
            self.start_on(self.cluster.known(host))
        self.wait_for(hosts)

    def key(self):
        """munge's, which the hosts share."""
        file = self.cluster.state / "munge.key"
        if not file.exists():
            file.write_text(secrets.token_hex(64))
        return file.read_text()

    def start_on(self, host):
        settings = SETTINGS.format(first=self.first, others=",".join(self.hosts[1:]), nodes=",".join(self.hosts), grace=GRACE_S)
        self.on(host, "sh", "-ec", PREPARES, "slurm", self.key(), settings)
        self.on(host, "munged", *(f"--{kind}-file=/run/munge/{kind}" for kind in ("key", "log", "pid", "seed")))
        if host == self.first:
            self.on(host, "slurmctld")
        self.on(host, "slurmd", "-N", host)

    def on(self, host, *command):
        result = self.cluster.run(host, *command)
        if result.returncode:
            raise ClusterError(f"{' '.join(command[:3])} on {host}: {result.stderr.strip() or result.stdout.strip()}")
        return result.stdout.strip()

    def wait_for(self, hosts, state="idle"):
        end = time.monotonic() + START_S
        while (states := self.states()) is None or any(states.get(host) != state for host in hosts):
            if time.monotonic() > end:
                raise ClusterError(f"Slurm's nodes are not {state}: {states}")
            time.sleep(0.1)

    def states(self):
        """Of the nodes; None where slurmctld does not answer."""
        result = self.cluster.run(self.first, "sinfo", "--noheader", "--Node", "--partition", "work", "--format", "%N %T")
        return dict(line.split() for line in result.stdout.splitlines()) if result.returncode == 0 else None
