# SPDX-License-Identifier: Apache-2.0
"""The build for the GPUs of this host, in a folder of its own."""
import pathlib
import re

from gpu.process import run

TARGETS = ["all", "gpu_bench", "step_bench"]


def configure_command(root, folder, architectures, libraries):
    command = ["cmake", "-S", root, "-B", folder, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", "-DLOCKSTEP_CUDA=ON",
               f"-DLOCKSTEP_CUDA_ARCHITECTURES={architectures}",
               # A newer compiler's new warnings are no reason not to look at the GPU.
               "-DLOCKSTEP_WERROR=OFF"]
    if libraries.get("cublas"):
        found = sorted((pathlib.Path(libraries["cublas"]) / "lib").glob("libcublasLt.so*"))
        command.append(f"-DCUDA_cublasLt_LIBRARY={found[0]}")
    return command


def build_command(folder, jobs):
    # What does not compile must not keep the rest from being looked at.
    return ["cmake", "--build", folder, "--parallel", jobs, "--target", *TARGETS, "--", "-k", "0"]


def failures(output):
    """The targets that ninja could not make, and the compilers' first errors."""
    errors = [line.strip() for line in output.splitlines() if re.search(r"\berror\b[: ]|undefined reference", line)]
    return re.findall(r"^FAILED: (?:\[.*?\] )?(\S+)", output, re.MULTILINE), errors[:20]


def build(root, folder, architectures, libraries, env, logs, jobs, left):
    """{"ok", "seconds", "unfinished", "problems": [text]} of configuring and building, in the left() seconds; what was built stays."""
    if (folder / "CMakeCache.txt").exists():
        cached = (folder / "CMakeCache.txt").read_text(errors="replace")
        # Another toolkit or other packages than last time: what was found then does not hold.
        if f"LOCKSTEP_CUDA_ARCHITECTURES:STRING={architectures}\n" not in cached:
            (folder / "CMakeCache.txt").unlink()
    folder.mkdir(parents=True, exist_ok=True)
    configured = run(configure_command(root, folder, architectures, libraries), left(), logs / "configure.log", env=env)
    if not configured.ok:
        reasons = re.findall(r"CMake Error[^\n]*\n+(?:  [^\n]*\n?)+", configured.output)
        return {"ok": False, "seconds": configured.seconds, "unfinished": configured.timed_out,
                "problems": [" ".join(reason.split()) for reason in reasons[:3]] or [configured.why()]}
    built = run(build_command(folder, jobs), left(), logs / "build.log", env=env)
    problems = []
    if built.timed_out:
        problems = [f"{built.why()}; the next call goes on from there"]
    elif not built.ok:
        failed, errors = failures(built.output)
        problems = [f"not built: {', '.join(failed)}"] * bool(failed) + errors or [built.why()]
    return {"ok": built.ok, "seconds": configured.seconds + built.seconds, "unfinished": built.timed_out,
            "problems": problems}
