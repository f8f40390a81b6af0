"""The thesis: reductions on one node whose ranks arrive at random times (Mohammadalizadehbakhtevari 2021, 4 and 5)."""
import os

from evidence.experiment import MPI, Experiment, Figure, Line, bench, markdown, number, pairs, percent, size

THESIS = "Mohammadalizadehbakhtevari 2021"


def improvement(native, ours):
    """Of the time that a rank is in the call, as the thesis measures it: waiting is part of it."""
    return 1 - ours["inside_us"]["p50"] / native["inside_us"]["p50"]


def is_fair(mpi, ranks):
    """MPICH waits in a loop: with more ranks than cores its calls take time slices, and whoever yields is far ahead."""
    return mpi == "openmpi" or ranks <= os.cpu_count()


def runs_of(experiment, collective, algorithm, ranks, sizes, mif):
    # Whose sums are made in the order of arrival may differ in their last bits from call to call.
    settings = ("PAPAYA_ORDER=arrival",) if algorithm == "arrival_chain" else ()
    return tuple(bench(f"{experiment}.{mpi}.{count}", mpi, count, collective, "-m", sizes, "--algorithms", algorithm,
                       "--mif", str(mif), "--mode", "imbalanced", "--seconds", "0.3", settings=settings, weight=12)
                 for mpi in MPI for count in ranks if is_fair(mpi, count))


def where(name):
    _, mpi, ranks = name.split(".")
    return f"{MPI[mpi]}, {ranks} ranks"


def table(results):
    rows = [(where(name), size(count), number(native["inside_us"]["p50"]), number(ours["inside_us"]["p50"]),
             percent(improvement(native, ours)), f"{ours['excess_us']['p50'] / native['excess_us']['p50']:.2f}")
            for name, measured in results.items() for count, native, ours in pairs(measured)]
    return markdown(("", "bytes", "native, us in the call", "papaya, us", "improvement", "ratio of the excess"), rows)


def headline(results):
    found = [(improvement(native, ours), f"{where(name)}, {size(count)}")
             for name, measured in results.items() for count, native, ours in pairs(measured)]
    if not found:
        return "not measured"
    best, place = max(found)
    return f"{percent(best)} ({place}), mean {percent(sum(share for share, _ in found) / len(found))}"


def figure(results):
    lines = []
    for name, measured in results.items():
        points = [(count, 100 * improvement(native, ours)) for count, native, ours in pairs(measured)]
        lines.append(Line(where(name), [x for x, _ in points], [y for _, y in points]))
    return Figure("message size in bytes", "improvement over native, %", lines, reference=0)


def experiment(name, title, claim, *run):
    return Experiment(name, title, THESIS, claim, runs_of(name, *run), table, headline, figure)


EXPERIMENTS = (
    experiment("small-allreduce", "Small MPI_Allreduce, the last to arrive leads",
               "4.1: up to +36 % and +56 % (32 ranks of a node, two clusters), mean +20 % and +22 %, at MIF 20",
               "allreduce", "arrival_leader", (2, 4, 8), "8:64K:8", 20),
    experiment("reduce", "MPI_Reduce in the order of arrival",
               "5.1: up to +73 %, mean +63 % at MIF 75 (16 ranks of a node)",
               "reduce", "arrival_chain", (2, 4, 8), "64K:4M:4", 75),
    experiment("large-allreduce", "Large MPI_Allreduce in the order of arrival",
               "5.4: up to +44 %, mean +20 % at MIF 20 (4 ranks of a node); with 16 ranks no gain",
               "allreduce", "arrival_chain", (2, 4), "64K:4M:4", 20),
)
