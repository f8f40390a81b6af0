#!/usr/bin/env python3
"""tools/reproduce: what it makes of what was measured, and that a run which fails, hangs or is not there is named.

  evidence.py
"""
import contextlib
import importlib.machinery
import importlib.util
import io
import pathlib
import re
import sys
import tempfile
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.dont_write_bytecode = True
loader = importlib.machinery.SourceFileLoader("reproduce", str(ROOT / "tools" / "reproduce"))
reproduce = importlib.util.module_from_spec(importlib.util.spec_from_loader("reproduce", loader))
loader.exec_module(reproduce)
from evidence import applications, arrivals, measure, nodes, page, weak  # noqa: E402  the path is set by then
from evidence.experiment import JSON, Experiment, Figure, Line, Run  # noqa: E402  the path is set by then


def row(algorithm, inside, **other):
    return {"collective": "allreduce", "algorithm": algorithm, "bytes": 8, "inside_us": {"p50": inside, "mean": inside},
            "excess_us": {"p50": inside / 2}, **other}


def simulated(algorithm, us, ranks=4, skew=0.0):
    return {"algorithm": algorithm, "ranks": ranks, "bytes": 1024, "skew_us": skew, "excess_us": {"p50": us}}


class Numbers(unittest.TestCase):
    def test_an_improvement_is_of_the_time_in_the_call(self):
        results = {"x.openmpi.4": {"rows": [row("native", 100), row("arrival_leader", 60)]},
                   "x.mpich.2": {"rows": [row("native", 10), row("arrival_leader", 11)]}}
        self.assertEqual(arrivals.headline(results), "+40 % (Open MPI, 4 ranks, 8), mean +15 %")
        self.assertIn("| MPICH, 2 ranks | 8 | 10 | 11 | -10 % | 1.10 |", arrivals.table(results))
        self.assertEqual(arrivals.figure(results).lines[0], Line("Open MPI, 4 ranks", [8], [40.0]))

    def test_simulated_ranks_wait_for_the_last(self):
        # Of 3 ranks within 12 us the last comes after 9 us on average, and one waits 3 us.
        self.assertEqual(nodes.us_in_call(simulated("ring", 5, ranks=3, skew=12)), 8)
        results = {"hierarchical-allreduce.simulation": [
            simulated("native:ompi", 5, 3, 12), simulated("native:mpich", 9, 3, 12), simulated("leaders/x", 1, 3, 12)]}
        self.assertIn("+50 % (3 ranks, 1K, simulated)", nodes.hierarchical_headline(results))

    def test_times_as_fast_as_the_quickest(self):
        results = {"ring.simulation": [simulated("native:lr", 8), simulated("native:ompi", 6), simulated("ring", 4)],
                   "ring.box.mpich.4x1": {"rows": [row("native", 30), row("ring", 60)]}}
        self.assertEqual(nodes.factor_headline("ring")(results),
                         "up to 1.50 times as fast (4 ranks, 1K, simulated); "
                         "up to 0.50 times as fast (MPICH, 4 x 1, 8, pretended machines)")
        self.assertIn("| 4 | 1K | ompi | 6 | ring | 4 | 1.50 |", nodes.factor_table("ring")(results))

    def test_thresholds_are_compared_with_all_data(self):
        rows = [dict(row("threshold_bcast", us, threshold=share), collective="threshold_bcast")
                for share, us in ((0.25, 10), (0.5, 20), (0.75, 30), (1, 30))]
        rows.append(dict(row("native", 15, threshold=None), collective="threshold_bcast"))
        self.assertEqual(weak.threshold_headline({"thresholds.bcast.mpich.4x1": {"rows": rows}}),
                         "threshold_bcast of a quarter up to 3.00 times as fast as of all "
                         "(MPICH, 4 x 1, pretended machines, 8)")

    def test_waiting_over_slack(self):
        def rows_of(*waits):
            return {"rows": [row("ssp_ring", 9, slack=slack, waited_us={"mean": us}, staleness_mean=1.0,
                                 calls_per_second=100.0) for slack, us in waits]}
        self.assertIn("from slack 4 on (ssp_ring, MPICH, 4 ranks), in 1 of 1 cases",
                      weak.slack_headline({"slack.mpich.4": rows_of((0, 100), (1, 60), (4, 4), (8, 1))}))
        self.assertIn("never falls", weak.slack_headline({"slack.mpich.4": rows_of((0, 100), (1, 60))}))

    def test_applications(self):
        files = {"results.json": {"summary": {"native": {"seconds": 8}, "slack 0": {"seconds": 10},
                                              "slack 2": {"seconds": 9}, "slack 8": {"seconds": 6}}}}
        self.assertEqual(applications.factorisation(files),
                         "40 % sooner with slack 8 than with slack 0, 25 % than with MPI's own")
        runs = [{"mode": mode, "phases": {phase: {"mean_s": us if phase == "shuffle" else 1}
                                          for phase in ("partition", "shuffle", "sort", "merge")}} for mode, us in (
            ("notified", 2), ("notified", 9), ("notified", 3), ("alltoallv", 6), ("single", 1))]
        self.assertEqual(applications.sorting({"terasort.json": runs}),
                         "1.50 times as fast with sort and merge, partition and shuffle alone 1.75 times")
        failed = {"seconds": 50, "recovery_s": 1, "checkpoints_s": 0.01}
        self.assertEqual(applications.surviving({"kmeans.json": {"failure": [failed]}}),
                         "recovery 2.00 % of the run, checkpoints 0.0200 %, the same centroids")
        row = {"placement": "random", "ranks": 2, "variants": {"notified": {"gflops": 9}, "pdgemm": {"gflops": 6}}}
        self.assertEqual(applications.multiplication({"matrix_multiplication.json": [row]}),
                         "times PDGEMM's GFLOP/s: 1.50 (random, 2 ranks)")
        ways = {"native": [1, 1, 1], "slack 4": [1.2, 1.5, 1.4], "solo": [1.1, 1.3, 9], "majority": [2, 3, None]}
        summary = {way: {"sooner": sooner} for way, sooner in ways.items()}
        self.assertEqual(applications.training({"results.json": {"summary": summary}}),
                         "1.40 times sooner with slack 4, 1.30 with solo")


class Document(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="papaya-test-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "papaya").write_text("")
        self.document = self.folder / "evidence.md"

    def made_of(self, runs, *words, document=""):
        """Of one experiment with these runs: what is printed, and the document."""
        one = Experiment("planted", "Planted runs", "Nobody 2026", "nothing", runs,
                         lambda results: f"left: {results}\n", lambda results: f"{len(results)} runs",
                         lambda results: Figure("x", "y", []))
        markers = [mark.format(name) for name in ("machine", "summary", "planted") for mark in (page.BEGIN, page.END)]
        self.document.unlink(missing_ok=True)
        if document is not None:
            self.document.write_text(document or "before\n" + "\n".join(markers) + "\nafter\n")
        printed = io.StringIO()
        command = ["reproduce", "--build", str(self.folder), "--document", str(self.document), "--no-figures", *words]
        with (mock.patch.multiple(reproduce, EXPERIMENTS=(one,), machine_text=lambda _: "a machine"),
              mock.patch.multiple(measure, LONGEST=1, SLACK_S=0, ENDING=0.5), mock.patch.object(sys, "argv", command),
              contextlib.redirect_stdout(printed), contextlib.redirect_stderr(io.StringIO())):
            reproduce.main()
        return printed.getvalue(), self.document.read_text()

    def run_of(self, name, script, weight=20, **other):
        return Run(name, ("sh", "-c", script, "sh", JSON), weight, **other)

    def test_the_document_has_a_place_for_each(self):
        text = (ROOT / "docs" / "evidence.md").read_text(encoding="utf-8")
        for name in ("machine", "summary", *(one.name for one in reproduce.EXPERIMENTS)):
            page.put(text, name, "")
        self.assertEqual(len(re.findall("made by tools/reproduce: .*: begin", text)), 2 + len(reproduce.EXPERIMENTS))

    def test_what_was_measured_is_kept(self):
        count = 'echo x >> counted; echo "{\\"rows\\": 7}" > "$1"'
        printed, text = self.made_of((self.run_of("a", count),))
        self.assertIn("Planted runs: 1 runs.", printed)
        self.assertIn("left: {'a': {'rows': 7}}", text)
        self.assertTrue(text.startswith("before\n") and text.endswith("\nafter\n"))
        self.made_of((self.run_of("a", count),))
        self.assertEqual((self.folder / "counted").read_text(), "x\n")
        self.made_of((self.run_of("a", count),), "--again")
        self.assertEqual((self.folder / "counted").read_text(), "x\nx\n")

    def test_what_cannot_be_run_is_named(self):
        runs = (Run("missing", ("nothing", JSON), 1, "no-such-program"),
                self.run_of("wrong", 'echo launcher talks; echo "papaya bench: no such size." >&2; exit 2'),
                self.run_of("endless", "exec sleep 100", weight=1),
                self.run_of("alone", 'echo "{\\"rows\\": [{\\"algorithm\\": \\"native\\"}]}" > "$1"; '
                            'echo "papaya bench: x is left out" >&2'),
                self.run_of("good", 'echo "[1]" > "$1"'))
        printed, text = self.made_of(runs)
        for sentence in ("`missing`, no-such-program is not installed.",
                         "`wrong`, it ended with 2: papaya bench: no such size.",
                         "`alone`, nothing but native was measured: papaya bench: x is left out.",
                         "`endless`, it did not end within 1 s."):
            self.assertIn(sentence, text)
        self.assertIn("not run: endless", printed)
        self.assertIn("left: {'good': [1]}", text)

    def test_a_result_counts_where_the_run_does_not_end(self):
        script = ': > "$1"; sleep 1; echo "[2]" > "$1"; exec sleep 100'
        runs = (self.run_of("late", script, ends=False), self.run_of("other", script, weight=3))
        _, text = self.made_of(runs)
        self.assertIn("left: {'late': [2]}", text)
        self.assertIn("`other`, it did not end within 3 s.", text)

    def test_what_a_run_has_started_ends_with_it(self):
        self.made_of((self.run_of("endless", "sleep 100 & echo $! > child; wait", weight=1),))
        child = pathlib.Path("/proc") / (self.folder / "child").read_text().strip() / "stat"
        self.assertTrue(not child.exists() or child.read_text().rpartition(")")[2].split()[0] == "Z")

    def test_nothing_is_measured_for_a_document_without_its_places(self):
        runs = (self.run_of("a", 'echo x > counted; echo "[1]" > "$1"'),)
        for text, sentence in ((None, "No such file"), ("nothing", "the lines between which 'machine' stands")):
            with self.subTest(text=text), self.assertRaisesRegex(SystemExit, sentence):
                self.made_of(runs, document=text)
        self.assertFalse((self.folder / "counted").exists())

    def test_a_run_of_an_example_leaves_a_folder(self):
        script = 'mkdir -p "$1"; echo "{\\"a\\": 1}" > "$1/b.json"; echo table'
        runs = (Run("example", ("sh", "-c", script, "sh", "{folder}")),)
        _, text = self.made_of(runs)
        self.assertIn("left: {'example': {'output': 'table\\n', 'files': {'b.json': {'a': 1}}}}", text)

    def test_lost_markers(self):
        with self.assertRaisesRegex(page.Missing, "the lines between which 'ring' stands are missing"):
            page.put("nothing", "ring", "")

    @unittest.skipUnless(reproduce.figures.can_draw(), "Matplotlib is missing for this Python")
    def test_the_same_numbers_are_the_same_picture(self):
        figure = Figure("x", "y", [Line("a", [1, 2, 4], [3, 5, 4])], reference=1)
        for name in ("1.svg", "2.svg"):
            reproduce.figures.draw(figure, "A title", self.folder / name)
        first, second = ((self.folder / name).read_text() for name in ("1.svg", "2.svg"))
        self.assertIn("<svg", first)
        self.assertEqual(first, second)


if __name__ == "__main__":
    unittest.main()
