#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The files of `lockstep launch` start what was asked for: from a folder whose name holds all that a shell, YAML, compose and
Kubernetes read in their own ways. LOCKSTEP_BINARY is the command."""
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "support"))
from launched import in_compose, in_kubernetes, pods_of, process_of  # noqa: E402

try:
    import yaml
except ImportError:
    print("skipped: python3-yaml is not installed: scripts/setup test")
    sys.exit(77)

BINARY = Path(os.environ["LOCKSTEP_BINARY"])
CONFIGS = Path(__file__).resolve().parents[3] / "configs"
ODD = "it's \"here\" $HOME $$ $(id) `id` é"
SETTINGS = ("train.steps=20", "schedule={ cosine { warmup_steps: 5 } }")
# The names of kubeflow.org/v2beta1.
MPI_JOB = {"slotsPerWorker", "runLauncherAsWorker", "runPolicy", "mpiReplicaSpecs", "sshAuthMountPath", "launcherCreationPolicy",
           "mpiImplementation"}
RUN_POLICY = {"cleanPodPolicy", "ttlSecondsAfterFinished", "activeDeadlineSeconds", "backoffLimit", "schedulingPolicy", "suspend",
              "managedBy"}
REPLICAS = {"replicas", "restartPolicy", "template"}
CONTAINERS = ("--image", "registry.example/lockstep:1")
CLUSTER = (*CONTAINERS, "--claim", "data")


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Launch(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.scratch = Path(scratch.name).resolve()
        self.folder = self.scratch / ODD
        self.folder.mkdir()
        self.job = self.folder / "a job.pbtxt"
        shutil.copy(CONFIGS / "digits_mlp.pbtxt", self.job)
        (self.folder / "data").symlink_to(CONFIGS / "data")
        self.run_dir = self.folder / "runs/digits_mlp"

    def launch(self, target, *options, job="a job.pbtxt", settings=SETTINGS):
        settings = [word for setting in settings for word in ("--set", setting)]
        return subprocess.run([BINARY, "launch", target, job, *settings, *options], cwd=self.folder, capture_output=True, text=True, check=False)

    def written(self, target, *options, **more):
        ended = self.launch(target, *options, **more)
        self.assertEqual(ended.returncode, 0, ended.stderr)
        return ended.stdout

    def words(self, *more, device="cpu", settings=SETTINGS):
        settings = [word for setting in settings for word in ("--set", setting)]
        return ["train", str(self.job), *settings, "--run-dir", str(self.run_dir), "--device", device, *more]

    def program(self, name, text):
        """A stand-in, in the first folder of PATH."""
        programs = self.scratch / "programs"
        programs.mkdir(exist_ok=True)
        (programs / name).write_text("#!/bin/sh\n" + text)
        (programs / name).chmod(0o755)
        return {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"}

    def refused(self, what, *arguments):
        ended = self.launch(*arguments)
        self.assertEqual((ended.returncode, ended.stdout), (2, ""), ended.stderr)
        self.assertIn(what, ended.stderr)


class Slurm(Launch):
    def run_script(self, code, restarts=0):
        """The words that srun got, and those of scontrol, where the ranks end with the code."""
        said = self.scratch / "said"
        said.unlink(missing_ok=True)
        self.program("srun", f"printf '%s\\0' \"$@\" > {self.scratch}/srun; exit {code}\n")
        variables = self.program("scontrol", f"echo \"$@\" > {said}\n")
        variables |= {"SLURM_JOB_ID": "7", "SLURM_CPUS_PER_TASK": "8", "SLURM_RESTART_COUNT": str(restarts)}
        ended = subprocess.run(["bash", self.scratch / "job.sbatch"], env=variables, check=False)
        self.assertEqual(ended.returncode, code)
        return (self.scratch / "srun").read_text().split("\0")[:-1], said.read_text() if said.exists() else ""

    def write(self, *options):
        (self.scratch / "job.sbatch").write_text(self.written("slurm", *options))

    def options(self):
        return dict(re.findall(r"(?m)^#SBATCH --([a-z-]+)(?:=(\S*))?$", (self.scratch / "job.sbatch").read_text()))

    def test_srun_gets_the_words_of_the_command(self):
        self.write("--nodes", "2", "--ranks-per-node", "4", "--cpus-per-rank", "8", "--hours", "1.5")
        words, _ = self.run_script(0)
        self.assertEqual(words, ["--mpi=pmix", "--kill-on-bad-exit=0", "--cpus-per-task=8", "lockstep", *self.words()])
        self.assertEqual(self.options(), {
            "job-name": "digits-mlp", "nodes": "2", "ntasks-per-node": "4", "cpus-per-task": "8", "time": "1:30:00",
            "requeue": "", "signal": "USR1@120", "open-mode": "append"})

    def test_ranks_without_mpi_on_gpus_over_a_network(self):
        self.write("--gpus-per-node", "8", "--plain", "--interface", "10.0.0.0/24", "--name", "mine")
        words, _ = self.run_script(0)
        self.assertEqual(words[:1], ["--mpi=none"])
        self.assertEqual(words[4:], self.words("--interface", "10.0.0.0/24", device="cuda"))
        found = self.options()
        self.assertEqual((found["gpus-per-node"], found["ntasks-per-node"], found["time"], found["job-name"]), ("8", "8", "24:00:00", "mine"))

    def test_a_name_of_other_characters_becomes_a_label(self):
        for name, label in (("2_Big_Nets_", "job-2-big-nets"), ("_" * 60, "job"), ("a" * 60, "a" * 40)):
            self.assertIn(f"#SBATCH --job-name={label}\n", self.written("slurm", settings=(f"name={name}",)))

    def test_what_was_saved_or_has_lost_a_rank_is_requeued(self):
        self.write()
        for code, restarts, again in ((75, 99, True), (138, 0, True), (143, 0, True), (7, 9, True), (137, 9, True),
                                      (7, 10, False), (0, 0, False), (2, 0, False), (5, 0, False)):
            with self.subTest(code=code, restarts=restarts):
                self.assertEqual(self.run_script(code, restarts)[1], "requeue 7\n" if again else "")


class Kubernetes(Launch):
    def check_pod(self, pod):
        container, = pod["containers"]
        self.assertEqual(container["image"], CONTAINERS[1])
        self.assertEqual(container["workingDir"], str(self.folder))
        self.assertEqual([mount["name"] for mount in container["volumeMounts"]], [volume["name"] for volume in pod["volumes"]])
        self.assertEqual([mount["mountPath"] for mount in container["volumeMounts"]], [str(self.folder), "/dev/shm"])
        self.assertEqual(pod["volumes"][0]["persistentVolumeClaim"], {"claimName": "data"})
        self.assertEqual(pod["terminationGracePeriodSeconds"], 120)
        script = in_kubernetes(container["command"][2])
        self.assertEqual(subprocess.run(["bash", "-n"], input=script, text=True, check=False).returncode, 0, script)

    def indexed(self, *options, **more):
        service, job = yaml.safe_load_all(self.written("kubernetes", "--plain", *CLUSTER, *options, **more))
        self.check_pod(*pods_of(job))
        return service, job

    def start(self, job, index, port):
        words, variables = process_of(*pods_of(job))
        self.assertEqual(variables["MASTER_ADDR"], f"{job['metadata']['name']}-0.{job['metadata']['name']}")
        variables |= {"JOB_COMPLETION_INDEX": str(index), "MASTER_ADDR": "localhost", "MASTER_PORT": str(port)}
        environment = {**os.environ, **variables, "PATH": f"{BINARY.parent}:{os.environ['PATH']}"}
        return subprocess.Popen(words, env=environment, cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def test_an_indexed_job_has_a_pod_a_node_that_a_service_names(self):
        service, job = self.indexed("--nodes", "3", "--gpus-per-node", "2", "--cpus-per-rank", "4", "--hours", "2")
        self.assertEqual((service["metadata"]["name"], service["spec"]["clusterIP"]), ("digits-mlp", "None"))
        spec = job["spec"]
        self.assertEqual((spec["completionMode"], spec["completions"], spec["parallelism"]), ("Indexed", 3, 3))
        self.assertEqual(spec["activeDeadlineSeconds"], 7200)
        pod = spec["template"]["spec"]
        self.assertEqual((pod["restartPolicy"], pod["subdomain"]), ("Never", service["metadata"]["name"]))
        self.assertEqual(service["spec"]["selector"], spec["template"]["metadata"]["labels"])
        self.assertEqual(pod["containers"][0]["resources"], {"requests": {"cpu": "8"}, "limits": {"cpu": "8", "nvidia.com/gpu": "2"}})
        words, variables = process_of(pod)
        self.assertEqual(words[3:], ["lockstep", *self.words(device="cuda")])
        self.assertEqual((variables["WORLD_SIZE"], variables["LOCAL_WORLD_SIZE"]), ("6", "2"))
        rules = {rule["action"]: rule["onExitCodes"]["values"] for rule in spec["podFailurePolicy"]["rules"] if "onExitCodes" in rule}
        self.assertIn(75, rules["Ignore"])
        self.assertNotIn(7, rules["FailJob"])

    def test_the_ranks_of_two_pods_train_together(self):
        _, job = self.indexed("--nodes", "2", "--ranks-per-node", "2")
        port = free_port()
        pods = [self.start(job, index, port) for index in range(2)]
        texts = [pod.communicate()[0] for pod in pods]
        self.assertEqual([pod.returncode for pod in pods], [0, 0], texts)
        self.assertEqual(json.loads((self.run_dir / "summary.json").read_text())["world_size"], 4)

    def test_a_pod_that_is_asked_to_end_saves_and_says_so(self):
        _, job = self.indexed("--ranks-per-node", "2", settings=("train.steps=1000000", "schedule=unset"))
        pod = self.start(job, 0, free_port())
        metrics = self.run_dir / "metrics.jsonl"
        while pod.poll() is None and not (metrics.exists() and metrics.read_text()):
            time.sleep(0.05)
        pod.send_signal(signal.SIGTERM)
        text = pod.communicate()[0]
        self.assertEqual(pod.returncode, 75, text)
        self.assertTrue(list(self.run_dir.glob("checkpoints/step-*")), text)

    def test_a_pod_ends_with_the_highest_code_of_its_ranks(self):
        _, job = self.indexed("--ranks-per-node", "3")
        words, variables = process_of(*pods_of(job))
        environment = self.program("lockstep", "case $RANK in 3) exit 0 ;; 4) exit 137 ;; 5) exit 7 ;; esac\n")
        ended = subprocess.run(words, env={**environment, **variables, "JOB_COMPLETION_INDEX": "1"}, check=False)
        self.assertEqual(ended.returncode, 137)

    def test_an_mpi_job_has_the_fields_of_its_interface(self):
        job = yaml.safe_load(self.written("kubernetes", *CLUSTER, "--nodes", "3", "--gpus-per-node", "2", "--hours", "2"))
        self.assertEqual((job["apiVersion"], job["kind"], set(job)), ("kubeflow.org/v2beta1", "MPIJob", {"apiVersion", "kind", "metadata", "spec"}))
        spec = job["spec"]
        self.assertLessEqual(set(spec), MPI_JOB)
        self.assertLessEqual(set(spec["runPolicy"]), RUN_POLICY)
        self.assertEqual((spec["slotsPerWorker"], spec["runPolicy"]["activeDeadlineSeconds"]), (2, 7200))
        self.assertEqual(set(spec["mpiReplicaSpecs"]), {"Launcher", "Worker"})
        for replicas in spec["mpiReplicaSpecs"].values():
            self.assertEqual(set(replicas), REPLICAS)
            self.check_pod(replicas["template"]["spec"])
        launcher, worker = (spec["mpiReplicaSpecs"][name] for name in ("Launcher", "Worker"))
        self.assertEqual((launcher["replicas"], worker["replicas"]), (1, 3))
        limits = [pod["containers"][0]["resources"].get("limits") for pod in pods_of(job)]
        self.assertEqual(limits, [None, {"nvidia.com/gpu": "2"}])

    def test_the_launcher_of_an_mpi_job_starts_ranks_on_the_hosts_of_the_operator(self):
        job = yaml.safe_load(self.written("kubernetes", *CLUSTER, "--nodes", "2", "--ranks-per-node", "4"))
        (self.scratch / "mpi-ssh").mkdir()
        (self.scratch / "mpi-ssh/id_rsa").write_text("a key")
        (self.scratch / "mpi").mkdir()
        (self.scratch / "mpi/hostfile").write_text("digits-worker-0.digits.a.svc slots=4\ndigits-worker-1.digits.a.svc slots=4\n")
        words, _ = process_of(pods_of(job)[0])
        words[2] = words[2].replace("/etc/mpi", f"{self.scratch}/mpi")
        environment = self.program("lockstep", "printf '%s\\0' \"$@\"\n") | {"HOME": str(self.scratch)}
        ended = subprocess.run(words, env=environment, capture_output=True, text=True, check=True)
        self.assertEqual(ended.stdout.split("\0")[:-1], self.words("--max-restarts", "10", "--hosts", "digits-worker-0.digits.a.svc:4,digits-worker-1.digits.a.svc:4"))
        key = self.scratch / ".ssh/id_mpi"
        self.assertEqual((key.read_text(), key.stat().st_mode & 0o777), ("a key", 0o600))


class Compose(Launch):
    def test_a_service_trains_the_job_where_it_lies(self):
        file = yaml.safe_load(self.written("compose", *CONTAINERS, "--ranks-per-node", "2", "--cpus-per-rank", "3"))
        service = file["services"]["train"]
        self.assertEqual([in_compose(word) for word in (*service["entrypoint"], *service["command"])],
                         ["lockstep", *self.words("--nproc", "2", "--max-restarts", "10")])
        volume, = service["volumes"]
        self.assertEqual({in_compose(volume["source"]), in_compose(volume["target"])}, {str(self.folder)})
        self.assertEqual((service["user"], service["cpus"], service["stop_grace_period"]), (f"{os.getuid()}:{os.getgid()}", 6, "120s"))

    def test_gpus_are_reserved(self):
        file = yaml.safe_load(self.written("compose", *CONTAINERS, "--gpus-per-node", "2"))
        device, = file["services"]["train"]["deploy"]["resources"]["reservations"]["devices"]
        self.assertEqual(device, {"driver": "nvidia", "count": 2, "capabilities": ["gpu"]})


class WrongUse(Launch):
    def test_a_target_refuses_what_it_has_no_use_for(self):
        for target, *options in (("slurm", "--image", "x"), ("slurm", "--claim", "x"), ("slurm", "--folder", "."),
                                 ("compose", "--nodes", "2"), ("compose", "--plain"), ("compose", "--hours", "1"),
                                 ("compose", "--interface", "eth0"), ("compose", "--claim", "x")):
            self.refused(f"and not for {target}", target, *options)

    def test_what_is_missing_or_wrong_is_named(self):
        self.refused("compose needs --image", "compose")
        self.refused("kubernetes needs --claim", "kubernetes", *CONTAINERS)
        self.refused("--gpus-per-node", "slurm", "--gpus-per-node", "2", "--ranks-per-node", "2")
        self.refused("is no name that Kubernetes takes", "slurm", "--name", "My_Job")
        self.refused("TARGET", "pbs")
        self.refused("did you mean", "slurm", "--node", "2")

    def test_a_job_that_is_not_sound_is_refused_as_validate_does(self):
        self.refused("did you mean \"steps\"?", "slurm", "--set", "train.stepz=1")
        kill = ("--set", "fault={kill{step:3 rank:2}}")
        self.refused("fault", "slurm", "--nodes", "2", *kill)
        self.written("slurm", "--nodes", "3", *kill)

    def test_containers_see_the_folder_alone(self):
        (self.scratch / "runs").mkdir()
        self.refused("--run-dir", "compose", *CONTAINERS, "--run-dir", "../runs")
        self.refused("data.train", "compose", *CONTAINERS, "--set", f"data.train.idx.images={CONFIGS}/data/digits/train-images-idx3-ubyte.gz")
        self.written("compose", *CONTAINERS, "--run-dir", "../runs", "--folder", "..")

    def test_a_name_that_yaml_cannot_hold_is_refused(self):
        (self.folder / os.fsdecode(b"\xff.pbtxt")).write_bytes(self.job.read_bytes())
        ended = self.launch("compose", *CONTAINERS, job=b"\xff.pbtxt")
        self.assertEqual(ended.returncode, 2)
        self.assertIn("no UTF-8", ended.stderr)

    def test_a_file_is_written_once(self):
        self.assertIn("next      sbatch 'my job'", self.written("slurm", "--out", "my job"))
        before = (self.folder / "my job").read_text()
        self.assertEqual(before, self.written("slurm"))
        self.refused("exists already", "slurm", "--out", "my job", "--nodes", "2")
        self.assertEqual((self.folder / "my job").read_text(), before)


if __name__ == "__main__":
    unittest.main()
