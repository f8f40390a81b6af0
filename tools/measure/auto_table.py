#!/usr/bin/env python3
"""What `auto` takes beside native: papaya bench for all collectives under every pattern of arrivals, and a table of it
for docs/measurements.md. To be run in the build folder. A run that FOLDER has already is not made again.

    ../tools/measure/auto_table.py FOLDER [--mpi openmpi|mpich] [--ranks N...] [--nodes N] [--patterns NAME...]
    ../tools/measure/auto_table.py FOLDER --only-table
"""
import argparse
import collections
import json
import math
import os
import pathlib
import subprocess
import sys
import time

LAUNCH = {"openmpi": ["mpirun.openmpi", "--oversubscribe", "--bind-to", "none", "-n"], "mpich": ["mpirun.mpich", "-n"]}
PATTERNS = ("none", "random", "first-late", "last-late", "straggler")
SKEW_US = 1000
COLLECTIVES = ("allreduce", "reduce", "bcast", "alltoall", "allgather", "barrier", "gather", "scatter")


def place_of(arguments, ranks):
    """How the ranks lie, as in the table: how many, or nodes x ranks of a node."""
    return f"{arguments.nodes} x {ranks // arguments.nodes}" if arguments.nodes > 1 else str(ranks)


def file_of(folder, mpi, place, pattern, collective):
    name = f"{mpi}.{place.replace(' ', '')}.{pathlib.Path(pattern).stem.replace(':', '-')}.{collective}.json"
    return folder / name


def launch(arguments, mpi, ranks):
    """The launcher's command, on one node or on nodes of tests/cluster/box."""
    if arguments.nodes == 1:
        return [*LAUNCH[mpi], str(ranks)]
    box = pathlib.Path(__file__).parents[2] / "tests" / "cluster" / "box"
    return [str(box), "--nodes", str(arguments.nodes), "--ranks", str(ranks // arguments.nodes), "--mpi", mpi, "--"]


def measure(arguments, mpi, ranks, pattern, collective):
    """Leaves the benchmark's JSON in the folder; False if it did not end within its time."""
    file = file_of(arguments.folder, mpi, place_of(arguments, ranks), pattern, collective)
    if file.exists():
        return True
    environment = {**os.environ, "PAPAYA_PROFILE": "off", "OMPI_ALLOW_RUN_AS_ROOT": "1",
                   "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    partial = file.with_suffix(".partial")
    command = [*launch(arguments, mpi, ranks), "./papaya", "bench", collective, "-m", arguments.sizes,
               "--algorithms", "auto", "--pattern", pattern, "--seconds", str(arguments.seconds), "--json", str(partial)]
    if pattern != "none" and not pattern.startswith("replay:"):
        command += ["--skew", str(SKEW_US)]
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=arguments.timeout,
                              check=False)
    except subprocess.TimeoutExpired:
        print(f"{file.stem}: not done within {arguments.timeout} s", file=sys.stderr)
        return False
    if done.returncode != 0 or not partial.exists():
        print(f"{file.stem}: {done.stderr.strip() or done.returncode}", file=sys.stderr)
        return False
    partial.rename(file)
    return True


def rows_of(folder):
    """(MPI, how the ranks lie, pattern) -> rows of `auto`."""
    found = collections.defaultdict(list)
    for file in sorted(folder.glob("*.json")):
        mpi, place, rest = file.name.split(".", 2)
        pattern = rest.rsplit(".", 2)[0]
        for row in json.loads(file.read_text(encoding="utf-8"))["rows"]:
            if row["algorithm"] == "auto" and row["ratio_to_native"] is not None:
                found[mpi, place.replace("x", " x "), pattern].append(row)
    return found


def size(count):
    for unit in ("", "K", "M"):
        if count < 1024:
            return f"{count}{unit}"
        count //= 1024
    return f"{count}G"


def print_table(folder):
    print("| MPI | ranks, or nodes x ranks | arrivals | cells | geometric mean | faster | the same | "
          "slower (5 %, and the interval) |\n|---|---|---|---|---|---|---|---|")
    for (mpi, place, pattern), rows in sorted(rows_of(folder).items()):
        mean = math.exp(sum(math.log(max(row["ratio_to_native"], 1e-4)) for row in rows) / len(rows))
        count = collections.Counter(row["word"] for row in rows)
        slower = sorted((row for row in rows if row["word"] == "SLOWER"), key=lambda one: -one["ratio_to_native"])
        text = ", ".join(f"{row['collective']} {size(row['bytes'])} {row['ratio_to_native']:.2f}" for row in slower)
        print(f"| {mpi} | {place} | {pattern} | {len(rows)} | {mean:.2f} | {count['FASTER']} | "
              f"{len(rows) - count['FASTER'] - len(slower)} | {text or '-'} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--mpi", choices=LAUNCH, action="append")
    parser.add_argument("--ranks", type=int, nargs="+", default=[2, 4, 8])
    parser.add_argument("--nodes", type=int, default=1, help="of tests/cluster/box, which the ranks are spread over")
    parser.add_argument("--patterns", nargs="+", default=list(PATTERNS), help="also replay:FILE")
    parser.add_argument("--collectives", nargs="+", default=list(COLLECTIVES))
    parser.add_argument("--sizes", default="8:16M:64")
    parser.add_argument("--seconds", type=float, default=0.1, help="time of a row at most, as in papaya bench")
    parser.add_argument("--timeout", type=float, default=300, help="seconds of one collective's run")
    parser.add_argument("--only-table", action="store_true")
    arguments = parser.parse_args()
    if any(ranks % arguments.nodes for ranks in arguments.ranks):
        parser.error("--ranks: every node has as many")
    if not arguments.only_table:
        arguments.folder.mkdir(parents=True, exist_ok=True)
        runs = [(mpi, ranks, pattern, collective) for ranks in arguments.ranks for mpi in arguments.mpi or LAUNCH
                for pattern in arguments.patterns for collective in arguments.collectives]
        begin = time.monotonic()
        for number, run in enumerate(runs, 1):
            measure(arguments, *run)
            took = time.monotonic() - begin
            left = took / number * (len(runs) - number)
            print(f"\r{number} of {len(runs)} runs, {took:.0f} s, about {left:.0f} s left ", end="", file=sys.stderr,
                  flush=True)
        print(file=sys.stderr)
    print_table(arguments.folder)


if __name__ == "__main__":
    main()
