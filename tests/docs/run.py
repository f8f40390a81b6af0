#!/usr/bin/env python3
"""What docs/ shows to programmers: samples that must work.

  run.py --build DIR [CASE...]
"""

import argparse
import csv
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

from code_block import code_block

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
options = None


class AddAnAlgorithm(unittest.TestCase):
    PAGE = DOCS / "add_an_algorithm.md"

    def test_names_the_file_and_a_place_in_its_meson_build(self):
        name = re.search(r'\.name = "(\w+)"', code_block(self.PAGE, "cpp", "constexpr Descriptor"))[1]
        self.assertIn(f"`algorithms/allreduce/{name}.cpp`", self.PAGE.read_text(encoding="utf-8"))
        shown = code_block(self.PAGE, "meson", "core_sources").splitlines()
        there = (ROOT / "algorithms/allreduce/meson.build").read_text(encoding="utf-8").splitlines()
        self.assertEqual([line for line in shown if line not in there], [f"  '{name}.cpp',"])


class TraceFormat(unittest.TestCase):
    def test_the_example_reads_what_papaya_reads(self):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="papaya-test-"))
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        ranks, calls = 3, 40
        subprocess.run([options.build / "tests/report/synthetic_run", folder, str(ranks), "1", str(calls)], check=True)
        example = code_block(DOCS / "trace_format.md", "python", "arrival")
        done = subprocess.run([sys.executable, "-c", example, folder], stdout=subprocess.PIPE, text=True, check=True)
        table = subprocess.run([options.build / "papaya", "trace", "--csv", folder], stdout=subprocess.PIPE, text=True,
                               check=True)
        expected = {}
        for row in csv.DictReader(table.stdout.splitlines()):
            expected.setdefault(int(row["call"]), {})[int(row["rank"])] = float(row["arrival_us"])
        self.assertEqual(len(expected), calls)
        printed = dict(re.findall(r"^(\d+) (\{.*\})$", done.stdout, re.MULTILINE))
        self.assertEqual(sorted(map(int, printed)), sorted(expected))
        for call, by_rank in printed.items():
            there = dict(re.findall(r"(\d+): (\d+)", by_rank))
            self.assertEqual(sorted(map(int, there)), list(range(ranks)))
            first = expected[int(call)][0], int(there["0"])
            for rank, ns in there.items():
                # The origins differ; the distances from rank 0 must not.
                distance_us = expected[int(call)][int(rank)] - first[0]
                self.assertAlmostEqual((int(ns) - first[1]) / 1000, distance_us, delta=0.002)


def main():
    global options
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=pathlib.Path, required=True)
    options, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest])


if __name__ == "__main__":
    main()
