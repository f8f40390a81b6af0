#!/usr/bin/env python3
"""How much sooner does matrix factorisation reach an error if its allreduce may be stale, while a rank is late?

  /usr/bin/python3 examples/matrix_factorisation/run.py [OPTION...] [OPTION OF THE PROGRAM...]

Runs the program with MPI's MPI_Allreduce, with papaya's, and with each slack, in turn, several rounds of them. The
error that slack 0 ends with is what all have to reach. Prints a table; OUTPUT has that, a figure and what was measured.
Options that are not listed here go to the program: --ratings FILE, --factors 32, ... (its --help lists them).
"""

import argparse
import json
import math
import os
import pathlib
import shlex
import shutil
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
PROGRAM = "matrix_factorisation"


def fail(sentence):
    sys.exit(f"{pathlib.Path(__file__).name}: {sentence}")


def slacks(text):
    try:
        found = sorted({int(word) for word in text.split(",")} | {0})
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no list of numbers such as 0,2,8")
    if found[0] < 0 or found[-1] > 255:
        raise argparse.ArgumentTypeError("a slack is from 0 to 255")
    return found


def positive(text):
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no number from 1 on")
    return int(text)


def options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
                                     allow_abbrev=False)
    parser.add_argument("--build", type=pathlib.Path, default=HERE.parents[1] / "build", help="the build folder")
    parser.add_argument("--mpi", choices=("openmpi", "mpich"), help="default: the first that the build has")
    parser.add_argument("--ranks", type=positive, default=4, help="default: 4")
    parser.add_argument("--launcher", help="instead of mpirun and --ranks: 'srun -n 32', ...")
    parser.add_argument("--rounds", type=positive, default=3, help="default: 3")
    parser.add_argument("--slacks", type=slacks, default=slacks("0,1,2,4,8,32,255"), help="default: 0,1,2,4,8,32,255")
    parser.add_argument("--algorithm", help="of the allreduce with slack; papaya info --algorithms lists them")
    parser.add_argument("--iterations", type=positive, default=300, help="of slack 0, default: 300")
    parser.add_argument("--straggler", choices=("none", "fixed", "rotating", "random"), default="rotating",
                        help="who is late, default: rotating")
    parser.add_argument("--delay-ms", type=float, default=2, help="by how much, default: 2")
    parser.add_argument("--output", type=pathlib.Path, default=pathlib.Path("matrix_factorisation.results"),
                        help="folder, default: matrix_factorisation.results here")
    parser.add_argument("--no-figure", action="store_true", help="the table alone, which needs no Matplotlib")
    chosen, chosen.others = parser.parse_known_args()
    return chosen


class Progress:
    """A bar on a terminal; elsewhere nothing."""

    def __init__(self, total):
        self.total, self.done, self.begin = total, 0, time.monotonic()
        self.show = sys.stderr.isatty()

    def step(self, what):
        if self.show:
            filled = 30 * self.done // self.total
            sys.stderr.write(f"\r\033[K{'█' * filled}{'░' * (30 - filled)} {self.done}/{self.total}, "
                             f"{time.monotonic() - self.begin:.0f} s: {what}")
            sys.stderr.flush()
        self.done += 1

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.show:
            sys.stderr.write("\r\033[K")


class Experiment:
    def __init__(self, chosen):
        self.chosen = chosen
        self.mpi = chosen.mpi or next((mpi for mpi in ("openmpi", "mpich") if self.program(mpi).exists()), None)
        if self.mpi is None or not self.program(self.mpi).exists():
            fail(f"{chosen.build} has no {PROGRAM}{'-' + self.mpi if self.mpi else ''}: build papaya first "
                 "(meson setup build && meson compile -C build), or name the folder with --build.")
        self.papaya = chosen.build.resolve() / "papaya"
        if not self.papaya.exists():
            fail(f"{self.papaya} is missing: build papaya first (meson compile -C {chosen.build}).")
        self.launcher = shlex.split(chosen.launcher) if chosen.launcher else self.mpirun()
        if not shutil.which(self.launcher[0]):
            fail(f"{self.launcher[0]} is missing: install {self.mpi}, or name what starts jobs with --launcher.")
        self.environment = dict(os.environ)
        if os.geteuid() == 0:
            self.environment.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
        self.target = None
        chosen.output.mkdir(parents=True, exist_ok=True)

    def program(self, mpi):
        return self.chosen.build.resolve() / "examples" / PROGRAM / f"{PROGRAM}-{mpi}"

    def mpirun(self):
        name = next((name for name in (f"mpirun.{self.mpi}", "mpirun") if shutil.which(name)), f"mpirun.{self.mpi}")
        crowded = ["--oversubscribe", "--bind-to", "none"] if self.mpi == "openmpi" else []
        return [name, *crowded, "-n", str(self.chosen.ranks)]

    def words(self, slack, label):
        """What the program is started by, and with."""
        under = ["env", "PAPAYA_PROFILE=off", self.papaya, "run"] if label == "consistent" else []
        if slack is None:
            kind = ["--allreduce", label]
        else:
            kind = ["--slack", slack, *(["--algorithm", self.chosen.algorithm] if self.chosen.algorithm else [])]
        # Staler results may take more iterations, and the ranks hear `slack` iterations later that it is over.
        iterations = self.chosen.iterations if self.target is None else 2 * self.chosen.iterations + 2 * (slack or 0)
        ends = [] if self.target is None else ["--target", self.target]
        late = ["--straggler", self.chosen.straggler]
        late += ["--delay-ms", self.chosen.delay_ms] if self.chosen.straggler != "none" else []
        return [*self.launcher, *under, self.program(self.mpi), *self.chosen.others, *late, *kind, "--iterations",
                iterations, *ends]

    def measure(self, slack, label, turn):
        file = self.chosen.output / f"{label.replace(' ', '-')}.{turn}.json"
        command = [str(word) for word in [*self.words(slack, label), "--json", file]]
        result = subprocess.run(command, env=self.environment, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                check=False)
        if result.returncode != 0:
            lines = [line for line in result.stderr.splitlines() if line.startswith(PROGRAM)]
            fail(f"with {label} the program ended with exit code {result.returncode}:\n"
                 + "\n".join(lines or result.stderr.splitlines()) + f"\nThe command was: {shlex.join(command)}")
        return json.loads(file.read_text(encoding="utf-8"))

    def run(self):
        """The JSON of each run, by label."""
        kinds = [(slack, f"slack {slack}") for slack in self.chosen.slacks] + [(None, "native"), (None, "consistent")]
        runs = {label: [] for _, label in [*kinds[-2:], *kinds[:-2]]}
        with Progress(self.chosen.rounds * len(kinds) + 1) as progress:
            # Slack 0 gives the same result in every run, so this is the error of all that follow.
            progress.step("slack 0, whose error all have to reach")
            first = self.measure(0, "slack 0", 0)
            self.target = math.ceil(first["iterations"]["error"][-1] * 1e6) / 1e6
            for turn in range(1, self.chosen.rounds + 1):
                for slack, label in kinds:
                    progress.step(f"round {turn}, {label}")
                    runs[label].append(self.measure(slack, label, turn))
                kinds.append(kinds.pop(0))  # nobody always comes after the same
        return runs


def of_run(run):
    """Figures of one run until the target, None if it was not reached."""
    iteration = run["target"]["iteration"]
    if iteration is None:
        return None
    values = run["iterations"]
    waited = values.get("waited_seconds")
    return {"seconds": run["target"]["seconds"], "mean_seconds": values["mean_seconds"][iteration - 1],
            "iterations": iteration, "collective_seconds": sum(values["collective_seconds"][:iteration]),
            "waited_seconds": sum(waited[:iteration]) if waited else None,
            "age": statistics.fmean(values["age"][:iteration]), "oldest": max(values["oldest"][:iteration])}


def summarised(runs):
    """The medians of each allreduce over its rounds, and the least and the most seconds."""
    summary = {}
    for label, of_label in runs.items():
        figures = [of_run(run) for run in of_label]
        if None in figures:
            summary[label] = None
            continue
        row = {name: statistics.median(one[name] for one in figures) if figures[0][name] is not None else None
               for name in figures[0]}
        seconds = [one["seconds"] for one in figures]
        row.update(least_seconds=min(seconds), most_seconds=max(seconds), algorithm=of_label[0]["algorithm"],
                   middle_round=1 + min(range(len(seconds)), key=lambda i: abs(seconds[i] - row["seconds"])))
        summary[label] = row
    synchronous = summary["slack 0"]["seconds"]
    for row in filter(None, summary.values()):
        row["sooner"] = 1 - row["seconds"] / synchronous
    return summary


def table(first, summary, target, rounds):
    settings, data = first["settings"], first["data"]
    late = "no straggler" if settings["straggler"] == "none" else \
        f"{settings['straggler']} straggler of {settings['delay_ms']:g} ms"
    lines = [f"{first['ranks']} ranks, {first['mpi']}, {os.cpu_count()} cores here; {data['users']} users, "
             f"{data['items']} items, {data['training']} ratings; {late}",
             f"Until the error is {target:g}, which slack 0 ends with; medians of {rounds} round{'s' * (rounds > 1)}",
             "",
             "allreduce   iterations  seconds      (rounds)  of slack 0  in allreduce  waiting  age: mean  most"]
    for label, row in summary.items():
        if row is None:
            lines.append(f"{label:<12}the error was not reached")
            continue
        waiting = "-" if row["waited_seconds"] is None else f"{row['waited_seconds']:.2f} s"
        span = f"{row['least_seconds']:.2f}-{row['most_seconds']:.2f}"
        lines.append(f"{label:<12}{row['iterations']:>10g}  {row['seconds']:>7.2f}  {span:>12}  "
                     f"{1 - row['sooner']:>10.0%}  {row['collective_seconds']:>10.2f} s  {waiting:>7}  "
                     f"{row['age']:>9.1f}  {row['oldest']:>4.0f}")
    with_slack = {label: row for label, row in summary.items() if row and label.startswith("slack ")}
    best = min(with_slack, key=lambda label: with_slack[label]["seconds"])
    gain = with_slack[best]["sooner"]
    lines += ["", f"Best: {best}" + (f", {gain:.0%} sooner than slack 0" if best != "slack 0" else
                                     ": slack makes it no quicker here")]
    return "\n".join(lines) + "\n"


def main():
    chosen = options()
    if not chosen.no_figure:
        try:
            import plot
        except ImportError as error:
            fail(f"{error} in {sys.executable}: install python3-matplotlib and start this with /usr/bin/python3, or "
                 "add --no-figure.")
    experiment = Experiment(chosen)
    runs = experiment.run()
    summary = summarised(runs)
    text = table(runs["slack 0"][0], summary, experiment.target, chosen.rounds)
    (chosen.output / "table.txt").write_text(text, encoding="utf-8")
    results = {"target": experiment.target, "rounds": chosen.rounds, "summary": summary}
    (chosen.output / "results.json").write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    sys.stdout.write(text)
    if not chosen.no_figure:
        figure = chosen.output / "figure.svg"
        plot.draw(chosen.output, figure)
        sys.stdout.write(f"Figure: {figure}\n")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
