#!/usr/bin/env python3
"""What the report foretells for a run without its cause of waiting, against that run: planted cases, with the cause and
without it in turn, medians of the turns. To be run in the build folder; prints a table for docs/measurements.md.

    ../tools/measure/what_if.py [--turns N] [--calls N] [--mpi openmpi|mpich] [CASE...]
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import tempfile

# Row: case, ranks, and whose gain is compared: a rank's, that of all ranks, or of all before the calls of one name.
ROWS = (
    ("allreduce", 2, 1), ("busy", 2, 1), ("barrier", 2, 1), ("bcast", 2, 1), ("receiver", 2, 1),
    ("two_sites", 2, "MPI_Allreduce"), ("alternating", 2, "all"), ("chain", 2, 1), ("chain", 3, 1), ("outlier", 2, 1),
    ("two_late", 4, "all"), ("pair", 3, 1), ("absorbed", 3, 1), ("pipeline", 3, 1), ("shared", 2, 1),
)
CAUSE_MS = 2
LAUNCH = {"openmpi": ["mpirun.openmpi", "--oversubscribe", "--bind-to", "none", "-n"], "mpich": ["mpirun.mpich", "-n"]}


def run(mpi, ranks, case, calls, cause_ms):
    """Seconds of the calls, and the report."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch) / "run"
        # Ranks that wait leave their cores to those that sleep a little less than they should.
        environment = {**os.environ, "PAPAYA_OUTPUT": str(folder), "PAPAYA_WAIT": "block",
                       "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        done = subprocess.run([*LAUNCH[mpi], str(ranks), "./papaya", "run", f"./what_if-{mpi}", case, str(calls),
                               str(cause_ms)], env=environment, capture_output=True, text=True, check=True)
        return float(done.stdout.split()[0]), json.loads((folder / "report.json").read_text())


def foretold(report, whose):
    """Seconds; None: the report says that it cannot tell."""
    what_if = report["what_if"]
    if what_if is None:
        return None
    if whose == "all":
        return what_if["all_run_seconds"]
    if isinstance(whose, int):
        return sum(rank["run_seconds"] for rank in what_if["ranks"] if rank["rank"] == whose)
    return sum(site["run_seconds"] for site in what_if["call_sites"]
               if report["call_sites"][site["call_site"]]["name"] == whose)


def row(mpi, case, ranks, whose, arguments):
    """A line of the table."""
    told, unknown, slow, quick = [], "", [], []
    for _ in range(arguments.turns):
        seconds, report = run(mpi, ranks, case, arguments.calls, CAUSE_MS)
        slow.append(seconds)
        gain = foretold(report, whose)
        if gain is None:
            unknown = report["what_if_unknown"]
        else:
            told.append(gain)
        quick.append(run(mpi, ranks, case, arguments.calls, 0)[0])
    took = statistics.median(slow)
    measured = took - statistics.median(quick)
    who = f"rank {whose}" if isinstance(whose, int) else "all" if whose == "all" else f"all before {whose}"
    known = len(told) * 2 > arguments.turns
    gain = statistics.median(told) if known else 0
    ratio = f"{gain / measured:.2f}" if known and measured >= 0.02 * took else "-"
    text = f"{1e3 * gain:.1f} ms" if known else f"no: {unknown}"
    return f"| {case} | {mpi} | {ranks} | {who} | {1e3 * took:.0f} ms | {text} | {1e3 * measured:.1f} ms | {ratio} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--calls", type=int, default=100)
    parser.add_argument("--mpi", choices=LAUNCH, action="append")
    parser.add_argument("cases", nargs="*", metavar="CASE", help=", ".join(dict.fromkeys(one[0] for one in ROWS)))
    arguments = parser.parse_args()
    print("| case | MPI | ranks | quicker | run | foretold | measured | ratio |\n|---|---|---|---|---|---|---|---|")
    for case, ranks, whose in ROWS:
        for mpi in arguments.mpi or LAUNCH:
            if not arguments.cases or case in arguments.cases:
                print(row(mpi, case, ranks, whose, arguments), flush=True)


if __name__ == "__main__":
    main()
