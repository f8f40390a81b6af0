#!/usr/bin/env python3
"""examples/kmeans finds the centroids that it should, also when ranks die, and says what is wrong.

  kmeans.py --mpi openmpi|mpich --launcher MPIRUN --program KMEANS --driver RUN.PY [CASE...]
"""

import argparse
import csv
import importlib.util
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import unittest.mock

options = None
driver = None
TIMEOUT = 0.3  # of silence, in seconds


def read(file):
    with open(file, encoding="utf-8") as lines:
        return [[float(field) for field in row] for row in csv.reader(lines)]


def points(count, seed=1):
    drawn = random.Random(seed)
    return [[drawn.gauss(3 * (i % 5), 1), drawn.gauss(2 * (i % 3), 1), drawn.random()] for i in range(count)]


def square_distance(a, b):
    return sum((x - y) ** 2 for x, y in zip(a, b))


class Kmeans(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write(self, name, rows, separator=",", head=None):
        lines = [*([head] if head else []), *(separator.join(map(repr, row)) for row in rows)]
        (self.folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
        return self.folder / name

    def run_on(self, ranks, *arguments, code=0, environment=()):
        """What it prints, on both streams; every rank ends with that code."""
        launch = [options.launcher, *driver.LAUNCH[options.mpi], "-n", ranks] if ranks > 1 else []
        words = [*launch, "env", *environment, "sh", "-c", '"$@"; echo "code $?"', "sh", options.program, *arguments]
        ended = subprocess.run([str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               timeout=60, check=False, env=driver.environment())
        said = ended.stdout + ended.stderr
        self.assertEqual(ended.stdout.count(f"code {code}\n"), ranks, said)
        return said

    def fails(self, ranks, sentence, *arguments, code=1):
        """One sentence, and all ranks end."""
        lines = self.run_on(ranks, *arguments, code=code).splitlines()
        said = [line for line in lines if line.startswith("kmeans: ")]
        self.assertEqual(len(said), 1, lines)
        self.assertIn(sentence, said[0])

    def cluster(self, ranks, *arguments, environment=()):
        results = self.folder / "results.json"
        self.run_on(ranks, *arguments, "--json", results, environment=environment)
        return json.loads(results.read_text(encoding="utf-8"))


class Clustering(Kmeans):
    def test_against_python_and_scikit_learn(self):
        rows = points(700)
        file = self.write("points.csv", rows, head="length,width,\"height\"")
        first, last = self.folder / "first.csv", self.folder / "last.csv"
        results = self.cluster(3, "-i", file, "-k", 6, "--iterations", 300, "--initial", first, "-o", last)
        centroids = read(first)
        for _ in range(results["iterations"]):
            groups = [[] for _ in centroids]
            for row in rows:
                groups[min(range(6), key=lambda i: square_distance(row, centroids[i]))].append(row)
            centroids = [[sum(column) / len(group) for column in zip(*group)] for group in groups]
        found = read(last)
        self.assertLess(max(square_distance(a, b) for a, b in zip(found, centroids)), 1e-20)
        self.compare_with_scikit_learn(rows, read(first), found)

    def compare_with_scikit_learn(self, rows, first, found):
        """By the interpreter that has it, if any."""
        script = ("import sys, json, numpy, sklearn.cluster\nrows, first = json.load(sys.stdin)\n"
                  "model = sklearn.cluster.KMeans(len(first), init=numpy.array(first), n_init=1, max_iter=300, tol=0, "
                  "algorithm='lloyd').fit(numpy.array(rows))\nprint(json.dumps(model.cluster_centers_.tolist()))")
        has_it = subprocess.run(["/usr/bin/python3", "-c", "import sklearn"], capture_output=True, check=False)
        if has_it.returncode != 0:
            print("scikit-learn is not installed (Debian: python3-sklearn): not compared with it", file=sys.stderr)
            return
        said = subprocess.run(["/usr/bin/python3", "-c", script], input=json.dumps([rows, first]), text=True,
                              stdout=subprocess.PIPE, check=True).stdout
        self.assertLess(max(square_distance(a, b) for a, b in zip(found, json.loads(said))), 1e-18)

    def test_on_odd_numbers_of_ranks(self):
        file = self.write("points.csv", points(101), ";")
        initial = set()
        first = self.folder / "first.csv"
        plain = self.cluster(3, "-i", file, "-k", 4, "--plain")
        for ranks, spares in ((1, 0), (5, 0), (7, 2)):
            results = self.cluster(ranks, "-i", file, "-k", 4, "--spares", spares, "--initial", first)
            initial.add(first.read_text(encoding="utf-8"))
            self.assertEqual((results["points"], results["dimensions"], results["parts"]), (101, 3, ranks - spares))
            self.assertAlmostEqual(results["square_distances"], plain["square_distances"], places=8)
            self.assertEqual(results["iterations"], plain["iterations"])
        self.assertEqual(len(initial), 1)

    def test_formats(self):
        rows = points(50)
        wanted = self.cluster(1, "-i", self.write("comma", rows), "-k", 3)["checksum"]
        for name, separator, head in (("tab", "\t", None), ("blank", " ", None), ("semicolon", ";", "a;b;c")):
            file = self.write(name, rows, separator, head)
            self.assertEqual(self.cluster(1, "-i", file, "-k", 3)["checksum"], wanted)
        labelled = self.folder / "labelled"
        labelled.write_text("".join(f"{a!r},{b!r},{c!r},Iris-setosa\r\n\r\n" for a, b, c in rows), encoding="utf-8")
        self.assertEqual(self.cluster(1, "-i", labelled, "--columns", "1-3", "-k", 3)["checksum"], wanted)

    def test_between_nodes(self):
        wanted = self.cluster(3, "-n", 500, "-k", 4)
        results = self.cluster(4, "-n", 500, "-k", 4, "--spares", 1,
                               environment=("PAPAYA_NODE_SIZE=2", "PAPAYA_TRANSPORT=mpi"))
        self.assertEqual((results["over"], wanted["over"]), ("MPI's messages", "shared memory"))
        self.assertEqual(results["checksum"], wanted["checksum"])


class Failures(Kmeans):
    # Some tenths of a second of computing: a signal must come before the end on a busy machine, too.
    SMALL = ("-n", 60000, "-k", 30, "--iterations", 100)

    def drive(self, *arguments):
        words = [sys.executable, options.driver, "--mpi", options.mpi, "--program", options.program, "--launcher",
                 options.launcher, "--timeout", TIMEOUT, *arguments]
        ended = subprocess.run([str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               text=True, timeout=90, check=False)
        self.assertEqual(ended.returncode, 0, ended.stdout)
        return ended.stdout

    def start(self, ranks, spares, *arguments, timeout=TIMEOUT):
        self.results = self.folder / "results.json"
        self.results.unlink(missing_ok=True)
        given = argparse.Namespace(mpi=options.mpi, launcher=options.launcher, program=options.program, ranks=ranks,
                                   spares=spares, timeout=timeout, papaya=False, others=[])
        job = driver.Job(given, arguments, results=self.results)
        self.addCleanup(lambda: job.process.poll() is None and job.finish(1))
        job.wait_for_start()
        return job

    def test_killed_ranks_are_replaced(self):
        said = self.drive("--ranks", 3, "--spares", 2, "--kills", 3, "--seed", 4)
        self.assertGreaterEqual(int(said.split("ranks that died ")[1].split(",")[0]), 2, said)
        self.assertIn("lost 0, other centroids 0", said)

    def test_every_rank_can_die(self):
        # The one that leads, an idle spare, and who takes over; the last spare does all alone in the end.
        work = ("-n", 150000, "-k", 30, "--iterations", 50)  # more, so that all of them die in time
        wanted = self.cluster(1, *work)["checksum"]
        job = self.start(1, 3, *work)
        for rank in (0, 2, 1):
            self.assertTrue(job.hit(signal.SIGKILL, rank))
            time.sleep(TIMEOUT * 0.3)
        said = job.finish(20)
        results = driver.read(self.results)
        self.assertIsNotNone(results, said)
        self.assertEqual((results["deaths"], results["checksum"]), (3, wanted), said)

    def test_a_death_is_found_out(self):
        # By papaya, on one node and between nodes, where messages to the dead rank are under way: the program itself
        # would only notice half a minute's silence.
        wanted = self.cluster(3, *self.SMALL)["checksum"]
        # MPICH by sockets, as between real nodes: who dies while it puts a message into UCX's queue in shared memory,
        # which all senders have in common, makes the receiver get none of anybody's any more.
        sockets = {"UCX_TLS": "tcp,self"}
        for node_size in ("0", "1", "2"):
            with unittest.mock.patch.dict(os.environ, sockets, PAPAYA_NODE_SIZE=node_size, PAPAYA_TRANSPORT="mpi"):
                job = self.start(3, 1, *self.SMALL, timeout=30)
            job.hit(signal.SIGKILL, 1)
            said = job.finish(15)
            results = driver.read(self.results)
            self.assertIsNotNone(results, said)
            self.assertEqual((results["deaths"], results["checksum"]), (1, wanted), said)
            self.assertEqual(results["over"], "shared memory" if node_size == "0" else "MPI's messages")

    def test_a_rank_that_was_only_slow_finds_itself_replaced(self):
        wanted = self.cluster(2, *self.SMALL)["checksum"]
        job = self.start(2, 1, *self.SMALL)
        job.hit(signal.SIGSTOP, 1)
        deadline = time.monotonic() + 20
        while driver.read(self.results) is None and time.monotonic() < deadline:
            time.sleep(0.05)
        job.hit(signal.SIGCONT, 1)
        said = job.finish(20)
        results = driver.read(self.results)
        self.assertIn("kmeans: Rank 1 was silent for too long and has been replaced", said)
        self.assertEqual((results["deaths"], results["checksum"]), (1, wanted))

    def test_no_spare_is_left(self):
        job = self.start(3, 0, "-n", 200000, "-k", 100)
        job.hit(signal.SIGKILL, 0)
        said = job.finish(20)
        self.assertIn("kmeans: 1 of the 3 ranks are dead, and no spare is left; start with more --spares.", said)
        self.assertIsNone(driver.read(self.results))


class Faults(Kmeans):
    def test_what_is_wrong_is_said_once(self):
        rows = points(30)
        file = self.write("points", rows)
        for ranks, text, sentence in ((3, "1,2\n", "line 31: it has 2 fields; the first line has 3"),
                                      (1, "1,2,3,4\n", "line 31: it has 4 fields"),
                                      (1, "\n1,?,3\n", 'line 32: field 2, "?", is no number')):
            broken = self.folder / "broken"
            broken.write_text(file.read_text(encoding="utf-8") + text, encoding="utf-8")
            self.fails(ranks, sentence, "-i", broken, "-k", 3)
        nowhere, empty = self.folder / "nowhere", self.write("empty", [], head="a,b")
        self.fails(2, "No such file or directory", "-i", nowhere)
        self.fails(1, "is not a regular file", "-i", self.folder)
        self.fails(1, "0 points", "-i", empty)
        self.fails(1, "31 clusters of 30 points are not possible", "-i", file, "-k", 31)
        self.fails(1, "only 1 different values", "-i", self.write("same", [[1, 2]] * 9), "-k", 2)
        self.fails(1, "has 3 columns, no column 5", "-i", file, "--columns", "2-5")
        self.fails(1, f"Cannot write {nowhere}/out", "-i", file, "-k", 3, "-o", nowhere / "out")
        self.fails(2, "too few for 2 spares", "-i", file, "-k", 3, "--spares", 2)
        self.fails(1, "MB free", "-n", 10 ** 13)

    def test_usage(self):
        for arguments in (("--clusters", 0), ("--columns", "x"), ("--columns", "3-1"), ("--plain", "--spares", 1),
                          ("--tolerance", -1)):
            self.run_on(1, *arguments, code=2)


class Driver(Kmeans):
    def test_compares(self):
        words = [sys.executable, options.driver, "--mpi", options.mpi, "--program", options.program, "--launcher",
                 options.launcher, "--output", self.folder, "--timeout", TIMEOUT, "--points", 10000, "--clusters", 20,
                 "--iterations", 100]
        said = subprocess.run([str(word) for word in words], stdout=subprocess.PIPE, text=True, check=True).stdout
        self.assertIn("with and without a failure the same centroids", said)
        rows = json.loads((self.folder / "kmeans.json").read_text(encoding="utf-8"))
        self.assertEqual({mode: len(of) for mode, of in rows.items()}, {"plain": 1, "resilient": 1, "failure": 1})
        self.assertEqual((self.folder / "kmeans.svg").exists(), importlib.util.find_spec("matplotlib") is not None)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mpi", required=True)
    parser.add_argument("--launcher", required=True)
    parser.add_argument("--program", required=True)
    parser.add_argument("--driver", required=True)
    options, rest = parser.parse_known_args()
    spec = importlib.util.spec_from_file_location("driver", options.driver)
    driver = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(driver)
    unittest.main(argv=[sys.argv[0], *rest])
