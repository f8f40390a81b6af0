"""How a job is started and ended on this machine, and what its launchers get wrong."""

import contextlib
import functools
import os
import pathlib
import re
import signal
import subprocess
import time


def is_in_build(path):
    return any((folder / "meson-private").is_dir() for folder in pathlib.Path(path, "x").parents)


def clean_environment():
    """Without anything that steers papaya, and with what Open MPI wants in a container."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PAPAYA_") and k != "LD_PRELOAD"}
    # Newer Meson names the folders of all libraries that are built, among which are stand-ins for the system's.
    paths = [path for path in environment.pop("LD_LIBRARY_PATH", "").split(":") if path and not is_in_build(path)]
    if paths:
        environment["LD_LIBRARY_PATH"] = ":".join(paths)
    environment.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMP_NUM_THREADS="1")
    # What it chooses on one machine anyway; looking at the others takes half of the time in which a job starts.
    environment["OMPI_MCA_pml"] = "ob1"
    return environment


@functools.cache
def starts_several_programs(mpi):
    """Open MPI 5.0.7's mpirun does not."""
    true = ["-n", "1", "true"]
    return mpi == "mpich" or subprocess.run(["mpirun.openmpi", "--oversubscribe", *true, ":", *true], check=False,
                                            env=clean_environment(), capture_output=True).returncode >= 0


def processes_with(marker):
    """Process ids whose environment holds `marker`: the ranks of one job, whatever group they moved to."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            with contextlib.suppress(OSError):
                if marker.encode() in (entry / "environ").read_bytes():
                    found.append(int(entry.name))
    return found


def kill_all(marker):
    for _ in range(3):
        for pid in processes_with(marker):
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.1)


@functools.cache
def launcher_forgets():
    """MPICH 4.2's mpirun gives 0 now and then where ranks died or exited with another code, natively too."""
    version = subprocess.run(["mpirun.mpich", "--version"], stdout=subprocess.PIPE, text=True, check=False).stdout
    return re.search(r"Version: +4\.2\.", version) is not None
