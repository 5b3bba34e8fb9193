# SPDX-License-Identifier: Apache-2.0
"""What a GPU host has: its GPUs, the CUDA toolkit, cuDNN and NCCL wherever they lie, a Python with PyTorch."""
import json
import os
import pathlib
import shutil
import sys

from gpu.process import run

SMI_FIELDS = ["name", "compute_cap", "driver_version", "memory.total"]
# Libraries that CMake finds by itself only where they are installed for the whole system: header, library.
LIBRARIES = {"cudnn": ("cudnn.h", "libcudnn.so*"), "nccl": ("nccl.h", "libnccl.so*"),
             "cublas": ("cublasLt.h", "libcublasLt.so*")}


def parse_smi(text):
    """The devices in nvidia-smi's answer to --query-gpu=SMI_FIELDS --format=csv,noheader,nounits."""
    devices = []
    for line in text.splitlines():
        values = [value.strip() for value in line.split(",")]
        if len(values) == len(SMI_FIELDS) and values[1].replace(".", "").isdigit():
            devices.append({"name": values[0], "compute_capability": values[1], "driver": values[2],
                            "memory_mib": int(values[3]) if values[3].isdigit() else None})
    return devices


def gpus():
    """(devices, why there are none)."""
    if not shutil.which("nvidia-smi"):
        return [], "nvidia-smi is not installed, so there is no NVIDIA driver"
    outcome = run(["nvidia-smi", f"--query-gpu={','.join(SMI_FIELDS)}", "--format=csv,noheader,nounits"], limit=60)
    devices = parse_smi(outcome.output) if outcome.ok else []
    return devices, None if devices else f"nvidia-smi lists none ({outcome.why()})"


def architectures(devices):
    """LOCKSTEP_CUDA_ARCHITECTURES for these devices: "90", or "80;90"."""
    return ";".join(sorted({device["compute_capability"].replace(".", "") for device in devices}, key=int))


def find_nvcc(roots=("/usr/local",)):
    """The folder of nvcc, or None."""
    found = shutil.which("nvcc")
    if found:
        return pathlib.Path(found).resolve().parent
    for root in roots:
        for nvcc in sorted(pathlib.Path(root).glob("cuda*/bin/nvcc"), reverse=True):
            return nvcc.parent
    return None


SITE = """
import json, site, sysconfig
folders = [sysconfig.get_paths()["purelib"], *site.getsitepackages(), site.getusersitepackages()]
try:
    import importlib.metadata as metadata
    torch = metadata.version("torch")
except Exception:
    torch = None
print(json.dumps({"folders": list(dict.fromkeys(folders)), "torch": torch}))
"""


def pythons(named=None):
    """The Pythons of this machine, or `named`, those with PyTorch first: [{"python", "folders", "torch"}]."""
    opt = pathlib.Path("/opt")
    in_opt = [str(path) for pattern in ("*/bin/python3", "*/.venv/bin/python3") for path in opt.glob(pattern)]
    candidates = [named] if named else ["python3", "python", sys.executable, *in_opt]
    found, seen = [], set()
    for candidate in candidates:
        path = shutil.which(candidate)
        if not path or path in seen:
            continue
        seen.add(path)
        outcome = run([path, "-c", SITE], limit=60)
        if outcome.ok:
            found.append({"python": path, **json.loads(outcome.output.splitlines()[-1])})
    return sorted(found, key=lambda entry: entry["torch"] is None)


def wheel_prefixes(site_folders, library):
    """Folders that hold include/ and lib/ of the library in NVIDIA's wheels, such as those that PyTorch depends on."""
    header, pattern = LIBRARIES[library]
    return [folder for site in site_folders for folder in sorted(pathlib.Path(site).glob("nvidia/*"))
            if (folder / "include" / header).exists() and any((folder / "lib").glob(pattern))]


def system_has(library, nvcc_folder):
    """Whether CMake finds it without being told: in the toolkit, or where distributions install."""
    header, pattern = LIBRARIES[library]
    roots = [pathlib.Path("/usr"), pathlib.Path("/usr/local"), *([nvcc_folder.parent] if nvcc_folder else [])]

    def somewhere(name, *patterns):
        return any(any(folder.glob(name)) for root in roots for where in patterns for folder in root.glob(where))

    return (somewhere(header, "include", "include/*-linux-gnu", "targets/*/include") and
            somewhere(pattern, "lib", "lib64", "lib/*-linux-gnu", "targets/*/lib"))


def find_libraries(nvcc_folder, site_folders):
    """{library: None where the system has it, its folder in a wheel, or "" where it is nowhere}."""
    found = {}
    for library in LIBRARIES:
        wheels = wheel_prefixes(site_folders, library)
        found[library] = None if system_has(library, nvcc_folder) else str(wheels[0]) if wheels else ""
    return found


def prepend(env, name, *folders):
    """Puts folders before those in the environment's colon-separated variable."""
    old = env.get(name)
    env[name] = ":".join([*map(str, folders), *([old] if old else [])])


def deps_environment(deps, env):
    """The environment after sourcing what scripts/fetch_deps wrote. Raises ValueError where that fails."""
    file = pathlib.Path(deps).resolve() / "environment"
    outcome = run(["bash", "-c", '. "$1" && env -0', "bash", file], limit=60, env=env)
    if not outcome.ok:
        raise ValueError(f"{file}: {outcome.why()}")
    return dict(entry.split("=", 1) for entry in outcome.output.split("\0") if "=" in entry)


def build_environment(nvcc_folder, libraries, deps=None):
    """The environment in which CMake, the tests and the command find everything."""
    env = dict(os.environ)
    if nvcc_folder:
        prepend(env, "PATH", nvcc_folder)
    for folder in filter(None, libraries.values()):
        prepend(env, "CMAKE_PREFIX_PATH", folder)
        prepend(env, "LD_LIBRARY_PATH", pathlib.Path(folder) / "lib")
        prepend(env, "CPATH", pathlib.Path(folder) / "include")
    return deps_environment(deps, env) if deps else env
