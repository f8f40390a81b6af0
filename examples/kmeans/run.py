#!/usr/bin/env python3
"""Runs K-means plainly, with spares and checkpoints, and while a rank is killed, in turn; or kills ranks many times.

  examples/kmeans/run.py [--mpi openmpi|mpich] [--ranks 4] [--spares 1] [--rounds 1] ...
  examples/kmeans/run.py --kills 50 [--stops 5] ...

The first prints a table, and leaves kmeans.json and, where matplotlib is there (Debian: python3-matplotlib), kmeans.svg
in the folder --output. The second runs small data once without a failure, then so many times while ranks kill
themselves (every other run) or are killed from outside, and stops ranks for a while where --stops says so. Options that
it does not know go to every run of the program. Exit code 1 if a run is lost or its centroids are others.
"""

import argparse
import json
import os
import pathlib
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
# What lets a job go on when a rank dies.
LAUNCH = {"openmpi": ["--enable-recovery", "--oversubscribe", "--bind-to", "none"], "mpich": ["-disable-auto-cleanup"]}
LARGE = ["--points", "200000", "--clusters", "300", "--iterations", "500"]
SMALL = ["--points", "30000", "--clusters", "50", "--iterations", "60"]
PAPER = ("Gall et al. 2019, table 1 (1 million points of 10 dimensions, 1000 centroids, 500 iterations, 16 to 64 "
         "processes):\ncheckpoints every 50 iterations 0.04 to 0.7 % of the run, recovery 0.3 to 2.1 %.")


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mpi", choices=tuple(LAUNCH), default="openmpi")
    parser.add_argument("--ranks", type=int, default=2, help="that work")
    parser.add_argument("--spares", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--kills", type=int, default=0, help="runs in which ranks die")
    parser.add_argument("--stops", type=int, default=0, help="runs in which a rank is stopped for a while")
    parser.add_argument("--seed", type=int, default=1, help="of ranks and moments")
    parser.add_argument("--papaya", action="store_true", help="preload papaya, too (papaya run)")
    parser.add_argument("--timeout", type=float, default=0.25, help="the program's")
    parser.add_argument("--output", type=pathlib.Path, default=pathlib.Path("."))
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build", help="folder that papaya is built in")
    parser.add_argument("--program", help="kmeans, if it is not in --build")
    parser.add_argument("--launcher", help="mpirun, if it is not mpirun.MPI")
    options, options.others = parser.parse_known_args()
    if options.ranks < 1 or options.spares < 0 or options.rounds < 1:
        parser.error("--ranks and --rounds are at least 1, --spares at least 0")
    if options.spares < 1 and (options.kills or options.stops):
        parser.error("who kills or stops ranks needs --spares")
    options.program = options.program or str(options.build / f"examples/kmeans/kmeans-{options.mpi}")
    options.launcher = options.launcher or f"mpirun.{options.mpi}"
    for needed in (options.program, options.launcher):
        if not shutil.which(needed):
            sys.exit(f"run.py: {needed} is not there; build papaya first (ninja -C build), or name it.")
    return options


def environment():
    known = dict(os.environ)
    if os.geteuid() == 0:  # in a container, say, which Open MPI asks about
        known |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    return known


def status_of(process):
    """Its parent and its environment; nothing once it has ended."""
    try:
        fields = pathlib.Path(f"/proc/{process}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        return int(fields[1]), pathlib.Path(f"/proc/{process}/environ").read_bytes().split(b"\0")
    except OSError:
        return None


def rank_in(variables, mpi):
    """The rank of a process of the program's; nothing for the guards that MPICH's ranks have."""
    name = b"OMPI_COMM_WORLD_RANK=" if mpi == "openmpi" else b"PMI_RANK="
    if mpi == "mpich" and b"KMEANS_IS_GUARDED=1" not in variables:
        return None
    return next((int(one[len(name):]) for one in variables if one.startswith(name)), None)


def ranks_of(launcher, program, mpi):
    """The processes of a job by rank."""
    known = {int(one): status_of(one) for one in os.listdir("/proc") if one.isdigit()}
    ranks = {}
    for process, status in known.items():
        above = process
        while above in known and known[above] and above != launcher:
            above = known[above][0]
        if above != launcher or status is None:
            continue
        try:
            is_program = os.path.samefile(f"/proc/{process}/exe", program)
        except OSError:
            continue
        rank = rank_in(status[1], mpi) if is_program else None
        if rank is not None:
            ranks[rank] = process
    return ranks


class Job:
    """One run of the program."""

    def __init__(self, options, arguments, spares=None, results=None):
        self.options = options
        is_plain = "--plain" in arguments
        spares = 0 if is_plain else options.spares if spares is None else spares
        own = [] if is_plain else ["--spares", spares, "--timeout", options.timeout]
        if results:
            own += ["--json", results]
        preload = [options.build / "papaya", "run"] if options.papaya else []
        words = [options.launcher, *LAUNCH[options.mpi], "-n", options.ranks + spares, *preload, options.program,
                 *arguments, *options.others, *own]
        self.process = subprocess.Popen([str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        text=True, env=environment(), start_new_session=True)
        self.ranks = {}
        self.errors = []
        self.reader = threading.Thread(target=lambda: self.errors.extend(self.process.stderr))
        self.reader.start()

    def wait_for_start(self):
        """Until MPI is no longer needed."""
        said = self.process.stdout.readline()
        self.ranks = ranks_of(self.process.pid, self.options.program, self.options.mpi)
        return said

    def hit(self, number, rank):
        """Sends a signal to a rank; False if it has ended."""
        try:
            os.kill(self.ranks[rank], number)
        except (KeyError, ProcessLookupError):
            return False
        return True

    def finish(self, seconds=60):
        timer = threading.Timer(seconds, lambda: os.killpg(self.process.pid, signal.SIGKILL))
        timer.start()
        said = self.process.stdout.read()
        self.process.wait()
        is_late = not timer.is_alive()
        timer.cancel()
        self.reader.join()
        self.process.stdout.close()
        self.process.stderr.close()
        said += "".join(self.errors)
        return said + (f"run.py: it was ended after {seconds} s.\n" if is_late else "")


def read(file):
    """The results, if the run has any."""
    text = file.read_text(encoding="utf-8") if file.exists() else ""
    return json.loads(text) if text else None


def run(options, arguments, harm=None):
    """The results of a run, and what it said; `harm` is called with the job once it has started."""
    with tempfile.TemporaryDirectory() as folder:
        results = pathlib.Path(folder) / "results.json"
        job = Job(options, arguments, results=results)
        said = job.wait_for_start()
        if harm:
            harm(job)
        said += job.finish()
        return read(results), said


def need(result, what):
    if result[0] is None:
        sys.exit(f"run.py: the run {what} has no result:\n{result[1]}")
    return result[0]


def killing(options, drawn, seconds):
    """Kills a rank at a moment of so many seconds."""
    rank, moment = drawn.randrange(options.ranks), drawn.uniform(0.1, 0.9) * seconds

    def harm(job):
        time.sleep(moment)
        job.hit(signal.SIGKILL, rank)
    return harm


def stopping(options, drawn, seconds):
    rank, moment = drawn.randrange(options.ranks + options.spares), drawn.uniform(0, seconds)

    def harm(job):
        time.sleep(moment)
        if job.hit(signal.SIGSTOP, rank):
            time.sleep(options.timeout * 6)
            job.hit(signal.SIGCONT, rank)
    return harm


# --- Many failures -------------------------------------------------------------------------------------------------

def show(done, every, text):
    """A bar in place on a terminal."""
    if sys.stderr.isatty():
        print(f"\r[{'#' * (30 * done // every):.<30}] {done}/{every} {text:<12}", end="\n" if done == every else "",
              file=sys.stderr, flush=True)


def counted(number, thing):
    return f"{number} {thing}{'' if number == 1 else 's'}"


def fail_often(options):
    drawn = random.Random(options.seed)
    first = need(run(options, SMALL), "without a failure")
    counts = {"runs": 0, "ranks that died": 0, "runs without a death": 0, "ranks replaced alive": 0, "lost": 0,
              "other centroids": 0}
    for number in range(options.kills + options.stops):
        show(number, options.kills + options.stops, "")
        arguments, harm = SMALL, None
        if number >= options.kills:
            harm = stopping(options, drawn, first["seconds"])
        elif number % 2 == 0:
            arguments = [*SMALL, "--kill", drawn.randint(1, options.spares), "--kill-seed", drawn.randrange(1 << 30)]
        else:
            harm = killing(options, drawn, first["seconds"])
        results, said = run(options, arguments, harm)
        counts["runs"] += 1
        counts["ranks replaced alive"] += said.count("has been replaced")
        if results is None:
            counts["lost"] += 1
            print(f"lost, with {' '.join(map(str, arguments))}:\n{said}")
            continue
        counts["ranks that died"] += results["deaths"]
        counts["runs without a death"] += results["deaths"] == 0
        if results["checksum"] != first["checksum"]:
            counts["other centroids"] += 1
            print(f"other centroids, with {' '.join(map(str, arguments))}:\n{said}")
    show(counts["runs"], counts["runs"], "")
    print(f"{first['mpi']}, {counted(options.ranks, 'rank')} and {counted(options.spares, 'spare')} over "
          f"{first['over']}: "
          + ", ".join(f"{what} {count}" for what, count in counts.items()))
    return 1 if counts["lost"] or counts["other centroids"] else 0


# --- One failure, measured -----------------------------------------------------------------------------------------

MODES = {"plain": "MPI_Allreduce, no fault tolerance", "resilient": "spares and checkpoints",
         "failure": "the same, a rank is killed"}


def measure(options):
    drawn = random.Random(options.seed)
    rows = {mode: [] for mode in MODES}
    for number in range(options.rounds):
        for place, mode in enumerate(MODES):
            show(3 * number + place, 3 * options.rounds, mode)
            harm = killing(options, drawn, rows["resilient"][-1]["seconds"]) if mode == "failure" else None
            rows[mode].append(need(run(options, [*LARGE, "--plain"] if mode == "plain" else LARGE, harm), mode))
    show(3 * options.rounds, 3 * options.rounds, "")
    return rows


def print_table(rows):
    first = rows["resilient"][0]
    print(f"{first['points']} points, {first['dimensions']} dimensions, {first['clusters']} clusters, "
          f"{first['iterations']} iterations on {counted(first['parts'], 'rank')} and "
          f"{counted(first['ranks'] - first['parts'], 'spare')}, "
          f"{first['mpi']}, over {first['over']}; medians of {len(rows['plain'])}")
    print(f"{'':<36}{'seconds':>9}{'ms/iteration':>14}{'checkpoints':>13}{'recovery':>10}{'died':>6}")
    for mode, title in MODES.items():
        def median(value, of=mode):
            return statistics.median(value(row) for row in rows[of])
        seconds = median(lambda row: row["seconds"])
        line = f"{title:<36}{seconds:>9.2f}{1e3 * median(lambda row: row['seconds'] / row['iterations']):>14.2f}"
        if mode != "plain":
            line += f"{median(lambda row: 100 * row['checkpoints_s'] / row['seconds']):>11.4f} %"
            line += f"{median(lambda row: 100 * row['recovery_s'] / row['seconds']):>8.2f} %"
            line += f"{median(lambda row: row['deaths']):>6.0f}"
        print(line)
    print(PAPER)


def draw(rows, file):
    try:
        import matplotlib
    except ImportError:
        print("No chart: install matplotlib (Debian: python3-matplotlib).")
        return
    matplotlib.use("svg")
    from matplotlib import pyplot
    figure, axes = pyplot.subplots(figsize=(9, 4))
    for mode, title in MODES.items():
        steps = rows[mode][-1]["steps"]
        ends = [0, *(end for _, end in steps)]
        axes.step(ends[1:], [1e3 * (end - begin) for begin, end in zip(ends, ends[1:])], where="pre", linewidth=0.8,
                  label=title)
    failed = rows["failure"][-1]
    share = {what: 100 * failed[f"{what}_s"] / failed["seconds"] for what in ("checkpoints", "recovery")}
    axes.set(xlabel="seconds", ylabel="ms from one iteration's end to the next", yscale="log",
             title=f"recovery {share['recovery']:.2f} %, checkpoints {share['checkpoints']:.4f} % of the run; "
                   f"{failed['mpi']}")
    axes.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(file, dpi=120)
    print(f"chart: {file}")


def main():
    options = parse()
    if options.kills or options.stops:
        return fail_often(options)
    options.output.mkdir(parents=True, exist_ok=True)
    rows = measure(options)
    (options.output / "kmeans.json").write_text(json.dumps(rows) + "\n", encoding="utf-8")
    print_table(rows)
    draw(rows, options.output / "kmeans.svg")
    found = {row["checksum"] for mode in ("resilient", "failure") for row in rows[mode]}
    if len(found) > 1:
        sys.exit(f"run.py: the centroids differ: {', '.join(sorted(found))}.")
    is_same = {row["checksum"] for row in rows["plain"]} == found
    errors = [abs(row["square_distances"] / rows["resilient"][0]["square_distances"] - 1) for row in rows["plain"]]
    print(f"with and without a failure the same centroids: {found.pop()}; by MPI_Allreduce "
          + ("the same, too" if is_same else f"other sums' rounding, squared distances differ by {max(errors):.1e}"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
