"""The papers' applications: the programs of examples/, each with its baseline, run by its own run.py."""
import statistics
import sys

from evidence.experiment import BUILD, FOLDER, LAUNCH, MPI, ROOT, Experiment, Run

PRACE = "Gall et al. 2019"
ROUNDS = ("--rounds", "3", "--slacks", "0,1,2,4,8,32,255")


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
    def factor(*phases):
        native, ours = (statistics.median(sum(run["phases"][phase]["mean_s"] for phase in phases)
                                          for run in files["terasort.json"] if run["mode"] == mode)
                        for mode in ("alltoallv", "notified"))
        return native / ours
    return (f"{factor('partition', 'shuffle', 'sort', 'merge'):.2f} times as fast with sort and merge, partition and "
            f"shuffle alone {factor('partition', 'shuffle'):.2f} times")


def surviving(files):
    failure = files["kmeans.json"]["failure"][-1]
    recovery, checkpoints = (100 * failure[f"{what}_s"] / failure["seconds"] for what in ("recovery", "checkpoints"))
    return f"recovery {recovery:.2f} % of the run, checkpoints {checkpoints:.4f} %, the same centroids"


def kills(results):
    found = [result["output"].strip().splitlines()[-1] for result in results.values()]
    return "; ".join(found) or "not measured"


def multiplication(files):
    rows = files["matrix_multiplication.json"]
    return "times PDGEMM's GFLOP/s: " + ", ".join(
        f"{row['variants']['notified']['gflops'] / row['variants']['pdgemm']['gflops']:.2f} ({row['placement']}, "
        f"{row['ranks']} ranks)" for row in rows)


def training(files):
    found = {}
    for way, row in files["results.json"]["summary"].items():
        times = [value for value in row["sooner"] if value is not None]
        if way != "native" and len(times) == len(row["sooner"]):
            found[way] = statistics.median(times)
    best = max(found, key=found.get)
    solo = f", {found['solo']:.2f} with solo" if "solo" in found and best != "solo" else ""
    return f"{found[best]:.2f} times sooner with {best}{solo}"


EXPERIMENTS = (
    Experiment("matrix-factorisation", "Matrix factorisation with a slack", "Iakymchuk et al. 2021, Faustino 2020",
               "V a: the error of slack 0 is reached 6 % sooner with slack 2, 12.3 % with 32, 19 % with 64",
               runs_of("matrix-factorisation", "matrix_factorisation", *ROUNDS, weight=45, mpis=("openmpi",))
               + runs_of("matrix-factorisation", "matrix_factorisation", "--ranks", "2", *ROUNDS, weight=45,
                         mpis=("mpich",)), outputs, each(factorisation)),
    Experiment("terasort", "Terasort with an asynchronous shuffle", PRACE,
               "4.2: more GB/s than MPI's shuffle throughout weak scaling; equal for many ranks and little data",
               runs_of("terasort", "terasort", "--rounds", "3", "--records", "2500000", weight=60), outputs,
               each(sorting)),
    Experiment("kmeans", "K-means that goes on when a rank dies", PRACE,
               "4.1: checkpoints 0.04 to 0.7 % of the run, recovery 0.3 to 2.1 % (16 to 64 processes)",
               runs_of("kmeans", "kmeans", "--rounds", "1", weight=130), outputs, each(surviving)),
    Experiment("kmeans-kills", "K-means, killed again and again", PRACE, "4.1: the run ends with the right result",
               runs_of("kmeans-kills", "kmeans", "--ranks", "3", "--spares", "2", "--kills", "50", "--stops", "2",
                       weight=100), outputs, kills),
    Experiment("matrix-multiplication", "Matrix multiplication by one-sided blocks", PRACE,
               "3: ahead of PDGEMM from n = 15,000 on, by up to 40 % on 25 nodes; random placement costs little",
               runs_of("matrix-multiplication", "matrix_multiplication", weight=25), outputs, each(multiplication)),
    Experiment("classification", "Training with stale and partial sums", "Li et al. 2020 (eager-SGD)",
               "1.27 times as fast as synchronous SGD at an equal accuracy, under load imbalance",
               runs_of("classification", "classification", weight=70, mpis=("openmpi",))
               + runs_of("classification", "classification", "--ranks", "2", weight=60, mpis=("mpich",)), outputs,
               each(training)),
)
