"""What an experiment consists of: the runs, and the table, the sentence and the figure made of what they leave."""
import dataclasses
import typing

LAUNCH = {"openmpi": ["mpirun.openmpi", "--oversubscribe", "--bind-to", "none", "-n"], "mpich": ["mpirun.mpich", "-n"]}
MPI = {"openmpi": "Open MPI", "mpich": "MPICH"}
JSON, FOLDER, BUILD, ROOT = "{json}", "{folder}", "{build}", "{root}"  # in a command: paths that its run knows


@dataclasses.dataclass(frozen=True)
class Run:
    """A command, run in the build folder, which writes the file {json}. `weight`: seconds that it takes, about."""

    name: str
    command: tuple
    weight: float = 10
    needs: str = ""  # a program that has to be there
    ends: bool = True  # else it may stay, in MPI_Finalize, once its result is there


@dataclasses.dataclass(frozen=True)
class Line:
    name: str
    x: list
    y: list


@dataclasses.dataclass(frozen=True)
class Figure:
    x: str
    y: str
    lines: list
    log_x: bool = True
    reference: float | None = None  # a horizontal line: what is drawn is compared with that


@dataclasses.dataclass(frozen=True)
class Experiment:
    """`results`: what each run left, by its name. `table(results)` is Markdown, `headline(results)` one sentence on
    what was seen, `figure(results)` a Figure; without it the figures are those that the runs drew."""

    name: str
    title: str
    paper: str
    claim: str  # with the paper's figures
    runs: tuple
    table: typing.Callable
    headline: typing.Callable
    figure: typing.Callable | None = None


def bench(name, mpi, ranks, *words, settings=(), weight=10):
    before = ("env", *settings) if settings else ()
    return Run(name, (*LAUNCH[mpi], str(ranks), *before, "./papaya", "bench", *words, "--json", JSON), weight,
               LAUNCH[mpi][0])


def box(name, mpi, nodes, ranks, *words, weight=25):
    """Several pretended machines, each with a network namespace and a memory of its own. On these MPICH 4.0 over UCX
    and TCP now and then does not end MPI_Finalize, natively too."""
    return Run(name, (f"{ROOT}/tests/cluster/box", "--nodes", str(nodes), "--ranks", str(ranks), "--mpi", mpi, "--",
                      "./papaya", "bench", *words, "--json", JSON), weight, LAUNCH[mpi][0], mpi != "mpich")


def simulation(name, ranks, per_node, sizes, algorithms, *words, weight=20):
    return Run(name, (f"{ROOT}/tools/simulate", "--build", BUILD, "--ranks", *map(str, ranks), "--ranks-per-node",
                      str(per_node), "--bytes", *map(str, sizes), "--algorithm", *algorithms, *words, "--json", JSON),
               weight, "smpirun")


def size(count):
    for unit, scale in (("M", 1 << 20), ("K", 1 << 10)):
        if count % scale == 0 and count:
            return f"{count // scale}{unit}"
    return str(count)


def number(value):
    if value is None:
        return ""
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"


def percent(share):
    return f"{100 * share:+.0f} %"


def markdown(head, rows):
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines) + "\n"


def pairs(measured):
    """(size, native's row, the other's) of each row of papaya bench that is not native."""
    native = {(row["collective"], row["bytes"]): row for row in measured["rows"] if row["algorithm"] == "native"}
    return [(row["bytes"], native[row["collective"], row["bytes"]], row) for row in measured["rows"]
            if row["algorithm"] != "native"]
