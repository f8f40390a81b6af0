#!/usr/bin/env python3
"""Draws what run.py has measured: accuracy over time and over steps, as eager-SGD's paper does, and where time went.

  /usr/bin/python3 examples/classification/plot.py FOLDER [-o FILE.svg|FILE.png]
"""

import argparse
import json
import pathlib
import statistics
import sys

import matplotlib

matplotlib.use("Agg")  # no display
matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "papaya", "font.sans-serif": ["DejaVu Sans"],
                            "font.size": 8, "axes.grid": True, "grid.alpha": 0.3, "lines.linewidth": 1.1})
from matplotlib import pyplot  # noqa: E402  after the choice of what draws

STYLES = {"native": ("black", "--"), "papaya": ("grey", ":"), "solo": ("tab:red", "-"), "majority": ("tab:orange", "-")}


def read(file):
    """The evaluations of a run."""
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()][1:-1]


class Results:
    def __init__(self, folder):
        known = json.loads((folder / "results.json").read_text(encoding="utf-8"))
        self.target = statistics.fmean(known["targets"])
        self.summary = known["summary"]
        self.rows = {label: [read(folder / f"{label.replace(' ', '-')}.{seed}.jsonl") for seed in known["seeds"]]
                     for label in self.summary}
        slacks = [label for label in self.summary if label not in STYLES]
        colours = pyplot.get_cmap("viridis")
        self.styles = {**STYLES, **{label: (colours(0.8 * place / max(1, len(slacks) - 1)), "-")
                                    for place, label in enumerate(slacks)}}

    def mean(self, label, name):
        """At each evaluation the mean of the seeds."""
        return [statistics.fmean(row[name] for row in rows) for rows in zip(*self.rows[label])]

    def lines(self, axes, x, y):
        for label in self.summary:
            colour, dashes = self.styles[label]
            axes.plot(self.mean(label, x), self.mean(label, y), color=colour, linestyle=dashes, label=label)

    def bars(self, axes, heights, spans=None):
        """A bar for each way that has a height; `spans` are from the least to the most."""
        for place, (label, height) in enumerate(heights.items()):
            if height is None:
                axes.text(place, 0, "not reached", rotation=90, ha="center", va="bottom")
                continue
            error = None if spans is None else [[height - spans[label][0]], [spans[label][1] - height]]
            axes.bar(place, height, yerr=error, color=self.styles[label][0], capsize=2,
                     error_kw={"linewidth": 0.8, "ecolor": "tab:blue"})
        axes.set_xticks(range(len(heights)), list(heights), rotation=45, ha="right", rotation_mode="anchor")


def draw_accuracies(results, over_time, over_steps):
    for axes, x, label in ((over_time, "seconds", "seconds"), (over_steps, "step", "steps")):
        results.lines(axes, x, "accuracy")
        axes.axhline(results.target, color="tab:blue", linewidth=0.6)
        axes.set(xlabel=label, ylabel="accuracy on samples held out", ylim=(max(0, 2.2 * results.target - 1.2), None))
    over_time.legend(fontsize=6, loc="lower right")
    over_time.set_title("Accuracy over time")
    over_steps.set_title("Accuracy over steps")


def draw_seconds(results, axes):
    heights = {label: None if None in row["seconds"] else statistics.median(row["seconds"])
               for label, row in results.summary.items()}
    spans = {label: (min(row["seconds"]), max(row["seconds"])) for label, row in results.summary.items()
             if heights[label] is not None}
    results.bars(axes, heights, spans)
    axes.set(ylabel="seconds", title=f"Until the accuracy is {results.target:.1%}")


def draw(folder, file):
    results = Results(folder)
    figure, ((over_time, over_steps, until), (speed, collective, age)) = pyplot.subplots(
        2, 3, figsize=(10, 5.6), constrained_layout=True)
    draw_accuracies(results, over_time, over_steps)
    draw_seconds(results, until)
    for axes, name, title, label in ((speed, "steps_per_second", "Speed", "steps per second"),
                                     (collective, "summing_ms", "In the sum", "ms per step"),
                                     (age, "age", "Age of the oldest update", "steps, mean")):
        results.bars(axes, {way: row[name] for way, row in results.summary.items()})
        axes.set(title=title, ylabel=label)
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
