#!/usr/bin/env python3
"""What docs/ shows to programmers: samples that must work.

  run.py --build DIR [CASE...]
"""

import argparse
import csv
import json
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


# Of JSON Schema what docs/tuning.schema.json has of it.
def conforms(value, schema, root):
    kinds = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}

    def is_of(kind):
        if kind in ("integer", "number"):
            return not isinstance(value, bool) and isinstance(value, int if kind == "integer" else (int, float))
        return isinstance(value, kinds[kind])

    if "$ref" in schema and not conforms(value, root["$defs"][schema["$ref"].rsplit("/", 1)[1]], root):
        return False
    of = schema.get("type", [])
    if of and not any(map(is_of, [of] if isinstance(of, str) else of)):
        return False
    if value not in schema.get("enum", [value]) or schema.get("const", value) != value:
        return False
    if "anyOf" in schema and not any(conforms(value, one, root) for one in schema["anyOf"]):
        return False
    if isinstance(value, dict):
        known, others = schema.get("properties", {}), schema.get("additionalProperties", True)
        return all(name in value for name in schema.get("required", [])) and all(
            conforms(inner, known[name], root) if name in known else
            others is True or (others is not False and conforms(inner, others, root)) for name, inner in value.items())
    if isinstance(value, list):
        return (schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value))
                and all(conforms(inner, schema.get("items", {}), root) for inner in value))
    if isinstance(value, str):
        return re.search(schema.get("pattern", ""), value) is not None
    return not isinstance(value, (int, float)) or schema.get("minimum", value) <= value <= schema.get("maximum", value)


class TuningFile(unittest.TestCase):
    PAGE = DOCS / "settings.md"
    SCHEMA = json.loads((DOCS / "tuning.schema.json").read_text(encoding="utf-8"))

    def setUp(self):
        self.example = code_block(self.PAGE, "json", '"rules"')
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="papaya-test-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def explain(self, text):
        (self.folder / "machine.json").write_text(text, encoding="utf-8")
        return subprocess.run([options.build / "papaya", "info", "--rules", "allreduce", "64K", "--ranks", "16",
                               "--nodes", "2", "--tuning", "machine.json"], cwd=self.folder, capture_output=True,
                              text=True, check=False, env={})

    def test_the_example_is_explained_as_shown(self):
        self.assertTrue(conforms(json.loads(self.example), self.SCHEMA, self.SCHEMA))
        done = self.explain(self.example)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(done.stdout, code_block(self.PAGE, "text", "machine.json, line"))

    def test_papaya_and_the_schema_refuse_the_same(self):
        rule = json.loads(self.example)["rules"][0]
        measured = rule["measured"][0]
        for name, value in (("collective", "scan"), ("ranks", 0), ("ranks", [1]), ("ranks", "4"), ("nodes", [0, None]),
                            ("bytes", "4Q"), ("bytes", -1), ("bytes", [1, 2, 3]), ("oversubscribed", "no"),
                            ("arrivals", "late"), ("sites", []), ("parameters", 7), ("parameters", {"x": None}),
                            ("comment", 1), ("algorithm", None), ("measured", [{**measured, "ratio": "1"}]),
                            ("measured", [{**measured, "outcome": "fine"}]), ("measured", [{**measured, "x": 1}])):
            with self.subTest(name=name, value=value):
                wrong = {"version": 1, "rules": [{**rule, name: value}]}
                self.assertFalse(conforms(wrong, self.SCHEMA, self.SCHEMA))
                done = self.explain(json.dumps(wrong))
                self.assertEqual((done.returncode, done.stderr.count("machine.json, line 1, column")), (1, 1), done)
        for wrong in ({"version": 2, "rules": []}, {"version": 1}, {"rules": []}, [], {"version": 1, "rules": [1]},
                      {"version": 1, "rules": [], "x": 1}):
            with self.subTest(wrong=wrong):
                self.assertFalse(conforms(wrong, self.SCHEMA, self.SCHEMA))
                self.assertEqual(self.explain(json.dumps(wrong)).returncode, 1)


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
