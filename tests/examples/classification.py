"""examples/classification with real ranks, started by a Python that has PyTorch. No time is asserted.

  classification.py --build DIR --mpi openmpi|mpich [CASE...]          in the environment of the tests with MPI
"""

import argparse
import contextlib
import importlib.util
import io
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import unittest.mock
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / "examples" / "classification"
NEEDED = ("torch", "numpy", "mpi4py", "sklearn", "matplotlib")
SMALL = ["--epochs", "3", "--evaluate", "4", "--hidden", "32"]
LATE = ["--straggler", "rotating", "--delay-ms", "1"]
build = None
mpi = None


class Classification(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="papaya-test-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def start(self, *command):
        environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": str(ROOT / "api"),
                       "LD_LIBRARY_PATH": str(build)}
        result = subprocess.run([str(word) for word in command], env=environment, cwd=self.folder,
                                stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False)
        print(" ".join(map(str, command)), "->", result.returncode)
        return result

    def launch(self, ranks, *words, library=None):
        crowded = ["--oversubscribe", "--bind-to", "none"] if mpi == "openmpi" else []
        return self.start(f"mpirun.{mpi}", *crowded, "-n", ranks, "env",
                          f"LD_LIBRARY_PATH={build if library is None else library}", sys.executable,
                          FOLDER / "classify.py", *words)

    def read(self, file, least=0.8):
        """The JSON lines of a run that has learned; chance is 0.1."""
        settings, *rows, summary = map(json.loads, file.read_text(encoding="utf-8").splitlines())
        self.assertTrue(summary["summary"]["same_model"])
        self.assertGreater(summary["summary"]["accuracy"], least)
        self.assertGreater(rows[-1]["accuracy"], least)
        self.assertLess(rows[-1]["loss"], 0.8 * rows[0]["loss"])
        for before, after in zip(rows, rows[1:]):
            self.assertLess(before["step"], after["step"])
            self.assertLess(before["seconds"], after["seconds"])
        for row in rows:
            self.assertLessEqual(row["mean_seconds"], row["seconds"])
            self.assertLessEqual(row["age"], row["oldest"])
        return settings["settings"], rows, summary["summary"]

    def measured(self, ranks, *words):
        result = self.launch(ranks, *words, "--json", "out.jsonl")
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertIn("the same model on all ranks", result.stdout)
        return self.read(self.folder / "out.jsonl")

    def test_stale_and_partial(self):
        words = [*SMALL, *LATE]
        settings, _, summary = self.measured(2, *words, "--data", "generated", "--sum", "solo", "--lag", "3",
                                             "--synchronize", "50")
        self.assertTrue(settings["algorithm"].startswith("solo_allreduce:lag=3"), settings["algorithm"])
        self.assertLess(summary["ranks"], 2)
        _, _, summary = self.measured(2, *words, "--epochs", "8", "--sum", "stale", "--slack", "2", "--synchronize",
                                      "7")
        self.assertIn(summary["oldest"], (1, 2))

    def experiment(self, *words):
        return self.start(sys.executable, FOLDER / "run.py", "--build", build, "--mpi", mpi, "--ranks", 2, *SMALL,
                          *LATE, *words)

    def test_experiment(self):
        result = self.experiment("--data", "generated", "--seeds", "5", "--slacks", "0", "--output", "results")
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        results = self.folder / "results"
        self.assertIn((results / "table.txt").read_text(), result.stdout)
        known = json.loads((results / "results.json").read_text())
        self.assertEqual(list(known["summary"]), ["native", "papaya", "slack 0", "solo", "majority"])
        runs = {label: self.read(results / f"{label.replace(' ', '-')}.5.jsonl") for label in known["summary"]}
        # Papaya's sums, and those without slack, differ from MPI's by rounding at most.
        native = runs["native"][1]
        for label in ("papaya", "slack 0"):
            for a, b in zip(native, runs[label][1], strict=True):
                self.assertAlmostEqual(a["loss"], b["loss"], delta=0.01)
        self.assertEqual(runs["slack 0"][2]["oldest"], 0)
        self.assertGreater(runs["solo"][2]["oldest"], 0)
        for label in ("solo", "majority"):
            self.assertIn(f"{label}_allreduce", runs[label][0]["algorithm"])
            self.assertLess(runs[label][2]["ranks"], 2)
        row = known["summary"]["native"]
        self.assertEqual((row["sooner"], row["whole_run"]), ([1], 1))
        self.assertEqual(row["seconds"][0], next(row["seconds"] for row in native
                                                 if row["accuracy"] >= known["targets"][0]))
        image = xml.etree.ElementTree.parse(results / "figure.svg").getroot()
        said = " ".join(image.itertext())
        for words in ("Accuracy over time", "Accuracy over steps", "steps per second", "slack 0", "majority"):
            self.assertIn(words, said)

    def test_experiment_that_cannot_be(self):
        for words, said in ((["--slacks", "0,x"], "'0,x' is no list"), (["--build", "missing"], "build papaya first"),
                            (["--launcher", "no_such"], "no_such is missing")):
            result = self.experiment("--no-figure", *words)
            self.assertNotEqual(result.returncode, 0)
            self.assertIn(said, result.stderr)
            self.assertNotIn("Traceback", result.stderr)

    def test_missing_library(self):
        """By a module of that name that cannot be imported."""
        for name, said in (("torch", "python3-torch"), ("papaya", "PYTHONPATH")):
            file = self.folder / f"{name}.py"
            file.write_text(f"raise ModuleNotFoundError('no {name}', name='{name}')\n")
            result = self.start("env", f"PYTHONPATH={self.folder}", sys.executable, FOLDER / "classify.py")
            self.assertEqual(result.returncode, 1)
            self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)
            self.assertIn(said, result.stderr)
            file.unlink()

    def test_mistake(self):
        """Both ranks find it, one says it."""
        result = self.launch(2, "--sum", "solo", library="")
        self.assertEqual(result.returncode, 1)
        said = [line for line in result.stderr.splitlines() if line.startswith("classify.py: ")]
        self.assertEqual(len(said), 1, result.stderr)
        self.assertIn("set LD_LIBRARY_PATH", said[0])
        self.assertNotIn("Traceback", result.stderr)

    def module(self, name):
        for folder in (FOLDER, ROOT / "api"):
            if str(folder) not in sys.path:
                sys.path.insert(0, str(folder))
        return importlib.import_module(name)

    def test_options(self):
        classify = self.module("classify")
        for words, said in ((["--slack", "1"], "--slack is for"), (["--sum", "stale", "--lag", "1"], "--lag is for"),
                            (["--delay-ms", "1"], "needs a straggler"), (["--momentum", "1"], "below 1"),
                            (["--epochs", "0"], "'0' is no whole number from 1 on"),
                            (["--learning-rate", "nan"], "'nan' is no number"), (["--slak", "1"], "--slak")):
            stderr = io.StringIO()
            with unittest.mock.patch.object(sys, "argv", ["classify.py", *words]), contextlib.redirect_stderr(stderr), \
                    self.assertRaises(SystemExit) as end:
                classify.options()
            self.assertEqual(end.exception.code, 2)
            self.assertIn(said, stderr.getvalue())

    def test_mnist(self):
        import gzip

        import numpy
        data, mistake = self.module("data"), self.module("mistake")
        with self.assertRaisesRegex(mistake.Mistake, "--data missing: there is no such folder"):
            data.load("missing", 1)
        images = numpy.arange(3 * 4 * 5, dtype=numpy.uint8).reshape(3, 4, 5)
        labels = numpy.array([2, 0, 1], numpy.uint8)

        def idx(array):
            return bytes([0, 0, 8, array.ndim]) + b"".join(n.to_bytes(4, "big") for n in array.shape) + array.tobytes()
        for part in ("train", "t10k"):
            (self.folder / f"{part}-images-idx3-ubyte.gz").write_bytes(gzip.compress(idx(images)))
            (self.folder / f"{part}-labels-idx1-ubyte").write_bytes(idx(labels))
        found = data.load(str(self.folder), 1)
        self.assertEqual(found.classes, 3)
        self.assertTrue((found.points * 255 == images.reshape(3, 20)).all())
        self.assertTrue((found.test_labels == labels).all())
        file = self.folder / "train-labels-idx1-ubyte"
        for content, said in ((idx(labels)[:-1], "not all of it"), (b"", "MNIST's format"), (idx(labels[:2]), "belong"),
                              (idx(images), "belong")):
            file.write_bytes(content)
            with self.assertRaisesRegex(mistake.Mistake, said):
                data.load(str(self.folder), 1)
        file.unlink()
        with self.assertRaisesRegex(mistake.Mistake, "train-labels-idx1-ubyte"):
            data.load(str(self.folder), 1)
        (self.folder / "train-images-idx3-ubyte.gz").write_bytes(b"no gzip")
        with self.assertRaisesRegex(mistake.Mistake, "cannot be read"):
            data.load(str(self.folder), 1)


def main():
    global build, mpi
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--mpi", choices=("openmpi", "mpich"), required=True)
    parser.add_argument("cases", nargs="*", metavar="CASE", help="all if none is given")
    arguments = parser.parse_args()
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing and os.environ.get("CI") != "true":
        print(f"{sys.executable} has no {', '.join(missing)}: skipped")
        return 77
    build, mpi = arguments.build.resolve(), arguments.mpi
    names = [f"test_{case}" for case in arguments.cases] or unittest.defaultTestLoader.getTestCaseNames(Classification)
    suite = unittest.TestSuite(Classification(name) for name in names)
    result = unittest.TextTestRunner(stream=sys.stdout, verbosity=2).run(suite)
    return 0 if result.wasSuccessful() and result.testsRun > 0 else 1


if __name__ == "__main__":
    sys.exit(main())
