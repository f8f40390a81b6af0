#!/usr/bin/env python3
"""Dependencies point one way: reads every #include and holds the rule of docs/architecture.md."""
import pathlib
import re
import sys

# Folder: the folders its files may include from. Longest prefix wins.
MAY_INCLUDE = {
    "base": {"base"},
    "profiler/record": {"profiler/record", "base"},
    "profiler/read": {"profiler/read", "profiler/record", "base"},
    "profiler/analysis": {"profiler/analysis", "profiler/read", "profiler/record", "base"},
    "profiler/report": {"profiler", "base"},
    "algorithms/kernels": {"algorithms/kernels", "algorithms/datatype.hpp", "base"},
    "algorithms/transport": {"algorithms/transport", "base"},
    "algorithms/allreduce": {"algorithms", "base"},
    "algorithms": {"algorithms", "base"},
    "tuning": {"tuning", "algorithms", "base"},
    "interpose": {"interpose", "tuning", "algorithms", "profiler", "base"},
    "tools": {"tools", "tuning", "algorithms", "profiler", "base"},
}
# Only these may know MPI; the rest is built once, for every MPI and for threads in tests.
KNOWS_MPI = re.compile(r"^(interpose/(?!preload|presence|flavour)|algorithms/transport/(arena_notified|mpi_messages|mpi_notified|node_window|team_messages|ucx_notified|ucx_window)|profiler/record/measure|tools/measure/|tools/simulation/|"
                       r"tools/bench/(calls|clock|machine|main|measure|quiet)\.)")


def allowed(path, included):
    folder = max((f for f in MAY_INCLUDE if path.startswith(f + "/")), key=len)
    return any(included == f or included.startswith(f + "/") for f in MAY_INCLUDE[folder])


def main(root):
    broken = []
    files = 0
    for folder in {f.split("/")[0] for f in MAY_INCLUDE}:
        for file in sorted((root / folder).rglob("*")):
            if file.suffix not in {".cpp", ".hpp", ".h", ".c"}:
                continue
            files += 1
            path = file.relative_to(root).as_posix()
            for line in file.read_text().splitlines():
                match = re.match(r'\s*#\s*include\s+(["<])([^">]+)', line)
                if not match:
                    continue
                if match[1] == '"' and not allowed(path, match[2]):
                    broken.append(f"{path} includes {match[2]}")
                if match[2] == "mpi.h" and not KNOWS_MPI.match(path):
                    broken.append(f"{path} includes mpi.h")
    for line in broken:
        print(line)
    print(f"{files} files, {len(broken)} includes against the rule")
    return 1 if broken or files == 0 else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
