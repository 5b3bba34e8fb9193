# SPDX-License-Identifier: Apache-2.0
"""The files of `lockstep launch` as compose and Kubernetes read them."""
import re


def with_dollars(text, variable):
    """The text as it is handed on; an error where some of it would be taken for a variable."""
    def replaced(match):
        assert match[0] == "$$", f"a variable in {text}"
        return "$"
    return re.sub(rf"\$\$|{variable}", replaced, text)


def in_compose(text):
    return with_dollars(text, r"\$")


def in_kubernetes(text):
    return with_dollars(text, r"\$\(")


def pods_of(document):
    """The specification of an indexed Job's pods; those of an MPIJob's launcher and workers."""
    if document["kind"] == "Job":
        return [document["spec"]["template"]["spec"]]
    return [document["spec"]["mpiReplicaSpecs"][name]["template"]["spec"] for name in ("Launcher", "Worker")]


def process_of(pod):
    """The command of a pod and its variables."""
    container, = pod["containers"]
    words = [in_kubernetes(word) for word in (*container["command"], *container.get("args", []))]
    return words, {entry["name"]: entry["value"] for entry in container.get("env", [])}
