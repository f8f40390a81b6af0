"""Collectives across nodes: simulated at the papers' sizes, and measured between pretended machines of this one."""
from evidence.experiment import MPI, Experiment, Figure, Line, box, markdown, number, pairs, percent, simulation, size

EVENTUALLY = "Iakymchuk et al. 2021"


def cells(rows):
    """(ranks, bytes) -> algorithm -> row of tools/simulate."""
    found = {}
    for row in rows:
        found.setdefault((row["ranks"], row["bytes"]), {})[row["algorithm"]] = row
    return found


def is_native(name):
    return name.startswith("native")


def us_in_call(row):
    """Mean over the ranks, of which each waits from its own arrival, drawn evenly from the skew, for the last."""
    ranks = row["ranks"]
    return row["excess_us"]["p50"] + row["skew_us"] * (ranks / (ranks + 1) - 0.5)


def excess_us(row):
    return row["excess_us"]["p50"]


def quickest(row_of, us, native):
    return min((us(row), name) for name, row in row_of.items() if is_native(name) == native)


def flat(results):
    """Of the simulated cells: ranks, bytes, us in the call of native's quickest and of papaya's, its name, and the
    ratio of the excess, each of the one with the least."""
    us, excess = us_in_call, excess_us
    return [(ranks, count, quickest(row_of, us, True)[0], *quickest(row_of, us, False),
             quickest(row_of, excess, False)[0] / quickest(row_of, excess, True)[0])
            for name, rows in results.items() if name.endswith(".simulation")
            for (ranks, count), row_of in sorted(cells(rows).items())]


def factors(name, results):
    """The same of native's quickest, where all arrive at once: times."""
    return [(ranks, count, quickest(row_of, excess_us, True), quickest(row_of, excess_us, False))
            for (ranks, count), row_of in sorted(cells(results.get(f"{name}.simulation", [])).items())]


def box_rows(results):
    for name, measured in results.items():
        if ".box." in name:
            _, _, mpi, place = name.split(".")
            for count, native, ours in pairs(measured):
                yield (MPI[mpi], place.replace("x", " x "), size(count), ours["algorithm"],
                       number(native["inside_us"]["p50"]), number(ours["inside_us"]["p50"]),
                       f"{native['inside_us']['p50'] / ours['inside_us']['p50']:.2f}")


BOX_HEAD = ("MPI", "machines x ranks", "bytes", "algorithm", "native, us", "papaya, us", "times as fast")


def box_table(results):
    rows = list(box_rows(results))
    return "\nBetween pretended machines:\n\n" + markdown(BOX_HEAD, rows) if rows else ""


def hierarchical_table(results):
    rows = [(ranks, size(count), number(native), number(ours), name, percent(1 - ours / native), f"{excess:.2f}")
            for ranks, count, native, ours, name, excess in flat(results)]
    return "Simulated, 4 ranks a node:\n\n" + markdown(
        ("ranks", "bytes", "native, us in the call", "papaya, us", "papaya's quickest", "improvement",
         "ratio of the excess"), rows) + box_table(results)


def hierarchical_headline(results):
    found = [(1 - ours / native, f"{ranks} ranks, {size(count)}") for ranks, count, native, ours, *_ in flat(results)]
    if not found:
        return "not measured"
    best, place = max(found)
    return (f"{percent(best)} ({place}, simulated), mean "
            f"{percent(sum(share for share, _ in found) / len(found))}")


def hierarchical_figure(results):
    lines = []
    found = flat(results)
    for count in sorted({ranks for ranks, *_ in found}):
        points = [(x, 100 * (1 - ours / native)) for ranks, x, native, ours, *_ in found if ranks == count]
        lines.append(Line(f"{count} ranks", [x for x, _ in points], [y for _, y in points]))
    return Figure("message size in bytes", "improvement over native, %", lines, reference=0)


def factor_table(name):
    def make(results):
        rows = [(ranks, size(count), native[1].removeprefix("native:"), number(native[0]), ours[1], number(ours[0]),
                 f"{native[0] / ours[0]:.2f}") for ranks, count, native, ours in factors(name, results)]
        return "Simulated:\n\n" + markdown(
            ("ranks", "bytes", "native's quickest", "us", "papaya's", "us", "times as fast"), rows) + box_table(results)
    return make


def factor_headline(name):
    def make(results):
        found = [(native[0] / ours[0], f"{ranks} ranks, {size(count)}")
                 for ranks, count, native, ours in factors(name, results)]
        measured = [(float(row[-1]), f"{row[0]}, {row[1]}, {row[2]}") for row in box_rows(results)]
        return "; ".join(f"up to {best:.2f} times as fast ({place}, {how})" for best, place, how in (
            (*max(found), "simulated") if found else (0, "", ""),
            (*max(measured), "pretended machines") if measured else (0, "", "")) if how) or "not measured"
    return make


def factor_figure(name):
    def make(results):
        found = factors(name, results)
        lines = []
        for count in sorted({ranks for ranks, *_ in found}):
            points = [(x, native[0] / ours[0]) for ranks, x, native, ours in found if ranks == count]
            lines.append(Line(f"{count} ranks", [x for x, _ in points], [y for _, y in points]))
        return Figure("message size in bytes", "times as fast as native", lines, reference=1)
    return make


def by_ranks_figure(name):
    def make(results):
        found = factors(name, results)
        lines = []
        for count in sorted({count for _, count, *_ in found}):
            points = [(x, native[0], ours[0]) for x, bytes_, native, ours in found if bytes_ == count]
            for word, at in (("native's quickest", 1), ("dissemination", 2)):
                lines.append(Line(f"{word}, {size(count)} B", [one[0] for one in points], [one[at] for one in points]))
        return Figure("nodes", "time of MPI_Allreduce in us", lines, log_x=False)
    return make


def of_factor(name, title, paper, claim, runs, figure):
    return Experiment(name, title, paper, claim, runs, factor_table(name), factor_headline(name), figure(name))


KIB = 1 << 10
LARGE = [KIB << n for n in range(6, 15)]  # 64 KiB to 16 MiB
NATIVE_ALLREDUCE = ["native:ompi", "native:mpich"]

EXPERIMENTS = (
    Experiment("hierarchical-allreduce", "Hierarchical MPI_Allreduce when ranks arrive at random",
               "Mohammadalizadehbakhtevari 2021",
               "6.4: up to +58 %, mean +20 to +29 % over flat reduce-scatter-allgather (8 to 128 ranks, 64 KiB on)",
               (simulation("hierarchical-allreduce.simulation", [8, 16, 32, 64, 128], 4, LARGE[::2],
                           [*NATIVE_ALLREDUCE, "hierarchical/rabenseifner", "leaders/rabenseifner"],
                           "--pattern", "random", "--mif", "20", weight=150),
                *(box(f"hierarchical-allreduce.box.{mpi}.2x2", mpi, 2, 2, "allreduce", "-m", "64K:1M:4", "--algorithms",
                      "hierarchical_leaders", "--mif", "20", "--mode", "imbalanced", "--seconds", "0.5")
                  for mpi in MPI)),
               hierarchical_table, hierarchical_headline, hierarchical_figure),
    of_factor("ring", "The segmented pipelined ring, MPI_Allreduce of large messages", EVENTUALLY,
              "V d: 2.07 to 2.26 times as fast as MPI's ring, 1.78 times as its best at 8 MB, from 2 "
              "MiB on; slower below (32 nodes, a rank each)",
              (simulation("ring.simulation", [32], 1, [8 * KIB, 64 * KIB, 512 * KIB, 2 << 20, 8 << 20, 32 << 20],
                          [*NATIVE_ALLREDUCE, "native:lr", "ring"], "--pattern", "none", weight=60),
               *(box(f"ring.box.{mpi}.4x1", mpi, 4, 1, "allreduce", "-m", "64K:4M:8", "--algorithms", "ring",
                     "--seconds", "0.5") for mpi in MPI)), factor_figure),
    of_factor("alltoall", "MPI_Alltoall by notified writes", EVENTUALLY,
              "V e: 2.85, 5.14 and 5.07 times as fast at 32 KiB (4, 8 and 16 nodes of 4 ranks); level up to 1 KiB",
              (simulation("alltoall.simulation", [16, 32, 64], 4, [512, 2 * KIB, 8 * KIB, 16 * KIB, 32 * KIB],
                          ["native:ompi", "native:mpich", "notified_alltoall", "hierarchical_alltoall"],
                          "--collective", "alltoall", weight=40),
               *(box(f"alltoall.box.{mpi}.2x2", mpi, 2, 2, "alltoall", "-m", "512:32K:4", "--algorithms",
                     "notified_alltoall", "hierarchical_alltoall", "--seconds", "0.5", weight=40) for mpi in MPI)),
              factor_figure),
    of_factor("dissemination", "n-way dissemination, MPI_Allreduce of 1 and of 255 elements", "End et al. 2015",
              "V: no gain with 1 integer, well below MVAPICH and Open MPI with 255 (up to 36 nodes)",
              (simulation("dissemination.simulation", [4, 8, 16, 36, 64, 96], 1, [8, 255 * 8],
                          [*NATIVE_ALLREDUCE, *(f"dissemination:radix={n}" for n in range(1, 8))], "--pattern", "none",
                          weight=40),
               *(box(f"dissemination.box.{mpi}.4x1", mpi, 4, 1, "allreduce", "-m", "8:2040:255", "--algorithms",
                     "dissemination", "--seconds", "0.5") for mpi in MPI)), by_ranks_figure),
)
