#!/usr/bin/env python3
"""examples/matrix_multiplication multiplies rightly on any number of ranks, and says what is wrong.

  matrix_multiplication.py --launcher MPIRUN --program PROGRAM --driver RUN.PY [CASE...]
"""

import argparse
import importlib.util
import json
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

HEADER = "%%MatrixMarket matrix array real general\n"
SIZE = ("-m", 133, "-n", 97, "-k", 141)
options = None


def text_of(matrix, header=HEADER):
    columns = range(len(matrix[0]))
    return header + f"% a comment\n{len(matrix)} {len(matrix[0])}\n" + "".join(
        f"{row[column]!r}\n" for column in columns for row in matrix)


def matrix_of(file):
    lines = file.read_text(encoding="utf-8").splitlines()
    rows, columns = map(int, lines[1].split())
    numbers = list(map(float, lines[2:]))
    assert len(numbers) == rows * columns
    return [[numbers[column * rows + row] for column in range(columns)] for row in range(rows)]


class MatrixMultiplication(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def file(self, name, content):
        file = self.folder / name
        file.write_text(content, encoding="utf-8")
        return file

    def run_on(self, ranks, *arguments, code=0, environment=()):
        """What it prints, on both streams; every rank ends with that code."""
        script = '"$@"; echo "code $?"'
        words = [options.launcher, "-n", ranks, "env", *environment, "sh", "-c", script, "sh", options.program,
                 *arguments]
        ended = subprocess.run([str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               timeout=60, check=False)
        self.assertEqual(ended.stdout.count(f"code {code}\n"), ranks, ended.stdout + ended.stderr)
        return ended.stdout + ended.stderr

    def fails(self, ranks, sentence, *arguments, code=1):
        """One sentence, and all ranks end."""
        lines = self.run_on(ranks, *arguments, code=code).splitlines()
        said = [line for line in lines if line.startswith("matrix_multiplication: ")]
        self.assertEqual(len(said), 1, said)
        self.assertIn(sentence, said[0])

    def multiply(self, ranks, *arguments, environment=()):
        """The results of generated matrices, whose product the program has found right."""
        results = self.folder / "results.json"
        said = self.run_on(ranks, *arguments, "--rounds", 1, "--json", results, environment=environment)
        self.assertIn("C is A * B", said)
        row = json.loads(results.read_text(encoding="utf-8"))
        for variant in row["variants"].values():
            self.assertLess(variant["residual"], 1)
            self.assertGreater(variant["dgemm_s"], 0)
        return row


class Products(MatrixMultiplication):
    def test_on_odd_numbers_of_ranks(self):
        placements = {1: "random", 2: "cyclic", 3: "random", 4: "random", 5: "rows", 7: "random"}
        for ranks, placement in placements.items():
            with self.subTest(ranks=ranks, placement=placement):
                row = self.multiply(ranks, *SIZE, "--block", 16, "--pdgemm-block", 24, "--panel", 10, "--placement",
                                    placement)
                self.assertEqual((row["ranks"], row["m"], row["n"], row["k"]), (ranks, 133, 97, 141))
                self.assertLess(row["difference"], 1)
                self.assertEqual(row["variants"]["notified"]["moved_mb"] > 0, ranks > 1)

    def test_few_buffers_chains_and_owners(self):
        panels = self.multiply(3, *SIZE, "--block", 16, "--assign", "owner")
        chains = self.multiply(3, *SIZE, "--block", 16, "--assign", "owner", "--order", "chains", "--buffers", 1)
        # With room for two panels each rank gets a block once; with one buffer, for almost every product.
        moved = [row["variants"]["notified"]["moved_mb"] for row in (panels, chains)]
        self.assertLess(moved[0] * 2, moved[1])
        self.assertGreater(panels["balance"], 1.05)
        rows = {name: self.multiply(3, *SIZE, "--block", 16, "--assign", name)
                for name in ("balanced", "grid", "least")}
        moved = {name: row["variants"]["notified"]["moved_mb"] for name, row in rows.items()}
        self.assertLess(max(row["balance"] for row in rows.values()), 1.05)
        self.assertEqual(moved["least"], min(moved.values()))
        self.assertLess(moved["grid"], moved["balanced"])

    def test_fewer_blocks_than_ranks(self):
        self.multiply(5, "-m", 1, "-n", 3, "-k", 20, "--block", 16)

    def test_between_nodes(self):
        row = self.multiply(3, *SIZE, "--block", 16, environment=("PAPAYA_NODE_SIZE=2", "PAPAYA_TRANSPORT=mpi"))
        self.assertEqual(row["over"], "MPI's messages")

    def test_files(self):
        source = random.Random(1)
        a, b = ([[source.uniform(-2, 2) for _ in range(columns)] for _ in range(rows)]
                for rows, columns in ((13, 7), (7, 11)))
        files = ("--a", self.file("a", text_of(a)), "--b", self.file("b", text_of(b)))
        wanted = [[sum(x * y for x, y in zip(row, column)) for column in zip(*b)] for row in a]
        for variant in ("both", "pdgemm"):
            out = self.folder / variant
            self.run_on(3, *files, "--block", 4, "--out", out, "--variant", variant, "--rounds", 1)
            for found, row in zip(matrix_of(out), wanted, strict=True):
                for x, y in zip(found, row, strict=True):
                    self.assertAlmostEqual(x, y, places=12)
        self.run_on(1, "--a", self.folder / "both", "-n", 5, "--rounds", 1)  # what it has written it reads


class Faults(MatrixMultiplication):
    def test_a_wrong_product_is_found(self):
        for arguments in ((*SIZE, "--block", 16), ("-m", 5, "-n", 5, "-k", 5, "--variant", "notified")):
            self.fails(2, "C of notified is not A * B: the residual is", "--plant-error", "--rounds", 1, *arguments)

    def test_files_that_are_wrong(self):
        good = text_of([[1.5, 2], [3, 4]])
        for content, sentence in (
                (good.replace("3\n", "3,\n"), 'line 5 is "3,", not a finite number'),
                (good[:-2], "ends after 3 of its 2 x 2 elements"),
                (good + "5\n", "line 8 follows the last of 2 x 2 elements"),
                (good.replace("array", "coordinate"), "has a sparse matrix (coordinate)"),
                ("1 2\n", "is not in Matrix Market format")):
            with self.subTest(sentence=sentence):
                self.fails(2, sentence, "--a", self.file("a", content), "-n", 3, "--rounds", 1)

    def test_what_does_not_fit(self):
        a = self.file("a", text_of([[1, 2], [3, 4], [5, 6]]))
        self.fails(2, f"{a} has 3 x 2 elements and {a} has 3 x 2: A needs as many columns", "--a", a, "--b", a)
        self.fails(2, f"-k is 3; {a} has 2.", "--a", a, "-k", 3)
        self.fails(2, f"{a} is an operand", "--a", a, "--out", a)
        self.fails(2, "No such file or directory", "--a", self.folder / "nowhere")
        self.fails(2, "Multiply smaller matrices", "-m", 2_000_000, "-n", 2_000_000, "--block", 16384)
        self.fails(2, "Cannot write", "--a", a, "--out", self.folder / "nowhere/out", "--rounds", 1)

    def test_usage(self):
        self.fails(2, "--grid 3x1 has not the form", "--grid", "3x1")
        self.run_on(2, "--placement", "anywhere", code=2)

    def test_a_killed_rank_ends_the_job(self):
        words = [options.launcher, "-n", 3, "sh", "-c", 'echo "pid $$"; exec "$@"', "sh", options.program, "-m",
                 1000, "-n", 1000, "-k", 1000, "--rounds", 1000, "--block", 64, "--variant", "notified"]
        with subprocess.Popen([str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                              text=True) as job:
            ranks = [int(re.match(r"pid (\d+)", job.stdout.readline())[1]) for _ in range(3)]
            time.sleep(0.4)
            os.kill(ranks[1], signal.SIGKILL)
            job.stdout.read()
            self.assertNotEqual(job.wait(timeout=30), 0)


class Driver(MatrixMultiplication):
    def test_compares_the_variants(self):
        words = [sys.executable, options.driver, "--program", options.program, "--launcher", options.launcher, "--size",
                 100, "--block", 32, "--rounds", 1, "--ranks", 2, "--output", self.folder, "--seed", 3,
                 "--placements", "random"]
        said = subprocess.run([str(word) for word in words], stdout=subprocess.PIPE, text=True, check=True).stdout
        self.assertIn("all products are right", said)
        rows = json.loads((self.folder / "matrix_multiplication.json").read_text(encoding="utf-8"))
        self.assertEqual([(row["placement"], row["seed"]) for row in rows], [("random", 3)])
        self.assertEqual((self.folder / "matrix_multiplication.svg").exists(),
                         importlib.util.find_spec("matplotlib") is not None)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--launcher", required=True)
    parser.add_argument("--program", required=True)
    parser.add_argument("--driver", required=True)
    options, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest])
