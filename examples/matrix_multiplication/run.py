#!/usr/bin/env python3
"""Multiplies by notified one-sided communication and by PDGEMM, in turn, for each placement and number of ranks.

  examples/matrix_multiplication/run.py [--mpi openmpi|mpich] [--ranks 2 4] [--placements random cyclic] [--size 2048]
                                        [--block 512] [--rounds 5] ...

Prints a table of medians, and leaves matrix_multiplication.json and, where matplotlib is there (Debian:
python3-matplotlib), matrix_multiplication.svg in the folder --output. Options that it does not know go to every run of
the program. Exit code 1 if a run fails or its product is wrong.
"""

import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
VARIANTS = ("notified", "pdgemm")
PLACEMENTS = ("random", "cyclic", "rows")


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mpi", choices=("openmpi", "mpich"), default="openmpi")
    parser.add_argument("--ranks", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--placements", nargs="+", choices=PLACEMENTS, default=["random", "cyclic"])
    parser.add_argument("--size", type=int, default=2048, help="m, n and k")
    parser.add_argument("--block", type=int, default=512)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--output", type=pathlib.Path, default=pathlib.Path("."))
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build", help="folder that papaya is built in")
    parser.add_argument("--program", help="matrix_multiplication, if it is not in --build")
    parser.add_argument("--launcher", help="mpirun, if it is not mpirun.MPI")
    options, options.others = parser.parse_known_args()
    if min(options.ranks) < 1 or options.size < 1 or options.block < 1 or options.rounds < 1:
        parser.error("--ranks, --size, --block and --rounds are at least 1")
    options.program = options.program or str(
        options.build / f"examples/matrix_multiplication/matrix_multiplication-{options.mpi}")
    options.launcher = options.launcher or f"mpirun.{options.mpi}"
    for needed in (options.program, options.launcher):
        if not shutil.which(needed):
            sys.exit(f"run.py: {needed} is not there; build papaya with OpenBLAS and ScaLAPACK (ninja -C build), or "
                     "name it.")
    return options


def run(options, placement, ranks, results):
    words = [options.launcher, "-n", ranks, options.program, "--placement", placement, "-m", options.size, "-n",
             options.size, "-k", options.size, "--block", options.block, "--rounds", options.rounds, "--json", results,
             *options.others]
    environment = {"OMPI_MCA_rmaps_base_oversubscribe": "1", "OMPI_MCA_hwloc_base_binding_policy": "none",  # Open MPI 4
                   "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
                   "PRTE_MCA_hwloc_default_binding_policy": "none",
                   **os.environ}
    if os.geteuid() == 0:  # in a container, say, which Open MPI asks about
        environment |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    ended = subprocess.run([str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                           env=environment, check=False)
    if ended.returncode != 0:
        sys.exit(f"run.py: {placement} placement on {ranks} ranks ended with code {ended.returncode}:\n{ended.stdout}"
                 f"{ended.stderr}")
    return json.loads(pathlib.Path(results).read_text(encoding="utf-8"))


def print_titles(row):
    print(f"m = n = k = {row['m']}, blocks of {row['block']}, {row['mpi']}, over {row['over']}; PDGEMM's blocks "
          f"{row['pdgemm_block']}, panels {row['panel']}; medians")
    titles = ("GFLOP/s", "of peak", "seconds", "in DGEMM", "waiting", "to layout", "MB moved", "residual")
    print(f"{'placement':<10}{'ranks':>6}  {'variant':<10}" + "".join(f"{title:>10}" for title in titles))


def print_row(row):
    for variant in VARIANTS:
        result = row["variants"][variant]
        print(f"{row['placement']:<10}{row['ranks']:>6}  {variant:<10}{result['gflops']:>10.1f}"
              f"{result['gflops'] / row['peak_gflops']:>10.1%}{result['seconds']:>10.4f}{result['dgemm_s']:>10.4f}"
              f"{result['waiting_s']:>10.4f}{result['redistribution_s']:>10.4f}{result['moved_mb']:>10.1f}"
              f"{result['residual']:>10.1e}", flush=True)


def draw(rows, file):
    try:
        import matplotlib
    except ImportError:
        print("No chart: install matplotlib (Debian: python3-matplotlib).")
        return
    matplotlib.use("svg")
    from matplotlib import pyplot
    figure, axes = pyplot.subplots(figsize=(4 + 1.4 * len(rows), 4))
    width = 0.38
    for number, variant in enumerate(VARIANTS):
        places = [place + (number - 0.5) * width for place in range(len(rows))]
        bars = axes.bar(places, [row["variants"][variant]["gflops"] for row in rows], width, label=variant)
        axes.bar_label(bars, fmt="%.0f")
    for place, row in enumerate(rows):
        axes.hlines(row["peak_gflops"], place - width, place + width, colors="black", linestyles="dashed",
                    label="" if place else "one rank's DGEMM times cores")
    axes.set_xticks(range(len(rows)), [f"{row['placement']}\n{row['ranks']} ranks" for row in rows])
    axes.set_ylabel("GFLOP/s")
    axes.set_title(f"n = {rows[0]['n']}, blocks of {rows[0]['block']}, {rows[0]['cores']} cores, {rows[0]['mpi']}",
                   fontsize=10)
    axes.legend(fontsize=8, loc="upper left", bbox_to_anchor=(1, 1))
    figure.tight_layout()
    figure.savefig(file, dpi=120)
    print(f"chart: {file}")


def main():
    options = parse()
    options.output.mkdir(parents=True, exist_ok=True)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for placement in options.placements:
            for ranks in options.ranks:
                row = run(options, placement, ranks, f"{folder}/results.json")
                if not rows:
                    print_titles(row)
                print_row(row)
                rows.append(row)
    (options.output / "matrix_multiplication.json").write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")
    draw(rows, options.output / "matrix_multiplication.svg")
    print("all products are right")


if __name__ == "__main__":
    main()
