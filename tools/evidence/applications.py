"""The papers' applications: the programs of examples/, each with its baseline, run by its own run.py."""
import statistics
import sys

from evidence.experiment import BUILD, FOLDER, LAUNCH, MPI, ROOT, Experiment, Run

PRACE = "Gall et al. 2019"


def runs_of(name, example, *words, weight, mpis=tuple(LAUNCH)):
    return tuple(Run(f"{name}.{mpi}", (sys.executable, f"{ROOT}/examples/{example}/run.py", "--build", BUILD,
                                       "--mpi", mpi, "--output", FOLDER, *words), weight, LAUNCH[mpi][0])
                 for mpi in mpis)


def where(name):
    return MPI[name.rpartition(".")[2]]


def outputs(results):
    return "\n".join(f"{where(name)}:\n\n```text\n{result['output'].rstrip()}\n```\n"
                     for name, result in results.items())


def each(sentence):
    """The headline of an application: what `sentence` makes of the JSON file of each MPI's run."""
    return lambda results: "; ".join(f"{where(name)}: {sentence(result['files'])}"
                                     for name, result in results.items()) or "not measured"


def factorisation(files):
    summary = files["results.json"]["summary"]
    best = min((one["seconds"], name) for name, one in summary.items() if name.startswith("slack"))
    return (f"{100 * (1 - best[0] / summary['slack 0']['seconds']):.0f} % sooner with {best[1]} "
            f"than with slack 0, {100 * (1 - best[0] / summary['native']['seconds']):.0f} % than with MPI's own")


def sorting(files):
    shuffle = {mode: statistics.median(run["phases"]["shuffle"]["mean_s"] for run in files["terasort.json"]
                                       if run["mode"] == mode) for mode in ("alltoallv", "notified")}
    return f"shuffle {shuffle['alltoallv'] / shuffle['notified']:.2f} times as fast"


EXPERIMENTS = (
    Experiment("matrix-factorisation", "Matrix factorisation with a slack", "Iakymchuk et al. 2021, Faustino 2020",
               "V a: the error of slack 0 is reached 6 % sooner with slack 2, 12.3 % with 32, 19 % with 64",
               runs_of("matrix-factorisation", "matrix_factorisation", "--rounds", "3", "--slacks", "0,1,2,4,8,32,255",
                       weight=45), outputs, each(factorisation)),
    Experiment("terasort", "Terasort with an asynchronous shuffle", PRACE,
               "4.2: more GB/s than MPI's shuffle throughout weak scaling; equal for many ranks and little data",
               runs_of("terasort", "terasort", "--rounds", "3", "--records", "1000000", weight=45), outputs,
               each(sorting)),
)
