#!/usr/bin/env python3
"""How much sooner does a classifier reach an accuracy if late ranks are not waited for?

  /usr/bin/python3 examples/classification/run.py [OPTION...] [OPTION OF classify.py...]

Trains with MPI's MPI_Allreduce (native), with papaya's (papaya), with each slack, and with papaya's partial allreduces
(solo, majority), in turn, once for each seed. What all have to reach is 99 % of the accuracy that native ends with, for
the same seed. Prints a table; OUTPUT has that, a figure, and what was measured. Options that are not listed here go to
classify.py: --data FOLDER, --learning-rate 0.1, --lag 8, ... (its --help lists them).
"""

import argparse
import json
import os
import pathlib
import shlex
import shutil
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
SHARE = 0.99  # of the accuracy that native ends with


def fail(sentence):
    sys.exit(f"{pathlib.Path(__file__).name}: {sentence}")


def numbers(text):
    words = text.split(",")
    if not all(word.isdigit() for word in words):
        raise argparse.ArgumentTypeError(f"{text!r} is no list of numbers such as 1,4,16")
    return sorted({int(word) for word in words})


def positive(text):
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number from 1 on")
    return int(text)


def options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
                                     allow_abbrev=False)
    parser.add_argument("--build", type=pathlib.Path, default=HERE.parents[1] / "build", help="papaya's build folder")
    parser.add_argument("--mpi", choices=("openmpi", "mpich"), default="openmpi", help="default: openmpi")
    parser.add_argument("--ranks", type=positive, default=4, help="default: 4")
    parser.add_argument("--launcher", help="instead of mpirun and --ranks: 'srun -n 32', ...")
    parser.add_argument("--seeds", type=numbers, default=[1, 2, 3], help="default: 1,2,3")
    parser.add_argument("--slacks", type=numbers, default=[1, 4, 16], help="default: 1,4,16")
    parser.add_argument("--straggler", choices=("none", "fixed", "rotating", "random"), default="random",
                        help="who is late, default: random")
    parser.add_argument("--delay-ms", type=float, default=2, help="by how much, default: 2")
    parser.add_argument("--output", type=pathlib.Path, default=pathlib.Path("classification.results"),
                        help="folder, default: classification.results here")
    parser.add_argument("--no-figure", action="store_true", help="the table alone, which needs no Matplotlib")
    chosen, chosen.others = parser.parse_known_args()
    return chosen


class Experiment:
    def __init__(self, chosen):
        self.chosen = chosen
        build = chosen.build.resolve()
        library = build / f"libpapaya-weak-{chosen.mpi}.so.0"
        self.papaya = build / "papaya"
        for file in (library, self.papaya):
            if not file.exists():
                fail(f"{chosen.build} has no {file.name}: build papaya first (meson setup build && meson compile -C "
                     "build), or name the folder with --build.")
        self.launcher = shlex.split(chosen.launcher) if chosen.launcher else self.mpirun()
        if not shutil.which(self.launcher[0]):
            fail(f"{self.launcher[0]} is missing: install {chosen.mpi}, or name what starts jobs with --launcher.")
        self.environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PAPAYA_PROFILE": "off"}
        for name, folder in (("PYTHONPATH", HERE.parents[1] / "api"), ("LD_LIBRARY_PATH", build)):
            self.environment[name] = ":".join([str(folder), *filter(None, [os.environ.get(name)])])
        if os.geteuid() == 0:
            self.environment.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
        chosen.output.mkdir(parents=True, exist_ok=True)

    def mpirun(self):
        name = next((name for name in (f"mpirun.{self.chosen.mpi}", "mpirun") if shutil.which(name)),
                    f"mpirun.{self.chosen.mpi}")
        crowded = ["--oversubscribe", "--bind-to", "none"] if self.chosen.mpi == "openmpi" else []
        return [name, *crowded, "-n", str(self.chosen.ranks)]

    def ways(self):
        """What classify.py is told for each row of the table."""
        ways = {"native": [], "papaya": []}
        ways.update({f"slack {slack}": ["--sum", "stale", "--slack", slack] for slack in self.chosen.slacks})
        ways.update({name: ["--sum", name] for name in ("solo", "majority")})
        return ways

    def measure(self, label, words, seed):
        """The JSON lines of a run: settings, evaluations, summary."""
        file = self.chosen.output / f"{label.replace(' ', '-')}.{seed}.jsonl"
        late = ["--straggler", self.chosen.straggler]
        late += ["--delay-ms", self.chosen.delay_ms] if self.chosen.straggler != "none" else []
        others = list(self.chosen.others)
        if "--lag" in others and label not in ("solo", "majority"):
            place = others.index("--lag")
            del others[place:place + 2]
        command = [*self.launcher, *([self.papaya, "run"] if label == "papaya" else []), sys.executable,
                   HERE / "classify.py", *others, *late, *words, "--seed", seed, "--json", file]
        command = [str(word) for word in command]
        result = subprocess.run(command, env=self.environment, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                check=False)
        if result.returncode != 0:
            lines = [line for line in result.stderr.splitlines() if line.startswith("classify.py")]
            fail(f"with {label} classify.py ended with exit code {result.returncode}:\n"
                 + "\n".join(lines or result.stderr.splitlines()) + f"\nThe command was: {shlex.join(command)}")
        settings, *rows, summary = map(json.loads, file.read_text(encoding="utf-8").splitlines())
        return {**settings, "rows": rows, **summary}

    def run(self):
        """The runs of each way, one for each seed."""
        ways = list(self.ways().items())
        runs = {label: [] for label, _ in ways}
        total = len(ways) * len(self.chosen.seeds)
        for seed in self.chosen.seeds:
            for label, words in ways:
                if sys.stderr.isatty():
                    sys.stderr.write(f"\r\033[K{sum(map(len, runs.values()))}/{total}: {label}, seed {seed}")
                    sys.stderr.flush()
                runs[label].append(self.measure(label, words, seed))
            ways.append(ways.pop(0))  # nobody always comes after the same
        if sys.stderr.isatty():
            sys.stderr.write("\r\033[K")
        return runs


def level(run):
    """The accuracy that a run ends with: the mean of the last tenth of its evaluations."""
    last = run["rows"][-max(1, len(run["rows"]) // 10):]
    return statistics.fmean(row["accuracy"] for row in last)


def summarised(runs):
    """Of each way means over the seeds, and the seconds until the accuracy of native: None where it was not reached."""
    targets = [SHARE * level(run) for run in runs["native"]]
    first = {label: [next((row for row in run["rows"] if row["accuracy"] >= target), None)
                     for run, target in zip(of_way, targets)] for label, of_way in runs.items()}
    summary = {}
    for label, of_way in runs.items():
        row = {name: statistics.fmean(run["summary"][name] for run in of_way)
               for name in ("steps_per_second", "summing_ms", "computing_ms", "age", "ranks")}
        row["seconds"] = [reached and reached["seconds"] for reached in first[label]]
        row["steps"] = [reached and reached["step"] for reached in first[label]]
        row["sooner"] = [reached and native["seconds"] / reached["seconds"]
                         for reached, native in zip(first[label], first["native"])]
        row["levels"] = [level(run) for run in of_way]
        row["oldest"] = max(run["summary"]["oldest"] for run in of_way)
        row["whole_run"] = statistics.fmean(native["summary"]["seconds"] / run["summary"]["seconds"]
                                            for run, native in zip(of_way, runs["native"]))
        summary[label] = row
    return targets, summary


def line(label, row):
    accuracy = f"{statistics.fmean(row['levels']):.1%} ({min(row['levels']):.1%} to {max(row['levels']):.1%})"
    reached = [value for value in row["sooner"] if value is not None]
    if len(reached) == len(row["sooner"]):
        seconds, sooner = statistics.median(row["seconds"]), statistics.median(reached)
        until = (f"{statistics.median(row['steps']):>6.0f}  {seconds:>7.2f}  {sooner:>4.2f} "
                 f"({min(reached):.2f}-{max(reached):.2f})")
    else:
        until = f"  reached with {len(reached)} of {len(row['sooner'])} seeds"
    return (f"{label:<9} {until:<31}{row['whole_run']:>9.2f}  {row['steps_per_second']:>7.0f}  "
            f"{row['summing_ms']:>7.2f} ms  {row['age']:>7.1f}  {row['oldest']:>4}  {row['ranks']:>5.1f}  {accuracy}")


def table(runs, targets, summary):
    settings = runs["native"][0]["settings"]
    late = "no straggler" if settings["straggler"] == "none" else \
        f"{settings['straggler']} straggler of {settings['delay_ms']:g} ms"
    computing = statistics.median(run["summary"]["computing_ms"] for run in runs["native"])
    lines = [f"{settings['ranks']} ranks, {settings['mpi']}, {os.cpu_count()} cores here; {settings['data']}, "
             f"{settings['parameters']} parameters; {late}, a step computes for {computing:.2f} ms",
             f"Until the accuracy is {min(targets):.1%} to {max(targets):.1%}, 99 % of what native ends with; "
             f"{len(targets)} seeds, medians (least-most)", "",
             "           until then it took           whole run           in the sum  age of oldest",
             "           steps  seconds  times sooner   quicker  steps/s    per step     mean  most  ranks  in the end"]
    lines += [line(label, row) for label, row in summary.items()]
    return "\n".join(lines) + "\n"


def main():
    chosen = options()
    if not chosen.no_figure:
        try:
            import plot
        except ImportError as error:
            fail(f"{error} in {sys.executable}: install python3-matplotlib and start this with /usr/bin/python3, or "
                 "add --no-figure.")
    runs = Experiment(chosen).run()
    targets, summary = summarised(runs)
    text = table(runs, targets, summary)
    (chosen.output / "table.txt").write_text(text, encoding="utf-8")
    results = {"targets": targets, "seeds": chosen.seeds, "summary": summary}
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
