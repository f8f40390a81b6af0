"""What the ranks have measured, put together: a table, and JSON lines."""

import json
import math
import os
import sys

import numpy

from mistake import Mistake
from training import FIELDS

MOST_ROWS = 20


def create(file):
    """So that a file that cannot be written is known before the training."""
    try:
        with open(file, "w", encoding="utf-8"):
            pass
    except OSError as error:
        raise Mistake(f"{file} cannot be written: {os.strerror(error.errno)}")


def gathered(ranks, values, operation="sum"):
    """The mean of the ranks, or their largest."""
    result = ranks.allreduce(numpy.array(values, "float64"), operation)
    return result / ranks.size if operation == "sum" else result


def evaluations(ranks, run, accuracies):
    """A dictionary for each: the mean of the ranks since the one before, but where said otherwise."""
    mean, most = gathered(ranks, run.steps), gathered(ranks, run.steps, "max")
    accuracies = gathered(ranks, accuracies)
    column = {name: place for place, name in enumerate(FIELDS)}
    rows, begin, before = [], 0, 0.0
    for (end, _), accuracy in zip(run.snapshots, accuracies):
        part, peaks = mean[begin:end], most[begin:end]
        seconds = float(most[end - 1, column["seconds"]])
        row = {name: float(part[:, column[name]].mean()) for name in ("loss", "computing", "summing", "waited", "age",
                                                                      "ranks")}
        rows.append({"step": end, "epoch": end / run.batches.steps, "seconds": seconds,
                     "mean_seconds": float(mean[end - 1, column["seconds"]]), "accuracy": float(accuracy),
                     "loss": row["loss"], "steps_per_second": (end - begin) / (seconds - before),
                     "computing_ms": 1e3 * row["computing"], "summing_ms": 1e3 * row["summing"],
                     "waited_ms": None if math.isnan(row["waited"]) else 1e3 * row["waited"],
                     "age": row["age"], "oldest": int(peaks[:, column["age"]].max()), "ranks": row["ranks"]})
        begin, before = end, seconds
    return rows


def have_same_model(ranks, model):
    lowest, highest = (ranks.allreduce(model.copy(), operation) for operation in ("min", "max"))
    return bool((lowest == highest).all())


def table(settings, rows, summary):
    late = "no straggler" if settings["straggler"] == "none" else \
        f"{settings['straggler']} straggler of {settings['delay_ms']:g} ms"
    lines = [f"{settings['ranks']} rank{'s' * (settings['ranks'] > 1)}, {settings['mpi']}; {settings['data']}: "
             f"{settings['training']} samples to train with, {settings['held_out']} to test; {settings['parameters']} "
             "parameters", f"{settings['algorithm']}; {late}; a step computes for {summary['computing_ms']:.2f} ms", "",
             "  step  epoch  seconds  accuracy    loss  steps/s  in the sum  waiting  age: mean  oldest  ranks"]
    some = rows[::-math.ceil(len(rows) / MOST_ROWS)][::-1]
    for row in some:
        waiting = "-" if row["waited_ms"] is None else f"{row['waited_ms']:.2f}"
        lines.append(f"{row['step']:>6}  {row['epoch']:>5.1f}  {row['seconds']:>7.2f}  {row['accuracy']:>8.1%}  "
                     f"{row['loss']:>6.3f}  {row['steps_per_second']:>7.0f}  {row['summing_ms']:>7.2f} ms  "
                     f"{waiting:>7}  {row['age']:>9.1f}  {row['oldest']:>6}  {row['ranks']:>5.1f}")
    lines += ["", f"With all updates: accuracy {summary['accuracy']:.1%}, "
              + ("the same model on all ranks" if summary["same_model"] else "DIFFERENT MODELS on the ranks")]
    return "\n".join(lines) + "\n"


def report(chosen, ranks, samples, run):
    """Returns the exit code."""
    same = have_same_model(ranks, run.network.model)
    finite = bool(numpy.isfinite(run.network.model).all())
    accuracies, final = run.accuracies(samples)
    rows = evaluations(ranks, run, accuracies)
    if ranks.rank != 0:
        return 0 if same and finite else 1
    if not finite:
        sys.stderr.write("classify.py: the model has become infinite: take a lower --learning-rate or --slack.\n")
        return 1
    settings = {**vars(chosen), "ranks": ranks.size, "mpi": ranks.name, "algorithm": run.total.info,
                "training": len(samples.labels), "held_out": len(samples.test_labels),
                "classes": samples.classes, "parameters": run.network.model.size}
    summary = {"accuracy": final, "same_model": same, "seconds": rows[-1]["seconds"], "steps": rows[-1]["step"],
               "steps_per_second": rows[-1]["step"] / rows[-1]["seconds"]}
    for name in ("computing_ms", "summing_ms", "age", "ranks"):
        summary[name] = float(numpy.mean([row[name] for row in rows]))
    summary["oldest"] = max(row["oldest"] for row in rows)
    if chosen.json:
        with open(chosen.json, "w", encoding="utf-8") as file:
            for record in ({"settings": settings}, *rows, {"summary": summary}):
                file.write(json.dumps(record) + "\n")
    sys.stdout.write(table(settings, rows, summary))
    return 0 if same else 1
