#!/usr/bin/env python3
"""Dependencies point one way: reads every #include and holds the rule of docs/architecture.md."""
import re

from frame import COMPILED, files_of, includes_of, run

# What stands above the transports, without those that know MPI.
SHARED_BY_ALGORITHMS = {"algorithms", "algorithms/patterns", "algorithms/kernels", "algorithms/transport",
                        "algorithms/waiting", "base"}
# Folder: the folders its files may include from. The longest prefix of a file is its folder; "X/*" is X with all
# folders in it, and X without is its own files alone.
MAY_INCLUDE = {
    "base": {"base"},
    "profiler/record": {"profiler/record", "base"},
    "profiler/read": {"profiler/read", "profiler/record", "base"},
    "profiler/analysis": {"profiler/analysis", "profiler/read", "profiler/record", "base"},
    "profiler/report": {"profiler/*", "base"},
    "algorithms/waiting": {"algorithms/waiting", "base"},
    "algorithms/transport": {"algorithms/transport", "algorithms/waiting", "base"},
    "algorithms/transport/mpi": {"algorithms/transport/mpi", "algorithms/transport", "algorithms/waiting", "base"},
    "algorithms/transport/ucx": {"algorithms/transport/*", "algorithms/waiting", "base"},
    "algorithms/patterns": {"algorithms/patterns", "base"},
    "algorithms/kernels": {"algorithms/kernels", "algorithms/datatype.hpp", "base"},
    "algorithms": SHARED_BY_ALGORITHMS,
    **{f"algorithms/{collective}": {f"algorithms/{collective}"} | SHARED_BY_ALGORITHMS
       for collective in ("allgather", "allreduce", "alltoall", "barrier", "bcast", "gather", "reduce",
                          "reduce_scatter", "reduce_scatter_block", "scatter", "weak")},
    "tuning": {"tuning", "algorithms", "algorithms/weak", "base"},
    "interpose": {"interpose", "tuning", "algorithms/*", "profiler/record", "base"},
    # They share with what is preloaded how to speak to MPI.
    "api": {"api", "include/papaya_segment.h", "include/papaya_weak.h", "algorithms/*", "base",
            *(f"interpose/{name}.hpp"
              for name in ("copy_communicator", "device_memory", "implementation", "make_wire", "mpi_agreement",
                           "mpi_types", "reduction", "staging", "weak_service"))},
    # The benchmark sets its clocks as the library does, and calls what is behind papaya_weak.h.
    "tools/bench": {"tools/*", "interpose/measure.hpp", "api", "tuning", "algorithms/*", "profiler/*", "base"},
    "tools": {"tools/*", "tuning", "algorithms/*", "profiler/*", "base"},
}
# What else is included: (file, what): why.
BESIDES = {
    ("interpose/mpi_readers.hpp", "profiler/analysis/readers.hpp"): "the leaders of the nodes read the records with it",
    ("interpose/trials.cpp", "profiler/analysis/patterns_of_sites.hpp"):
        "rules of the tuning file go by the pattern of arrivals as the report calls it",
    ("interpose/reports.cpp", "profiler/report/report.hpp"):
        "rank 0 writes the report in MPI_Finalize, where no process may be started, and the watch reports stalls",
    ("interpose/reports.cpp", "profiler/report/stacks.hpp"): "and where the ranks are",
}
# Only these may know MPI; the rest is built once, for every MPI and for threads in tests.
KNOWS_MPI = re.compile(r"^(interpose/(?!agreement|async_setup|decide|flavour|make_wire|plan|preload|presence|reports|"
                       r"resources)|"
                       r"api/(?!choice)|include/papaya_(segment|weak)|"
                       r"algorithms/transport/(mpi/|ucx/ucx_(transport|window))|tools/measure/|tools/simulation/|"
                       r"tools/bench/(calls|clock|machine|main|measure|native_variants|quiet|session|tune|weak_measure|"
                       r"weak_turn)\.)")


def folder_of(path):
    return max((f for f in MAY_INCLUDE if path.startswith(f + "/")), key=len, default="")


def allowed(path, included):
    folder = folder_of(included)
    return any(included == f or folder == f or f.endswith("/*") and included.startswith(f[:-1])
               for f in MAY_INCLUDE[folder_of(path)])


def check(root):
    broken = []
    files = [file for folder in sorted({f.split("/")[0] for f in MAY_INCLUDE})
             for file in files_of(root / folder, COMPILED)]
    besides = set()
    for file in files:
        path = file.relative_to(root).as_posix()
        for quote, included in includes_of(file):
            if (path, included) in BESIDES:
                besides.add((path, included))
            elif quote == '"' and not allowed(path, included):
                broken.append(f"{path} includes {included}")
            if included == "mpi.h" and not KNOWS_MPI.match(path):
                broken.append(f"{path} includes mpi.h")
    broken += [f"{path} no longer includes {included}: take that off BESIDES"
               for path, included in sorted(set(BESIDES) - besides)]
    return broken, f"{len(files)} files, {len(broken)} includes against the rule", files


if __name__ == "__main__":
    run(check)
