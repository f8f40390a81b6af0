#!/usr/bin/env python3
"""Draws what run.py has measured, as in Faustino 2020: error over time and iterations, speed, time in collectives, age.

  /usr/bin/python3 examples/matrix_factorisation/plot.py FOLDER [-o FILE.svg|FILE.png]
"""

import argparse
import json
import pathlib
import sys

import matplotlib

matplotlib.use("Agg")  # no display
matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "papaya", "font.sans-serif": ["DejaVu Sans"],
                            "font.size": 8, "axes.grid": True, "grid.alpha": 0.3, "lines.linewidth": 1.1})
from matplotlib import pyplot  # noqa: E402  after the choice of what draws

BASELINES = {"native": ("black", "--"), "consistent": ("grey", ":")}


class Results:
    def __init__(self, folder):
        known = json.loads((folder / "results.json").read_text(encoding="utf-8"))
        self.target = known["target"]
        self.summary = {label: row for label, row in known["summary"].items() if row}
        # Of each the round in the middle.
        self.runs = {label: json.loads((folder / f"{label.replace(' ', '-')}.{row['middle_round']}.json").read_text(
            encoding="utf-8")) for label, row in self.summary.items()}
        slacks = [label for label in self.summary if label.startswith("slack ")]
        colours = pyplot.get_cmap("viridis")
        self.styles = {**BASELINES, **{label: (colours(0.9 * place / max(1, len(slacks) - 1)), "-")
                                       for place, label in enumerate(slacks)}}
        self.slacks = slacks

    def lines(self, axes, x, y, ends_at_target=True):
        """A curve for each allreduce; `x` and `y` make the values of a run's iterations."""
        for label, run in self.runs.items():
            last = run["target"]["iteration"] if ends_at_target else None
            colour, dashes = self.styles[label]
            points = list(zip(x(run)[:last], y(run)[:last]))
            some = points[::1 + len(points) // 75] + points[-1:]  # as many as can be seen
            axes.plot(*zip(*some), color=colour, linestyle=dashes, label=label)

    def bars(self, axes, names):
        """A bar for each allreduce; the first value behind the others."""
        labels = list(self.summary)
        for (name, title), alpha in zip(names.items(), (0.45, 1)):
            heights = [1e3 * (row[name] or 0) / row["iterations"] for row in self.summary.values()]
            axes.bar(range(len(labels)), heights, color=[self.styles[label][0] for label in labels], alpha=alpha,
                     label=title)
        name_bars(axes, labels)


def name_bars(axes, labels):
    axes.set_xticks(range(len(labels)), [label.removeprefix("slack ") for label in labels], rotation=45, ha="right",
                    rotation_mode="anchor")


def seconds(run):
    return run["iterations"]["mean_seconds"]


def iterations(run):
    return range(1, len(run["iterations"]["error"]) + 1)


def draw_errors(results, over_time, over_iterations):
    for axes, x, title in ((over_time, seconds, "seconds (mean of the ranks)"),
                           (over_iterations, iterations, "iterations")):
        results.lines(axes, x, lambda run: run["iterations"]["error"])
        axes.axhline(results.target, color="red", linewidth=0.6)
        axes.set(xlabel=title, ylabel="error (RMSE, held out)")
    over_time.legend(fontsize=6)
    over_time.set_title("Error over time")
    over_iterations.set_title("Error over iterations")


def draw_seconds(results, axes):
    for place, (label, row) in enumerate(results.summary.items()):
        below, above = row["seconds"] - row["least_seconds"], row["most_seconds"] - row["seconds"]
        axes.bar(place, row["seconds"], yerr=[[below], [above]], color=results.styles[label][0], capsize=2,
                 error_kw={"linewidth": 0.8, "ecolor": "red"})
    name_bars(axes, results.summary)
    axes.set(xlabel="slack", ylabel="seconds", title=f"Until the error is {results.target:.4f}")


def draw_speed(results, axes):
    def speed(row):
        return row["iterations"] / row["seconds"]
    slacks = [int(label.removeprefix("slack ")) for label in results.slacks]
    axes.plot(slacks, [speed(results.summary[label]) for label in results.slacks], "o-", color="tab:blue")
    for label, (colour, dashes) in BASELINES.items():
        if label in results.summary:
            axes.axhline(speed(results.summary[label]), color=colour, linestyle=dashes, label=label)
    axes.set_xscale("symlog", base=2)
    axes.set_xticks(slacks, slacks)
    axes.set(xlabel="slack", ylabel="iterations per second", xlim=(-0.3, None), ylim=(0, None),
             title="Speed")
    axes.legend(fontsize=6)


def draw(folder, file):
    results = Results(folder)
    figure, ((over_time, over_iterations, until), (speed, collective, age)) = pyplot.subplots(
        2, 3, figsize=(10, 5.6), constrained_layout=True)
    draw_errors(results, over_time, over_iterations)
    draw_seconds(results, until)
    draw_speed(results, speed)
    results.bars(collective, {"collective_seconds": "in the allreduce", "waited_seconds": "of that waiting"})
    collective.set(xlabel="slack", ylabel="ms per iteration", title="In the allreduce (pale), waiting (full)")
    results.lines(age, iterations, lambda run: run["iterations"]["age"])
    age.set(xlabel="iterations", ylabel="iterations, mean of the ranks", title="Age of the oldest contribution")
    figure.savefig(file, metadata={"Date": None} if file.suffix == ".svg" else None, dpi=110)
    pyplot.close(figure)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path, help="of run.py's results")
    parser.add_argument("-o", "--output", type=pathlib.Path, help="default: figure.svg in FOLDER")
    chosen = parser.parse_args()
    file = chosen.output or chosen.folder / "figure.svg"
    if file.suffix not in (".svg", ".png"):
        parser.error(f"{file} is to be an .svg or a .png")
    if not (chosen.folder / "results.json").exists():
        parser.error(f"{chosen.folder} holds no results.json: run.py writes it")
    draw(chosen.folder, file)
    return 0


if __name__ == "__main__":
    sys.exit(main())
