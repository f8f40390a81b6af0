"""Launches of papaya bench, and what holds for each of its JSON files."""

import json
import os
import pathlib
import subprocess
import tempfile
import unittest

TOP = {"ranks", "nodes", "cores", "mpi", "pattern", "skew_us", "rows"}
ROW = {"collective", "algorithm", "bytes", "iterations", "excess_us", "inside_us", "ratio_to_native", "limit_us",
       "interval_us", "ratio_interval", "word", "reason", "stop", "samples_us"}
FIGURES = {"mean", "p50", "p99", "max", "min"}
WORDS = {"SAME", "FASTER", "SLOWER", "UNCLEAR"}


def environment():
    clean = {k: v for k, v in os.environ.items()
             if not k.startswith(("PAPAYA_", "OMPI_", "PMI", "PMIX")) and k != "LD_PRELOAD"}
    clean.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    # What it chooses on one machine anyway; looking at the others takes half of the time in which a job starts.
    clean["OMPI_MCA_pml"] = "ob1"
    return clean


class Launched(unittest.TestCase):
    build = None
    mpi = None

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="papaya-test-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def start(self, command, env=None):
        result = subprocess.run([str(word) for word in command], env={**environment(), **(env or {})}, cwd=self.folder,
                                stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=100)
        print(" ".join(map(str, command)), "->", result.returncode)
        return result

    def launch(self, ranks, *words, env=None, preload=None, subcommand="bench"):
        if self.mpi == "openmpi":
            command = ["mpirun.openmpi", "--oversubscribe", "--bind-to", "none", "-n", ranks]
            command += ["-x", f"LD_PRELOAD={preload}"] if preload else []
        else:
            command = [self.build / "tests" / "turns", "100", "mpirun.mpich", "-n", ranks]
            command += ["-genv", "LD_PRELOAD", preload] if preload else []
        program = [self.build / f"papaya-bench-{self.mpi}"] if preload else [self.build / "papaya", subcommand]
        return self.start([*command, *program, *words], env)

    def measured(self, *words, ranks=3, env=None):
        """Runs the benchmark and returns its output and its JSON, whose form is checked."""
        file = self.folder / "out.json"
        result = self.launch(ranks, *words, "--json", file, env=env)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        data = json.loads(file.read_text())
        self.assertLessEqual(TOP, set(data))
        self.assertEqual((data["ranks"], data["nodes"]), (ranks, 1))
        self.assertGreater(data["cores"], 0)
        self.assertRegex(data["mpi"], "Open MPI" if self.mpi == "openmpi" else "MPICH")
        self.assertTrue(data["rows"])
        for row in data["rows"]:
            self.assertLessEqual(ROW, set(row))
            for figures in (row["excess_us"], row["inside_us"]):
                self.assertEqual(set(figures), FIGURES)
                self.assertTrue(figures["min"] <= figures["p50"] <= figures["p99"] <= figures["max"])
            self.assertGreater(row["inside_us"]["p50"], 0)
            self.assertGreater(row["iterations"], 0)
            self.assertEqual((row["wrong_results"], row["early_exits"]), (0, 0))
            if not row["collective"].endswith("barrier"):
                self.assertGreater(row["checked_results"], 0)
            if row["algorithm"] == "native" and row["ratio_to_native"] is not None:
                self.assertEqual(row["ratio_to_native"], 1)
            # Two turns say how long it took, not how sure that is.
            turns = len(row["samples_us"])
            self.assertEqual(sum(map(len, row["samples_us"])), row["values"])
            if turns < 6:
                self.assertEqual(row["interval_us"], None)
            else:
                self.assertTrue(row["interval_us"][0] <= row["excess_us"]["p50"] <= row["interval_us"][1])
            self.assertIn(row["stop"], ("narrow", "time", "rounds"))
            self.assertEqual(row["word"] is None, row["algorithm"] == "native")
            if row["word"]:
                self.assertIn(row["word"], WORDS)
                self.assertTrue(row["reason"])
                if row["ratio_interval"] is None:
                    self.assertEqual((row["word"], row["reason"]), ("UNCLEAR", "too few values"))
        for line in result.stdout.splitlines():
            self.assertLessEqual(len(line), 124, line)
        return result, data
