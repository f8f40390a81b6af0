#!/usr/bin/env python3
"""Trains a network on several ranks, which sum up their updates consistently, with slack, or without waiting.

  mpirun -n 4 /usr/bin/python3 examples/classification/classify.py [OPTION...]

Every rank has the same network and computes on its part of each batch. With MPI_Allreduce (--sum consistent) all wait
for the one that is late; papaya's weakly consistent collectives (stale, solo, majority) let the others go on. run.py
compares them. Ends with exit code 1 if the ranks have come to different networks.
"""

import argparse
import ctypes
import os
import sys

os.environ.setdefault("OMP_NUM_THREADS", "1")  # a rank for each core

import mistake  # noqa: E402  after OMP_NUM_THREADS
try:
    import numpy
    import torch

    import data
    import output
    import straggler
    import sums
    import training
    import world
except ImportError as error:
    mistake.missing(error)


def at_least(kind, least):
    def number(text):
        try:
            value = kind(text)
        except ValueError:
            value = None
        if value is None or not least <= value < 1e9:
            raise argparse.ArgumentTypeError(f"{text!r} is no {'whole ' * (kind is int)}number from {least} on")
        return value
    return number


def options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
                                     allow_abbrev=False)
    count, positive, amount = at_least(int, 0), at_least(int, 1), at_least(float, 0)
    parser.add_argument("--sum", choices=("consistent", "stale", "solo", "majority"), default="consistent",
                        help="consistent: MPI_Allreduce, papaya's under papaya run; stale: with updates of others that "
                        "are at most --slack steps old; solo: with the updates that are there when the first rank "
                        "comes; majority: when a rank comes that is drawn for the step")
    parser.add_argument("--slack", type=count, help="of stale, default: 4")
    parser.add_argument("--lag", type=count, help="of solo and majority: the others wait for a rank that is more steps "
                        "behind, default: 4")
    parser.add_argument("--synchronize", type=count, default=0, metavar="N",
                        help="every N steps all updates that are outstanding are summed up by MPI_Allreduce, so that "
                        "all ranks have the same model; default: 0, at the end only")
    parser.add_argument("--straggler", choices=straggler.KINDS, default="none",
                        help="fixed: the last rank is late; rotating: each in turn; random: one drawn for the step")
    parser.add_argument("--delay-ms", type=amount, help="by so much, in each step, default: 2")
    parser.add_argument("--data", default="digits",
                        help="digits (scikit-learn's), generated, or a folder with MNIST's files; default: digits")
    parser.add_argument("--epochs", type=positive, default=20, help="default: 20")
    parser.add_argument("--batch", type=positive, default=64, help="samples of all ranks in a step, default: 64")
    parser.add_argument("--hidden", type=positive, default=128, help="width of the hidden layer, default: 128")
    parser.add_argument("--learning-rate", type=amount, default=0.3, help="default: 0.3")
    parser.add_argument("--momentum", type=amount, default=0, help="below 1, default: 0")
    parser.add_argument("--seed", type=count, default=1, help="of all that is random, default: 1")
    parser.add_argument("--evaluate", type=positive, default=5, metavar="N", help="accuracy every N steps, default: 5")
    parser.add_argument("--json", metavar="FILE", help="for what was measured, as JSON lines")
    chosen = parser.parse_args()
    if chosen.slack is not None and chosen.sum != "stale":
        parser.error("--slack is for --sum stale: the others have none")
    if chosen.lag is not None and chosen.sum not in ("solo", "majority"):
        parser.error("--lag is for --sum solo and majority: the others have none")
    if chosen.delay_ms is not None and chosen.straggler == "none":
        parser.error("--delay-ms needs a straggler: --straggler fixed, rotating or random")
    if chosen.momentum >= 1:
        parser.error("--momentum is to be below 1")
    chosen.slack = 4 if chosen.slack is None else chosen.slack
    chosen.lag = 4 if chosen.lag is None else chosen.lag
    chosen.delay_ms = 0 if chosen.straggler == "none" else 2 if chosen.delay_ms is None else chosen.delay_ms
    return chosen


def agreed(ranks, function):
    """The result of a function that may find a mistake on one rank only: then all end, and the first such rank says
    it."""
    result, sentence = None, None
    try:
        result = function()
    except mistake.Mistake as found:
        sentence = found
    first = ranks.allreduce(numpy.array([ranks.size if sentence is None else ranks.rank], "float64"), "min")[0]
    if first == ranks.rank:
        sys.stderr.write(f"classify.py: {sentence}.\n")
    if first < ranks.size:
        sys.exit(1)
    return result


def check_library(name):
    try:
        ctypes.CDLL(name)
    except OSError as error:
        raise mistake.Mistake(f"{error}: set LD_LIBRARY_PATH to the folder that has papaya's libraries")


def prepare(chosen, ranks):
    if chosen.sum != "consistent":
        check_library(ranks.library)
    samples = data.load(chosen.data, chosen.seed)
    if chosen.batch < ranks.size:
        raise mistake.Mistake(f"--batch {chosen.batch} is fewer than the {ranks.size} ranks: take a larger one")
    if len(samples.labels) < chosen.batch:
        raise mistake.Mistake(f"{chosen.data} has {len(samples.labels)} samples to train with, fewer than --batch "
                              f"{chosen.batch}: take a smaller one")
    if chosen.json and ranks.rank == 0:
        output.create(chosen.json)
    return samples


def train(chosen, ranks):
    samples = agreed(ranks, lambda: prepare(chosen, ranks))
    torch.manual_seed(chosen.seed)  # the same network everywhere
    network = training.Network(samples.points.shape[1], chosen.hidden, samples.classes)
    late = straggler.Straggler(chosen.straggler, chosen.delay_ms, chosen.seed, ranks)
    run = training.Training(chosen, network, training.Batches(samples, chosen.batch, chosen.seed, ranks),
                            sums.create(chosen.sum, ranks, network.model, chosen.slack, chosen.lag), late)
    ranks.allreduce(numpy.zeros(1))  # all start at once
    run.run()
    return output.report(chosen, ranks, samples, run)


def main():
    chosen = options()
    torch.set_num_threads(1)
    ranks = None
    try:
        ranks = world.connect()
        return train(chosen, ranks)
    except ImportError as error:
        mistake.missing(error)
    except Exception:
        sys.excepthook(*sys.exc_info())
    if ranks is not None:
        ranks.abort()  # the others may wait for this one
    return 1


if __name__ == "__main__":
    sys.exit(main())
