#!/usr/bin/env python3
"""examples/matrix_factorisation with real ranks. No time is asserted.

  matrix_factorisation.py --build DIR --mpi openmpi|mpich          in the environment of the tests with MPI
"""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

HERE = pathlib.Path(__file__).resolve().parent
build = None
mpi = None

SMALL = ["--users", "60", "--items", "40", "--count", "1200", "--rank", "2", "--factors", "3", "--batch", "1200",
         "--iterations", "25", "--learning-rate", "0.02"]
# What each format has of one rating.
LINES = {"u.data": "{}\t{}\t{}\t881250949\n", "ratings.dat": "{}::{}::{}::978300760\n",
         "ratings.csv": "{},{},{}.0,1112486027\n"}
HEADERS = {"ratings.csv": "userId,movieId,rating,timestamp\n"}


class MatrixFactorisation(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="papaya-test-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def start(self, command):
        environment = {**os.environ, "PAPAYA_PROFILE": "off"}
        result = subprocess.run([str(word) for word in command], env=environment, cwd=self.folder,
                                stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
        print(" ".join(map(str, command)), "->", result.returncode)
        return result

    def program(self):
        return build / "examples" / "matrix_factorisation" / f"matrix_factorisation-{mpi}"

    def launch(self, ranks, *words, under=()):
        if mpi == "openmpi":
            command = ["mpirun.openmpi", "--oversubscribe", "--bind-to", "none", "-n", ranks]
        else:
            command = [build / "tests" / "turns", "100", "mpirun.mpich", "-n", ranks]
        return self.start([*command, *under, self.program(), *words])

    def measured(self, ranks, *words, under=()):
        """Runs the program and returns its JSON, whose form is checked."""
        file = self.folder / "out.json"
        result = self.launch(ranks, *words, "--json", file, under=under)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertIn(f"{ranks} rank", result.stdout)
        data = json.loads(file.read_text())
        self.assertEqual(data["ranks"], ranks)
        iterations = data["iterations"]
        self.assertEqual(len({len(values) for values in iterations.values()}), 1)
        for of_one, of_all in (("mean_seconds", "seconds"), ("age", "oldest")):
            self.assertTrue(all(a <= b + 1e-9 for a, b in zip(iterations[of_one], iterations[of_all])))
        self.assertEqual(iterations["seconds"], sorted(iterations["seconds"]))
        return data

    def assert_close(self, first, second):
        for a, b in zip(first["iterations"]["error"], second["iterations"]["error"], strict=True):
            self.assertAlmostEqual(a, b, delta=1e-9)
        self.assertAlmostEqual(first["final_error"], second["final_error"], delta=1e-9)

    def assert_falls(self, data):
        error = data["iterations"]["error"]
        self.assertLess(error[-1], 0.9 * error[0])
        self.assertLess(data["final_error"], 0.9 * error[0])

    def assert_mistake(self, result, code, *said):
        """One sentence, of one rank."""
        lines = [line for line in result.stderr.splitlines() if line.startswith("matrix_factorisation: ")]
        self.assertEqual(len(lines), 1, result.stderr)
        for words in said:
            self.assertIn(words, lines[0])
        self.assertEqual(result.returncode, code)
        self.assertEqual(result.stdout, "")

    def test_slack_0_is_consistent_and_more_converges(self):
        for ranks in (1, 2, 3, 5):
            native = self.measured(ranks, *SMALL, "--allreduce", "native")
            self.assert_falls(native)
            self.assertNotIn("waited_seconds", native["iterations"])
            self.assert_close(native, self.measured(ranks, *SMALL))
            late = self.measured(ranks, *SMALL, "--slack", "4", "--straggler", "rotating", "--delay-ms", "1")
            self.assert_falls(late)
            self.assertLessEqual(max(late["iterations"]["oldest"]), 4)
            self.assertEqual(max(late["iterations"]["oldest"]) > 0, ranks > 1)
            # The last results lacked contributions that the model has in the end.
            if late["iterations"]["oldest"][-1] > 0:
                self.assertNotEqual(late["final_error"], late["iterations"]["error"][-1])

    def test_every_algorithm_and_the_target(self):
        listed = self.start([build / "papaya", "info", "--algorithms", "ssp_allreduce"]).stdout.split()
        self.assertGreaterEqual(len(listed), 3)
        target = 1.02 * self.measured(1, *SMALL)["iterations"]["error"][12]
        for name in [*listed, "ssp_sharded:thread=1,consistent=1,shard_bytes=64"]:
            data = self.measured(3, *SMALL, "--iterations", "500", "--algorithm", name, "--slack", "3", "--target",
                                 target, "--straggler", "random", "--delay-ms", "1")
            self.assertTrue(data["algorithm"].startswith(name.split(":")[0] + ":slack=3"), data["algorithm"])
            error = data["iterations"]["error"]
            self.assertLess(len(error), 500)
            self.assertEqual(data["target"]["iteration"] - 1, next(i for i, e in enumerate(error) if e <= target))

    def test_models(self):
        self.assert_close(self.measured(1, *SMALL), self.measured(1, *SMALL, "--exchange", "models"))
        words = [*SMALL, "--exchange", "models", "--learning-rate", "0.06"]
        native = self.measured(3, *words, "--allreduce", "native")
        self.assert_close(native, self.measured(3, *words))
        self.assert_falls(self.measured(3, *words, "--slack", "2", "--straggler", "fixed", "--delay-ms", "1"))

    def test_papayas_allreduce(self):
        papaya = self.measured(2, *SMALL, "--allreduce", "consistent", "--algorithm", "arrival_tree",
                               under=[build / "papaya", "run"])
        self.assertTrue(papaya["algorithm"].startswith("arrival_tree"), papaya["algorithm"])
        self.assert_close(papaya, self.measured(2, *SMALL, "--allreduce", "native"))
        self.assert_mistake(self.start([self.program(), "--allreduce", "consistent"]), 1, "papaya run")

    def write(self, name, ratings):
        file = self.folder / name
        lines = [LINES[name].format(*rating) for rating in ratings]
        file.write_text(HEADERS.get(name, "") + "".join(lines))
        return file

    def test_formats(self):
        # Numbers with gaps, as in MovieLens.
        ratings = [(100 + 7 * user, 5000 + 13 * item, 1 + (user * item + user) % 5) for user in range(20)
                   for item in range(15) if (user + item) % 3]
        found = []
        for name in LINES:
            data = self.measured(2, "--ratings", self.write(name, ratings), "--iterations", "3", "--factors", "2")
            sizes = data["data"]
            self.assertEqual((sizes["users"], sizes["items"], sizes["training"] + sizes["held_out"]),
                             (20, 15, len(ratings)))
            found.append(data["iterations"]["error"])
        self.assertEqual(found[0], found[1])
        self.assertEqual(found[0], found[2])

    def test_wrong_files(self):
        ratings = [(user, item, 3) for user in range(5) for item in range(5)]
        for name, wrong in (("u.data", "3\t4\tgood\t881250949\n"), ("ratings.dat", "3::4::5\n"),
                            ("ratings.csv", "3,4,5.0,1112486027,6\n")):
            file = self.write(name, ratings)
            file.write_text(file.read_text() + wrong)
            line = len(file.read_text().splitlines())
            self.assert_mistake(self.start([self.program(), "--ratings", file]), 1, str(file), f"line {line}")
        strange = self.folder / "strange.txt"
        strange.write_text("user item rating\n")
        self.assert_mistake(self.start([self.program(), "--ratings", strange]), 1, "line 1", "u.data")
        self.assert_mistake(self.start([self.program(), "--ratings", "missing.csv"]), 1, "missing.csv")
        self.assert_mistake(self.start([self.program(), "--ratings", self.folder]), 1, "not a folder")
        empty = self.write("ratings.csv", [])
        self.assert_mistake(self.start([self.program(), "--ratings", empty]), 1, "no ratings")
        few = self.write("u.data", [(1, item, 3) for item in range(30)])
        self.assert_mistake(self.launch(3, "--ratings", few), 1, "fewer ranks")

    def test_wrong_options(self):
        for words, said in ((["--slack", "256"], "--slack"), (["--slak", "1"], "--slak"),
                            (["--allreduce", "native", "--slack", "1"], "--slack is for"),
                            (["--allreduce", "native", "--algorithm", "ring"], "--algorithm is for"),
                            (["--delay-ms", "1"], "--straggler"), (["--users", "10", "--items", "10"], "--count"),
                            (["--ratings", "file", "--noise", "1"], "--ratings")):
            self.assert_mistake(self.start([self.program(), *words]), 2, said)
        self.assert_mistake(self.start([self.program(), *SMALL, "--algorithm", "ssp_star"]), 1, "ssp_star",
                            "ssp_allreduce")
        self.assert_mistake(self.start([self.program(), *SMALL, "--learning-rate", "9"]), 1, "lower --learning-rate")
        self.assert_mistake(self.start([self.program(), *SMALL, "--json", "no/such/folder"]), 1, "no/such/folder")

    def test_too_little_memory(self):
        limited = ["sh", "-c", 'ulimit -v 3000000 && exec "$0" "$@"', self.program()]
        self.assert_mistake(self.start([*limited, "--users", 50_000_000, "--items", 5_000_000, "--factors", 500]), 1,
                            "too little memory", "--factors")

    def experiment(self, *words, python=sys.executable):
        script = HERE.parents[1] / "examples" / "matrix_factorisation" / "run.py"
        return self.start([python, "-B", script, "--build", build, "--mpi", mpi, "--ranks", 2, *SMALL, *words])

    def test_experiment(self):
        python = next((python for python in (sys.executable, "/usr/bin/python3")
                       if self.start([python, "-c", "import matplotlib"]).returncode == 0), None)
        if python is None and os.environ.get("CI") != "true":
            self.skipTest("no Matplotlib: install python3-matplotlib")
        result = self.experiment("--slacks", "2", "--rounds", 1, "--delay-ms", 1, "--output", "results", python=python)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        results = self.folder / "results"
        self.assertIn((results / "table.txt").read_text(), result.stdout)
        self.assertEqual(len(re.findall(r"^slack [02] .* \d+% .* s +[01]\.\d", result.stdout, re.MULTILINE)), 2)
        known = json.loads((results / "results.json").read_text())
        self.assertEqual(list(known["summary"]), ["native", "consistent", "slack 0", "slack 2"])
        synchronous, *others = [known["summary"][label] for label in ("slack 0", "native", "consistent", "slack 2")]
        self.assertEqual(synchronous["sooner"], 0)
        self.assertEqual(synchronous["iterations"], 25)
        for row in others:
            self.assertAlmostEqual(row["sooner"], 1 - row["seconds"] / synchronous["seconds"])
            self.assertGreaterEqual(row["seconds"], row["collective_seconds"])
        self.assertEqual([others[0]["iterations"], others[1]["iterations"]], [25, 25])
        image = xml.etree.ElementTree.parse(results / "figure.svg").getroot()
        self.assertTrue(image.tag.endswith("svg"))
        said = " ".join(image.itertext())
        for words in ("Error over time", "Error over iterations", "iterations per second", "slack 2", "native"):
            self.assertIn(words, said)

        plot = [python, "-B", HERE.parents[1] / "examples" / "matrix_factorisation" / "plot.py"]
        self.assertEqual(self.start([*plot, results, "-o", "figure.png"]).returncode, 0)
        self.assertTrue((self.folder / "figure.png").read_bytes().startswith(b"\x89PNG"))
        self.assertIn("results.json: run.py writes it", self.start([*plot, self.folder]).stderr)

    def test_experiment_that_cannot_be(self):
        for words, said in ((["--slacks", "0,x"], "'0,x' is no list"), (["--slacks", "256"], "from 0 to 255"),
                            (["--build", "missing"], "build papaya first"),
                            (["--launcher", "no_such"], "no_such is missing"),
                            (["--slak", "1"], "--slak")):
            result = self.experiment("--no-figure", *words)
            self.assertNotEqual(result.returncode, 0)
            self.assertIn(said, result.stderr)
            self.assertNotIn("Traceback", result.stderr)


def main():
    global build, mpi
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--mpi", choices=("openmpi", "mpich"), required=True)
    parser.add_argument("--case", action="append", help="several may be given; all if none is")
    arguments = parser.parse_args()
    build, mpi = arguments.build.resolve(), arguments.mpi
    names = [f"test_{case}" for case in arguments.case or []] or unittest.defaultTestLoader.getTestCaseNames(
        MatrixFactorisation)
    suite = unittest.TestSuite(MatrixFactorisation(name) for name in names)
    result = unittest.TextTestRunner(stream=sys.stdout, verbosity=2).run(suite)
    return 0 if result.wasSuccessful() and result.testsRun > 0 else 1


if __name__ == "__main__":
    sys.exit(main())
