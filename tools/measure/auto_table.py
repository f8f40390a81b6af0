#!/usr/bin/env python3
"""What `auto` takes beside native: papaya bench for all collectives under every pattern of arrivals, and a table of it
for docs/measurements.md. To be run in the build folder. A run that FOLDER has already is not made again. --again: what
is slower than native, or met other arrivals than the pattern's, is measured once more, for that long, in which trials
come to their end; that row counts.

    ../tools/measure/auto_table.py FOLDER [--mpi openmpi|mpich] [--ranks N...] [--nodes N] [--patterns NAME...]
    ../tools/measure/auto_table.py FOLDER --again SECONDS
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
BALANCED = "balanced"  # from a barrier on, each call with new data; none: a tight loop on the same buffers
PATTERNS = ("none", BALANCED, "random", "first-late", "last-late", "straggler")
SKEW_US = 1000
MOST_MISSED = 0.3  # share of a row's arrivals
COLLECTIVES = ("allreduce", "reduce", "bcast", "alltoall", "allgather", "barrier", "gather", "scatter")


def place_of(arguments, ranks):
    """How the ranks lie, as in the table: how many, or nodes x ranks of a node."""
    return f"{arguments.nodes} x {ranks // arguments.nodes}" if arguments.nodes > 1 else str(ranks)


def launch(mpi, place):
    """The launcher's command, on one node or on nodes of tests/cluster/box."""
    nodes, _, ranks = place.rpartition(" x ")
    if not nodes:
        return [*LAUNCH[mpi], ranks]
    box = pathlib.Path(__file__).parents[2] / "tests" / "cluster" / "box"
    return [str(box), "--nodes", nodes, "--ranks", ranks, "--mpi", mpi, "--"]


def is_whole(file):
    try:
        return "rows" in json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False


def measure(arguments, mpi, place, pattern, collective, sizes, seconds):
    """Leaves the benchmark's JSON in the folder, unless it has it or the run does not end within its time."""
    words = [mpi, place.replace(" ", ""), pattern.replace("/", "+").replace(".", "_"), collective]
    if arguments.again:
        words += [str(sizes), "again"]
    file = arguments.folder / ".".join([*words, "json"])
    if file.exists():
        return
    environment = {**os.environ, "PAPAYA_PROFILE": "off", "OMPI_ALLOW_RUN_AS_ROOT": "1",
                   "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    partial = file.with_suffix(".partial")
    command = [*launch(mpi, place), "./papaya", "bench", collective, "-m", str(sizes), "--algorithms", "auto",
               "--seconds", str(seconds), "--json", str(partial)]
    command += ["--mode", "balanced"] if pattern == BALANCED else ["--pattern", pattern]
    if pattern not in ("none", BALANCED) and not pattern.startswith("replay:"):
        command += ["--skew", str(SKEW_US)]
    partial.unlink(missing_ok=True)
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=arguments.timeout,
                              check=False)
    except subprocess.TimeoutExpired:
        if is_whole(partial):  # MPICH 4.0 over UCX and TCP now and then does not end MPI_Finalize, natively too
            partial.rename(file)
        else:
            print(f"{file.stem}: not done within {arguments.timeout} s", file=sys.stderr)
        return
    if done.returncode != 0 or not partial.exists():
        print(f"{file.stem}: {done.stderr.strip() or done.returncode}", file=sys.stderr)
        return
    partial.rename(file)


def rows_of(folder):
    """(MPI, how the ranks lie, pattern) -> rows of `auto`."""
    found = collections.defaultdict(dict)
    for file in sorted(folder.glob("*.json"), key=lambda file: (file.stem.endswith(".again"), file.name)):
        mpi, place, pattern = file.name.split(".")[:3]
        key = mpi, place.replace("x", " x "), pattern.replace("_", ".").replace("+", "/")
        for row in json.loads(file.read_text(encoding="utf-8"))["rows"]:
            if row["algorithm"] == "auto" and row["ratio_to_native"] is not None:
                found[key][row["collective"], row["bytes"]] = row
    return {key: list(rows.values()) for key, rows in found.items()}


def is_slower(row):
    """Surely, and by more than 5 %."""
    return row["word"] == "SLOWER" and row["ratio_to_native"] > 1.05


def runs_of(arguments):
    """What to measure, as measure() takes it."""
    if arguments.again:
        return [(*key, row["collective"], row["bytes"] or 1, arguments.again)
                for key, rows in rows_of(arguments.folder).items() for row in rows
                if is_slower(row) or row["missed_arrivals"] > MOST_MISSED]
    return [(mpi, place_of(arguments, ranks), pattern, collective, arguments.sizes, arguments.seconds)
            for ranks in arguments.ranks for mpi in arguments.mpi or LAUNCH for pattern in arguments.patterns
            for collective in arguments.collectives]


def size(count):
    for unit in ("", "K", "M"):
        if count < 1024:
            return f"{count}{unit}"
        count //= 1024
    return f"{count}G"


def table_row(mpi, place, arrivals, rows):
    mean = math.exp(sum(math.log(max(row["ratio_to_native"], 1e-4)) for row in rows) / len(rows))
    count = collections.Counter(row["word"] for row in rows)
    slower = sorted(filter(is_slower, rows), key=lambda one: -one["ratio_to_native"])
    text = ", ".join(f"{row['collective']} {size(row['bytes'])} {row['ratio_to_native']:.2f}" for row in slower)
    return (f"| {mpi} | {place} | {arrivals} | {len(rows)} | {mean:.2f} | {count['FASTER']} | "
            f"{len(rows) - count['FASTER'] - len(slower)} | {text or '-'} |")


def print_table(folder):
    print("| MPI | ranks, or nodes x ranks | arrivals | cells | geometric mean | faster | the same | "
          "slower (5 %, and the interval) |\n|---|---|---|---|---|---|---|---|")
    all_rows = collections.defaultdict(list)
    for (mpi, place, pattern), rows in sorted(rows_of(folder).items()):
        arrivals = pathlib.Path(pattern.removeprefix("replay:")).stem
        print(table_row(mpi, place, arrivals, rows))
        all_rows["all ranks there" if pattern in ("none", BALANCED) else "late ranks"] += rows
    for arrivals, rows in sorted(all_rows.items()):
        print(table_row("all", "all", arrivals, rows))


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
    parser.add_argument("--again", type=float, metavar="SECONDS", help="the slower rows of FOLDER, for so long each")
    parser.add_argument("--only-table", action="store_true")
    arguments = parser.parse_args()
    if any(ranks % arguments.nodes for ranks in arguments.ranks):
        parser.error("--ranks: every node has as many")
    if not arguments.only_table:
        arguments.folder.mkdir(parents=True, exist_ok=True)
        runs = runs_of(arguments)
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
