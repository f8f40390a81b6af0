#!/usr/bin/env python3
"""Sorts the same records with the asynchronous shuffle, with MPI_Alltoallv and in one process, in turn.

  examples/terasort/run.py [--mpi openmpi|mpich] [--ranks 4] [--records 500000] [--rounds 3] [--late 0.5] ...

Prints a table of medians, and leaves terasort.json and, where matplotlib is there (Debian: python3-matplotlib),
terasort.svg, a bar for each mode with its phases, in the folder --output. Options that it does not know go to every
run of terasort sort. Exit code 1 if a run fails or its checksum is another.
"""

import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODES = ("notified", "alltoallv", "single")
# What the modes differ in; single partitions nothing.
COMPARED = ("partition", "shuffle", "sort", "merge")
HEADLINE = ("Gall et al. 2019, figure 10 (shuffle, 2 to 8 nodes): GASPI's asynchronous shuffle sorts more GB/s than "
            "MPI's throughout\nweak scaling and, at few ranks, in strong scaling; the two are equal for many ranks and "
            "little data.")


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mpi", choices=("openmpi", "mpich"), default="openmpi")
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--records", type=int, default=500_000, help="of each rank")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--output", type=pathlib.Path, default=pathlib.Path("."))
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build", help="folder that papaya is built in")
    parser.add_argument("--program", help="terasort, if it is not in --build")
    parser.add_argument("--launcher", help="mpirun, if it is not mpirun.MPI")
    options, options.others = parser.parse_known_args()
    if options.ranks < 1 or options.records < 0 or options.rounds < 1:
        parser.error("--ranks and --rounds are at least 1, --records at least 0")
    options.program = options.program or str(options.build / f"examples/terasort/terasort-{options.mpi}")
    options.launcher = options.launcher or f"mpirun.{options.mpi}"
    for needed in (options.program, options.launcher):
        if not shutil.which(needed):
            sys.exit(f"run.py: {needed} is not there; build papaya first (ninja -C build), or name it.")
    return options


def show(done, all_runs, text):
    """A bar in place on a terminal."""
    if not sys.stderr.isatty():
        return
    width = 30
    filled = width * done // all_runs
    print(f"\r[{'#' * filled}{'.' * (width - filled)}] {done}/{all_runs} {text:<12}",
          end="\n" if done == all_runs else "", file=sys.stderr, flush=True)


def run(options, mode, results):
    ranks = 1 if mode == "single" else options.ranks
    records = options.records * options.ranks // ranks
    words = [options.launcher, "-n", ranks, options.program, "sort", "--mode", mode, "--records", records, "--json",
             results, *options.others]
    environment = {"OMPI_MCA_rmaps_base_oversubscribe": "1", "OMPI_MCA_hwloc_base_binding_policy": "none",  # Open MPI 4
                   "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
                   "PRTE_MCA_hwloc_default_binding_policy": "none",
                   **os.environ}
    if os.geteuid() == 0:  # in a container, say, which Open MPI asks about
        environment |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    ended = subprocess.run([str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                           env=environment, check=False)
    if ended.returncode != 0:
        sys.exit(f"\nrun.py: mode {mode} ended with code {ended.returncode}:\n{ended.stdout}{ended.stderr}")
    return json.loads(pathlib.Path(results).read_text(encoding="utf-8"))


def run_all(options):
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for done in range(options.rounds * len(MODES)):
            mode = MODES[done % len(MODES)]
            show(done, options.rounds * len(MODES), mode)
            rows.append(run(options, mode, f"{folder}/results.json"))
    show(len(rows), len(rows), "")
    return rows


def median(rows, mode, value):
    return statistics.median(value(row) for row in rows if row["mode"] == mode)


def summarise(rows):
    """By mode: the medians of the phases' mean seconds over ranks, and what is made of them."""
    summary = {}
    for mode in MODES:
        phases = {phase: median(rows, mode, lambda row, phase=phase: row["phases"][phase]["mean_s"])
                  for phase in rows[0]["phases"]}
        compared = median(rows, mode, lambda row: sum(row["phases"][phase]["mean_s"] for phase in COMPARED))
        summary[mode] = {
            "phases": phases,
            "compared": compared,
            "calls": median(rows, mode, lambda row: sum(row["phases"][phase]["calls_s"] for phase in COMPARED)),
            "waiting": median(rows, mode, lambda row: sum(row["phases"][phase]["waiting_s"] for phase in COMPARED)),
            "all": median(rows, mode, lambda row: row["seconds"]),
            "mb_per_s": rows[0]["bytes"] / 1e6 / compared if compared else 0,
        }
    return summary


def print_table(rows, summary):
    over = next(row["over"] for row in rows if row["mode"] == "notified")
    print(f"{rows[0]['bytes'] / 1e6:.1f} MB on {rows[0]['ranks']} ranks, {rows[0]['mpi']}; notified over {over}; "
          f"medians of {len(rows) // len(MODES)}, seconds, means over ranks")
    titles = [*COMPARED, "these four", "in calls", "waiting", "MB/s", "whole run"]
    print(f"{'mode':<10}" + "".join(f"{title:>12}" for title in titles))
    for mode, row in summary.items():
        numbers = [*(row["phases"][phase] for phase in COMPARED), row["compared"], row["calls"], row["waiting"]]
        print(f"{mode:<10}" + "".join(f"{number:>12.3f}" for number in numbers)
              + f"{row['mb_per_s']:>12.0f}{row['all']:>12.3f}")
    print(HEADLINE)


def draw(rows, summary, file):
    try:
        import matplotlib
    except ImportError:
        print("No chart: install matplotlib (Debian: python3-matplotlib).")
        return
    matplotlib.use("svg")
    from matplotlib import pyplot
    figure, axes = pyplot.subplots(figsize=(9, 4))
    left = dict.fromkeys(summary, 0.0)
    for phase in rows[0]["phases"]:
        widths = [summary[mode]["phases"][phase] for mode in summary]
        axes.barh(list(summary), widths, left=list(left.values()), label=phase,
                  alpha=1 if phase in COMPARED else 0.35)
        left = {mode: left[mode] + width for mode, width in zip(summary, widths)}
    for place, mode in enumerate(summary):
        axes.text(left[mode], place, f" waits {summary[mode]['waiting']:.3f} s", va="center")
    axes.set_xlim(right=max(left.values()) * 1.25)
    axes.invert_yaxis()
    axes.set_xlabel("seconds, mean over ranks\n\n" + HEADLINE, fontsize=8)
    axes.set_title(f"{rows[0]['bytes'] / 1e6:.0f} MB on {rows[0]['ranks']} ranks, {rows[0]['mpi']}")
    axes.legend(fontsize=8, loc="upper left", bbox_to_anchor=(1, 1))
    figure.tight_layout()
    figure.savefig(file, dpi=120)
    print(f"chart: {file}")


def main():
    options = parse()
    options.output.mkdir(parents=True, exist_ok=True)
    rows = run_all(options)
    (options.output / "terasort.json").write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")
    summary = summarise(rows)
    print_table(rows, summary)
    draw(rows, summary, options.output / "terasort.svg")
    checksums = {row["checksum"] for row in rows}
    if len(checksums) > 1:
        sys.exit(f"run.py: the checksums differ: {', '.join(sorted(checksums))}.")
    print(f"the same checksum in all runs: {checksums.pop()}")


if __name__ == "__main__":
    main()
