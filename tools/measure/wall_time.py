#!/usr/bin/env python3
"""Wall time of a program natively and under `papaya run` with what it chooses by itself, in turn, in random order: the
medians, the ratio of papaya's to the native one and its 95 % interval (bootstrap over the turns). To be run in the
build folder; prints a row for docs/measurements.md.

    ../tools/measure/wall_time.py [--turns N] [--mpi openmpi|mpich] [--ranks N] [--folder FOLDER] -- PROGRAM ARGUMENT...
"""
import argparse
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
import time

LAUNCH = {"openmpi": ["mpirun.openmpi", "--oversubscribe", "--bind-to", "none", "-n"], "mpich": ["mpirun.mpich", "-n"]}
RESAMPLED = 2000


def seconds_of(arguments, before):
    """Of one run; `before` goes in front of the program."""
    with tempfile.TemporaryDirectory() as scratch:
        environment = {**os.environ, "PAPAYA_OUTPUT": os.path.join(scratch, "run"), "OMPI_ALLOW_RUN_AS_ROOT": "1",
                       "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        command = [*LAUNCH[arguments.mpi], str(arguments.ranks), *before, *arguments.program]
        begin = time.monotonic()
        done = subprocess.run(command, env=environment, cwd=arguments.folder, capture_output=True, text=True,
                              check=False)
        took = time.monotonic() - begin
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: exit code {done.returncode}\n{done.stderr[-2000:]}")
    return took


def interval_of(ours, native):
    """The ratio of medians: lower and upper end of its 95 % interval."""
    chance = random.Random(1)
    ratios = sorted(statistics.median(chance.choices(ours, k=len(ours))) /
                    statistics.median(chance.choices(native, k=len(native))) for _ in range(RESAMPLED))
    return ratios[RESAMPLED // 40], ratios[-RESAMPLED // 40]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--turns", type=int, default=10)
    parser.add_argument("--mpi", choices=LAUNCH, default="openmpi")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--folder", type=pathlib.Path, help="where the program runs")
    parser.add_argument("program", nargs="+")
    arguments = parser.parse_args()
    forms = {"native": [], "papaya": [str(pathlib.Path("papaya").resolve()), "run"]}
    took = {form: [] for form in forms}
    for turn in range(-1, arguments.turns):  # the first fills caches, and does not count
        for form in random.sample(list(forms), len(forms)):
            seconds = seconds_of(arguments, forms[form])
            if turn >= 0:
                took[form].append(seconds)
        print(f"\r{turn + 1} of {arguments.turns} turns ", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    native, ours = (statistics.median(took[form]) for form in forms)
    low, high = interval_of(took["papaya"], took["native"])
    name = pathlib.Path(arguments.program[0]).name
    print(f"| {name} | {arguments.mpi} | {arguments.ranks} | {native:.3f} | {ours:.3f} | {ours / native:.3f} | "
          f"{low:.3f} to {high:.3f} |")


if __name__ == "__main__":
    main()
