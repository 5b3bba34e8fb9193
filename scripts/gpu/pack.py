# SPDX-License-Identifier: Apache-2.0
"""What runs on a GPU's machine without a build there: programs, small shared libraries, Open MPI, the list of tests.

An archive holds bin/ stripped, usr/ with libraries and Open MPI, CTest's files, which unpack() makes those of the folder
that they lie in then, and pack.json: commit, architectures, what the build's paths were (root, build, python, mpiexec),
programs by their names in bin/, and `opened`, the libraries that are opened by name while a program runs. CUDA's libraries, the C library and the compiler's are the
other machine's; missing() names what it lacks of them.
"""
import hashlib
import json
import lzma
import pathlib
import re
import shutil
import sys
import tarfile
import tempfile

from gpu import suite
from gpu.process import run

BENCHES = ["lockstep", "step_bench", "gpu_bench"]
LIMIT = 56 << 20  # bytes of an archive, at most: with the sources it travels in 64 MiB
# The programs have most of their bytes in common: the window reaches over several of them.
FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 0, "dict_size": 128 << 20}]
THEIRS = re.compile(r"(ld-linux.*|lib(c|m|dl|rt|pthread|resolv|util|gcc_s|stdc\+\+|gomp|atomic|cuda|cudart|cublas.*"
                    r"|cudnn.*|curand|nvrtc.*|nvJitLink|nvidia.*|nccl))\.so")
# Open MPI's plug-ins for networks, which need drivers and a hundred MiB of libraries.
NETWORKS = re.compile(r"ucx|ofi|psm|openib|verbs|portals|usnic|monitoring")


def linked(file, env=None):
    """{name: path, or None where it is missing} of the shared libraries that the loader gives to a file, and the
    versions of libraries that it asks for in vain."""
    output = run(["ldd", file], 60, env=env).output
    found = {match[1]: None if match[2] == "not found" else match[2]
             for match in re.finditer(r"^\s*(\S+) => (not found|/\S+)", output, re.MULTILINE)}
    return found, sorted(set(re.findall(r"version `(\S+)' not found", output)))


def chosen_programs(build, tests):
    """The programs of build/bin that the GPU's tests run, in their commands or their variables, and the benches."""
    folder = build / "bin"
    words = [word for test in tests for word in [*test["command"], *test["variables"].values()]]
    found = {pathlib.Path(word).name for word in words if word.startswith(f"{folder}/")}
    return sorted(name for name in found | set(BENCHES) if (folder / name).is_file())


def starter(tests):
    """Open MPI's program that the tests start their ranks with, or None."""
    words = [word for test in tests for word in test["command"] if pathlib.Path(word).name in ("mpiexec", "mpirun")]
    return words[0] if words else None


def open_mpi():
    """Open MPI's files below its prefix, as paths: programs, plug-ins, help texts. They keep their places in usr/, as
    OPAL_PREFIX tells Open MPI where that is."""
    output = run(["ompi_info", "--path", "all", "--parsable"], 60).output
    paths = dict(re.findall(r"^path:(\w+):(\S+)$", output, re.MULTILINE))
    prefix = pathlib.Path(paths["prefix"])
    files = [pathlib.Path(paths["bindir"]) / name for name in ("mpirun", "mpiexec", "orterun", "orted", "prterun")]
    files += pathlib.Path(paths["pkglibdir"]).glob("*.so")
    files += pathlib.Path(paths["pkgdatadir"]).rglob("*.txt")
    pmix = pathlib.Path(paths["libdir"]).parents[1] / "pmix2"
    files += [file for file in pmix.rglob("*") if file.suffix == ".so" or "share" in file.parts]
    return prefix, [file for file in files if file.is_file() and not NETWORKS.search(file.name)]


def add_libraries(target, files):
    """Puts the libraries that the files need into usr/lib: whatever is not the other machine's."""
    folder = target / "usr/lib"
    folder.mkdir(parents=True, exist_ok=True)
    for file in files:
        libraries, _ = linked(file)
        for name, path in libraries.items():
            if not THEIRS.match(name) and path is None:
                raise ValueError(f"{file} needs {name}, which is not there")
            if not THEIRS.match(name) and not (folder / name).exists():
                shutil.copy(path, folder / name)


def copy(file, place):
    """The file, or what a link leads to."""
    place.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(file, place)


def copy_stripped(file, place):
    copy(file, place)
    with open(file, "rb") as content:
        is_program = content.read(4) == b"\x7fELF"
    if is_program and not (outcome := run(["strip", place], 120)).ok:
        raise ValueError(f"strip: {outcome.why()}")


def gather(root, build, architectures, commit, env, target):
    """Lays everything out in the folder `target`, as it is to lie elsewhere."""
    tests = [test for test in suite.listing(build, env) if suite.needs_gpu(test)]
    programs = chosen_programs(build, tests)
    for name in programs:
        copy_stripped(build / "bin" / name, target / "bin" / name)
    mpiexec = starter(tests)
    prefix, mpi = open_mpi() if mpiexec else (None, [])
    for file in mpi:
        copy(file, target / "usr" / file.relative_to(prefix))
    add_libraries(target, [*(build / "bin" / name for name in programs), *mpi])
    for file in [*build.rglob("CTestTestfile.cmake"), *(build / "tests").rglob("*_tests.cmake"),
                 *(build / "tests").rglob("*_include.cmake")]:
        copy(file, target / file.relative_to(build))
    cached = (build / "CMakeCache.txt").read_text(errors="replace")
    cache = dict(re.findall(r"^(\w+):\w+=(.*)$", cached, re.MULTILINE))
    cublas = pathlib.Path(cache["CUDA_cublasLt_LIBRARY"]).resolve().name  # libcublasLt.so.13, or with more numbers
    pack = {"commit": commit, "architectures": cache.get("LOCKSTEP_CUDA_ARCHITECTURES") or architectures,
            "root": str(root), "build": str(build), "python": cache["_Python3_EXECUTABLE"], "mpiexec": mpiexec, "programs": programs,
            "opened": [re.match(r".*\.so\.\d+", cublas)[0]]}
    (target / "pack.json").write_text(json.dumps(pack, indent=1) + "\n")
    return pack


def write(root, build, architectures, commit, env, file):
    """The archive; a line that says what is in it."""
    with tempfile.TemporaryDirectory(prefix="gpu_check.") as folder:
        target = pathlib.Path(folder)
        pack = gather(root, build, architectures, commit, env, target)
        file.parent.mkdir(parents=True, exist_ok=True)
        part = file.with_name(file.name + ".part")
        with lzma.open(part, "wb", format=lzma.FORMAT_XZ, filters=FILTERS) as packed, \
                tarfile.open(fileobj=packed, mode="w|") as archive:
            for entry in sorted(target.iterdir()):
                archive.add(entry, entry.name)
    size = part.stat().st_size
    if size > LIMIT:
        part.unlink()
        raise ValueError(f"it takes {size / 2**20:.0f} MiB, and {LIMIT >> 20} are the most")
    part.rename(file)
    return f"{file}, {size / 2**20:.1f} MiB: {len(pack['programs'])} programs of {commit} for {pack['architectures']}"


def unpack(file, build, root):
    """Lays the archive's files into `build`, unless they are there already, and gives its pack.json. Raises ValueError
    where the folder holds something else."""
    unpacked = build / "unpacked"  # says which archive, and where, once all of it is there
    mark = f"{hashlib.sha256(file.read_bytes()).hexdigest()} {root} {build}"
    if unpacked.exists() and unpacked.read_text() == mark:
        return json.loads((build / "pack.json").read_text())
    if (build / "CMakeCache.txt").exists():
        raise ValueError(f"{build} is a build; --build names another folder for what is unpacked")
    shutil.rmtree(build, ignore_errors=True)
    build.mkdir(parents=True)
    with lzma.open(file) as packed, tarfile.open(fileobj=packed, mode="r|") as archive:
        # Where Python knows of filters it is to be told.
        archive.extractall(build, **({"filter": "fully_trusted"} if hasattr(tarfile, "data_filter") else {}))
    pack = json.loads((build / "pack.json").read_text())
    moved = {pack["build"]: str(build), pack["root"]: str(root), pack["python"]: sys.executable}
    if pack["mpiexec"]:
        moved[pack["mpiexec"]] = str(build / "usr/bin" / pathlib.Path(pack["mpiexec"]).name)
    names = sorted(filter(None, moved), key=len, reverse=True)  # a build's folder lies in the sources'
    pattern = re.compile("|".join(rf"{re.escape(name)}(?![\w.-])" for name in names))
    for listed in build.rglob("*.cmake"):
        listed.write_text(pattern.sub(lambda match: moved[match[0]], listed.read_text()))
    unpacked.write_text(mark)
    return pack


def environment(env, root, build):
    """What programs, tests and Open MPI need to run from `build`."""
    usr = build / "usr"
    folders = [usr / "lib", *sorted(path for path in usr.glob("lib/*/openmpi/lib"))]
    pmix = next(iter(usr.glob("lib/*/pmix2")), None)
    return {**env, "PATH": f"{usr}/bin:{env['PATH']}",
            "LD_LIBRARY_PATH": ":".join([*map(str, folders), *filter(None, [env.get("LD_LIBRARY_PATH")])]),
            "LOCKSTEP_SOURCE_DIR": str(root), "OPAL_PREFIX": str(usr), **({"PMIX_PREFIX": str(pmix)} if pmix else {})}


def missing(pack, build, env):
    """What the programs need and this machine lacks: libraries, and versions of them."""
    lacking = set()
    for name in pack["programs"]:
        libraries, versions = linked(build / "bin" / name, env)
        lacking |= {library for library, path in libraries.items() if path is None} | set(versions)
    for name in pack["opened"]:
        # As the library does: by its name, where the loader looks.
        if not run([sys.executable, "-c", "import ctypes, sys; ctypes.CDLL(sys.argv[1])", name], 60, env=env).ok:
            lacking.add(name)
    return sorted(lacking)


def with_cuda(pack, build, env, nvcc, sites):
    """The environment in which the programs find CUDA's libraries too: in a toolkit's folder or in NVIDIA's wheels,
    where the loader does not know them."""
    lacking = missing(pack, build, env)
    roots = [nvcc.parent] if nvcc else sorted(pathlib.Path("/usr/local").glob("cuda*"))
    folders = [root / name for root in roots for name in ("lib64", "lib")]
    folders += [folder for site in sites for folder in sorted(pathlib.Path(site).glob("nvidia/*/lib"))]
    folders = [str(folder) for folder in folders if any((folder / name).exists() for name in lacking)]
    return {**env, "LD_LIBRARY_PATH": ":".join([env["LD_LIBRARY_PATH"], *folders])}
