#!/usr/bin/env python3
"""papaya bench with real ranks: what it prints and writes, and that it finds wrong results. No time is asserted.

  run.py --build DIR --mpi openmpi|mpich
"""

import argparse
import csv
import json
import os
import pathlib
import re
import subprocess
import sys
import unittest
import xml.etree.ElementTree

from launched import FIGURES, Launched, environment

build = None
mpi = None

SERVED = "allreduce reduce bcast alltoall allgather barrier gather scatter reduce_scatter reduce_scatter_block".split()
SHORT = ["--rounds", "2", "-i", "8", "-x", "12"]


class Bench(Launched):
    def names(self, collective):
        listed = self.start([build / "papaya", "info", "--algorithms", collective]).stdout.split()
        self.assertEqual(listed[0], "native")
        return listed

    def test_every_algorithm_is_measured(self):
        # MPICH takes milliseconds for a call where ranks outnumber cores.
        _, data = self.measured("all", "-m", "8:64:8", *SHORT, ranks=2 if mpi == "mpich" else 3)
        self.assertEqual(data["pattern"], "none")
        for collective in SERVED:
            rows = [row for row in data["rows"] if row["collective"] == collective]
            measured = {row["algorithm"] for row in rows}
            self.assertLessEqual({"native", "auto"}, measured)
            # What needs PAPAYA_ORDER=arrival is left out without it.
            self.assertLessEqual(measured, {*self.names(collective), "auto"})
            sizes = {row["bytes"] for row in rows}
            self.assertEqual(sizes, {0} if collective == "barrier" else {8, 64})
            rooted = collective in ("reduce", "bcast", "gather", "scatter")
            for row in rows:
                self.assertEqual(row["aggregation"], "mean" if rooted else "max")
                self.assertEqual("root_inside_us" in row, rooted)
                self.assertEqual(row["stop"], "rounds")
                if row["algorithm"] not in ("native", "auto"):
                    self.assertEqual(row["replaced"], 1, row)

    def test_what_only_mpi_has(self):
        """With a root that is not rank 0 and sizes that do not divide; nonblocking ones with their overlap."""
        names = ("gather", "gatherv", "scatter", "scatterv", "allgatherv", "alltoallv")
        ranks = 2 if mpi == "mpich" else 3
        _, data = self.measured(",".join(names), "-m", "8:1000:125", "--root", "1", *SHORT, ranks=ranks)
        for name in names:
            rows = [row for row in data["rows"] if row["collective"] == name]
            self.assertEqual({row["bytes"] for row in rows}, {8, 1000})
            are_ours = {row["algorithm"] for row in rows} > {"native", "auto"}
            self.assertEqual(are_ours, name not in ("gatherv", "scatterv"))
            self.assertEqual(len(rows) == 2, not are_ours)
            self.assertEqual(rows[0]["aggregation"], "mean" if name.startswith(("gather", "scatter")) else "max")
        names = ["i" + name for name in dict.fromkeys((*names, *SERVED))]
        result, data = self.measured(",".join(names), "-m", "800", "--root", "1", "--tests", "2", *SHORT, ranks=ranks)
        self.assertEqual([row["collective"] for row in data["rows"]], names)
        self.assertEqual(data["mode"], "balanced")
        for row in data["rows"]:
            overlap = row["overlap"]
            self.assertTrue(0 <= overlap["percent"] <= 100)
            for figures in (overlap["pure_us"], overlap["compute_us"], overlap["total_us"]):
                self.assertEqual(set(figures), FIGURES)
            # Each rank computes for at least its own median of the call alone, within the call.
            self.assertGreater(overlap["compute_us"]["min"], 0)
            self.assertGreaterEqual(overlap["total_us"]["max"], overlap["compute_us"]["max"])
        said = re.findall(r"^ +overlap \d+ %.*: alone .*, computing .*, both ", result.stdout, re.MULTILINE)
        self.assertEqual(len(said), 14)

    def test_rows_come_as_they_are_measured(self):
        """The first size's row can be read while the second is measured, through a pipe too."""
        command = ["mpirun.openmpi", "--oversubscribe", "--bind-to", "none"] if mpi == "openmpi" else ["mpirun.mpich"]
        words = [*command, "-n", "2", build / "papaya", "bench", "allreduce", "-m", "8:16", "--algorithms", "native",
                 "--seconds", "0.3", "--rounds", "1000", "--precision", "0"]
        with subprocess.Popen([str(word) for word in words], env=environment(), cwd=self.folder,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
            said = b""
            while not re.search(rb"^ +8  native .*\n", said, re.MULTILINE):
                more = os.read(process.stdout.fileno(), 4096)
                self.assertTrue(more, said)
                said += more
            self.assertNotRegex(said, rb"(?m)^ +16  native")
            self.assertIsNone(process.poll())
            said += process.stdout.read()
        self.assertEqual(process.returncode, 0, said)
        self.assertEqual(re.findall(rb"(?m)^ +(\d+)  native .* time$", said), [b"8", b"16"])

    def test_launches_are_combined(self):
        files = []
        for number in range(2):
            _, data = self.measured("allreduce", "-m", "8:64:8", "--algorithms", "auto", "--seconds", "0.02",
                                    "--samples", "1000000", ranks=2)
            files.append(self.folder / f"{number}.json")
            files[-1].write_text(json.dumps(data))
        both = self.folder / "both.json"
        result = self.start([build / "papaya", "bench", "--combine", *files, "--json", both])
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("2 launches", result.stdout)
        combined = json.loads(both.read_text())
        self.assertEqual((combined["launches"], len(combined["rows"])), (2, 4))
        for row in combined["rows"]:
            self.assertEqual(len(row["launches_us"]), 2)
            low, high = row["interval_us"]
            self.assertTrue(low <= min(row["launches_us"]) <= max(row["launches_us"]) <= high)
        data["ranks"] = 3
        files[1].write_text(json.dumps(data))
        result = self.start([build / "papaya", "bench", "--combine", *files])
        self.assertEqual(result.returncode, 2)
        self.assertIn("ranks: 2 and 3", result.stderr)

    def test_patterns(self):
        (self.folder / "arrivals").write_text("# us\n0 100 200\n200 100 0\n")
        for pattern in ("random", "straggler", f"replay:{self.folder / 'arrivals'}"):
            _, data = self.measured("allreduce", "-m", "64", "--pattern", pattern, "--skew", "200", "--algorithms",
                                    "arrival_leader,auto", *SHORT)
            self.assertEqual((data["pattern"], data["skew_us"]), (pattern.split(":")[0], 200))
            for row in data["rows"]:
                self.assertGreater(row["excess_us"]["max"], 0)
                self.assertLessEqual(row["excess_us"]["p50"], row["inside_us"]["p50"])
        _, data = self.measured("reduce", "-m", "64", "--pattern", "last-late", "--mif", "50", "--root", "1",
                                "--algorithms", "auto", *SHORT)
        self.assertEqual((data["mif"], data["root"]), (50, 1))
        self.assertAlmostEqual(data["rows"][0]["skew_us"], 50 * data["rows"][0]["alpha_us"])
        # Nonblocking ones: the last rank starts it so much later.
        _, data = self.measured("iallreduce", "-m", "64", "--pattern", "last-late", "--skew", "20000", "--rounds", "2",
                                "-i", "8", "-x", "2", ranks=2)
        self.assertEqual((data["pattern"], data["mode"]), ("last-late", "deadline"))
        row, = data["rows"]
        self.assertGreater(min(row["imbalance_us"], row["inside_us"]["max"]), 5000)
        self.assertGreaterEqual(row["overlap"]["percent"], 0)
        self.assertGreater(row["overlap"]["compute_us"]["max"], 0)
        for mode in ("balanced", "imbalanced"):
            _, data = self.measured("allreduce", "-m", "64", "--mode", mode, "--algorithms", "auto", *SHORT)
            self.assertEqual(data["mode"], mode)
        # What `auto` leaves to MPI meets the same arrivals: the next call begins once both ranks have come.
        _, data = self.measured("gather", "-m", "8", "--pattern", "straggler", "--skew", "50000", "-i", "6", ranks=2)
        self.assertLess(data["rows"][-1]["missed_arrivals"], 0.4)

    def test_weak(self):
        """Weakly consistent collectives, whichever there are, beside native."""
        said = self.start([build / "papaya", "info", "--algorithms"]).stdout.split("\nWeakly consistent")[1]
        collectives = re.findall(r"^(\w+)$", said, re.MULTILINE)
        self.assertIn("ssp_allreduce", collectives)
        for collective in collectives:
            ssp = collective == "ssp_allreduce"
            compute = ["--compute", "200", "--pattern", "workers", "--skew", "100"] if ssp else []
            _, data = self.measured(collective, "-m", "64:128", "--rounds", "2", "-i", "8", *compute,
                                    "--csv", self.folder / "out.csv", "--plot", self.folder / "out.svg",
                                    ranks=2 if mpi == "mpich" else 3)
            picture = xml.etree.ElementTree.parse(self.folder / "out.svg").getroot()
            lines = len(picture.findall(".//{http://www.w3.org/2000/svg}polyline"))
            shown = {(row["algorithm"], row["threshold"]) for row in data["rows"]}
            # Time, calls per second and, but for native, waiting at two sizes; or time over both sizes.
            self.assertEqual(lines, 2 * (3 * len(shown) - 1) if ssp else len(shown))
            self.assertNotIn("nan", (self.folder / "out.svg").read_text().lower())
            self.assertEqual(data["mode"], "free" if ssp else "balanced")
            names = self.start([build / "papaya", "info", "--algorithms", collective]).stdout.split()
            self.assertEqual({row["algorithm"] for row in data["rows"]}, {"native", *names})
            self.assertEqual({row["collective"] for row in data["rows"]}, {collective})
            with open(self.folder / "out.csv", encoding="utf-8", newline="") as file:
                rows = list(csv.DictReader(file))
            self.assertEqual([row["algorithm"] for row in rows], [row["algorithm"] for row in data["rows"]])
            self.assertNotIn(None, rows[0])
            for row in data["rows"]:
                self.assertEqual(row["checked_results"], row["iterations"])
                self.assertEqual(row["aggregation"], "mean" if ssp else "max")
                self.assertEqual(row["calls_per_second"] is not None, ssp)
                self.assertGreater(row["mean_ratio"], 0)
                if row["algorithm"] == "native":
                    self.assertEqual(row["mean_ratio"], 1)
                    self.assertNotIn("waited_us", row)
                    continue
                self.assertEqual(row["slack"] is not None, ssp)
                self.assertLessEqual(row["staleness_mean"], row["staleness_max"])
                self.assertTrue(0 <= row["share_least"] <= row["share_mean"] <= 1)
                if ssp:
                    self.assertLessEqual(row["staleness_max"], row["slack"])
                    self.assertLess(row["calls_per_second"], 1e6 / 200)  # each rank computes for so long
        _, data = self.measured("threshold_reduce", "-m", "64", "--of", "ranks", "--threshold", "0.5,1",
                                "--rounds", "2", "-i", "8", ranks=2)
        self.assertEqual([(row["threshold"], row["of"]) for row in data["rows"]],
                         [(None, None), (0.5, "ranks"), (1, "ranks")])
        self.assertEqual([row["ranks_least"] for row in data["rows"][1:]], [1, 2])
        launches = [self.folder / name for name in ("one.json", "other.json")]
        for file in launches:
            file.write_text(json.dumps(data))
        result = self.start([build / "papaya", "bench", "--combine", *launches, "--json", "both.json",
                             "--csv", "both.csv", "--plot", "both.svg"])
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stdout, r"2 launches\n+threshold_reduce: time inside")
        both = json.loads((self.folder / "both.json").read_text())
        self.assertEqual([(row["threshold"], row["of"], row["ranks_least"]) for row in both["rows"][1:]],
                         [(0.5, "ranks", 1), (1, "ranks", 2)])
        for row, one in zip(both["rows"], data["rows"]):
            self.assertAlmostEqual(row["mean_ratio"], one["mean_ratio"])
            self.assertEqual(row["iterations"], 2 * one["iterations"])

    def test_files(self):
        result, data = self.measured("allgather", "-m", "1:4K", "--algorithms", "auto",
                                     "--csv", self.folder / "out.csv", "--plot", self.folder / "out.svg", *SHORT)
        self.assertIn("4K", result.stdout)
        with open(self.folder / "out.csv", encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual([(row["algorithm"], int(row["bytes"])) for row in rows],
                         [(row["algorithm"], row["bytes"]) for row in data["rows"]])
        picture = xml.etree.ElementTree.parse(self.folder / "out.svg").getroot()
        lines = picture.findall(".//{http://www.w3.org/2000/svg}polyline")
        self.assertGreaterEqual(len(lines), 2)
        self.assertNotIn("nan", (self.folder / "out.svg").read_text().lower())

    def test_algorithms_do_not_take_each_others_memory(self):
        """All of them at once need more than PAPAYA_SHM_LIMIT, each of them less."""
        result, data = self.measured("allreduce", "-m", "8:256K:32768", *SHORT, ranks=4,
                                     env={"PAPAYA_SHM_LIMIT": "64M"})
        self.assertEqual(result.stderr, "")
        rows = [(row["bytes"], row["algorithm"]) for row in data["rows"]]
        large = [algorithm for size, algorithm in rows if size == 1 << 18]
        self.assertEqual((large[0], large[-1], large.count("native")), ("native", "auto", 1))
        self.assertLessEqual({"rabenseifner", "ring", "straggler_rsa"}, set(large))
        too_little = self.launch(2, "allreduce", "-m", "256K", "--algorithms", "ring", *SHORT,
                                 env={"PAPAYA_SHM_LIMIT": "1M"})
        self.assertEqual(too_little.stderr, "papaya bench: ring of allreduce leaves messages of 262144 bytes to MPI "
                         "and is left out: PAPAYA_SHM_LIMIT or /dev/shm leaves too little memory.\n")

    def test_tune(self):
        """Measures under the launcher, goes on where it was, and takes what a run did."""
        def tune(*words, ranks=2, env=None):
            return self.launch(ranks, *words, env=env, subcommand="tune")

        words = ["--collectives", "allreduce,barrier", "-m", "8:64:8", "--patterns", "none", "-o", "tuning.json"]
        first = tune(*words, "--budget", "0.001s")
        self.assertIn("allreduce, arrivals none: 1 size in ", first.stdout)
        self.assertIn("is still to be measured", first.stdout)
        second = tune(*words, "--budget", "2s")
        self.assertIn("allreduce, arrivals none: 1 size in ", second.stdout)
        third = tune(*words)
        self.assertNotIn("allreduce, arrivals none: ", third.stdout)
        rules = json.loads((self.folder / "tuning.json").read_text())["rules"]
        self.assertEqual({(rule["collective"], rule["ranks"]) for rule in rules}, {("barrier", 2), ("allreduce", 2)})
        self.assertEqual(third.stdout.count("2 ranks on 1 node, "), len(rules))
        across = tune(*words, "--budget", "3s", env={"PAPAYA_NODE_SIZE": "1"})
        self.assertEqual((across.returncode, across.stderr), (0, ""))
        self.assertIn("2 ranks on 2 nodes, ", across.stdout)
        self.launch(2, build / "examples" / f"imbalanced-{mpi}", "--iterations", "5", subcommand="run",
                    env={"PAPAYA_OUTPUT": "run"})
        replayed = tune("--from", "run", "--collectives", "allreduce", "--natives", "--budget", "2s", "-o", "run.json")
        self.assertIn("native:recursive_doubling", (self.folder / "run.json.measured").read_text(), replayed)
        self.assertIn("allreduce, arrivals replay:run: ", replayed.stdout)
        wrong = tune("--from", "nowhere")
        self.assertEqual((wrong.returncode, wrong.stderr.count("there is no folder nowhere.")), (2, 1), wrong.stderr)

    def test_one_rank(self):
        _, data = self.measured("all", "-m", "8", *SHORT, ranks=1)
        self.assertEqual({row["collective"] for row in data["rows"]}, set(SERVED))
        self.assertTrue(all(row["limit_us"] is None for row in data["rows"]))

    def test_wrong_results_are_found(self):
        module = build / "tests" / "bench" / f"libbroken-{mpi}.so"
        file = self.folder / "out.json"
        result = self.launch(3, "allreduce", "-m", "64", "--algorithms", "arrival_leader,arrival_tree,auto",
                             "--json", file, *SHORT, preload=module)
        self.assertEqual(result.returncode, 1, result.stdout + result.stderr)
        rows = {row["algorithm"]: row for row in json.loads(file.read_text())["rows"]}
        self.assertEqual(set(rows), {"native", "arrival_leader", "auto"})
        self.assertIn("does not take arrival_tree", result.stderr)
        self.assertGreater(rows["arrival_leader"]["wrong_results"], 0)
        self.assertEqual(rows["arrival_leader"]["replaced"], 1)
        self.assertEqual((rows["auto"]["wrong_results"], rows["auto"]["replaced"]), (0, 0))
        self.assertEqual(rows["native"]["wrong_results"], 0)
        self.assertRegex(result.stdout, r"WRONG: allreduce 64 arrival_leader: \d+ results were wrong")
        # In few launches: Open MPI's launcher takes two seconds to end a job that failed.
        blocking = {"alltoallv": "auto", "gather": "native", "scatter": "native", "allgatherv": "native",
                    "reduce_scatter": "native"}
        for planted, right in ((blocking, {"gatherv", "scatterv", "reduce_scatter_block"}),
                               ({"iallreduce": "dissemination"}, {"iallgather"})):
            result = self.launch(2, ",".join([*planted, *sorted(right)]), "-m", "64", *SHORT, preload=module,
                                 env={"PAPAYA_IALLREDUCE": "dissemination"})
            self.assertEqual(result.returncode, 1, result.stdout + result.stderr)
            wrong = re.findall(r"WRONG: (\w+) 64 (\w+): [1-9]\d* results were wrong", result.stdout)
            self.assertLessEqual(set(planted.items()), set(wrong))
            self.assertEqual({name for name, _ in wrong}, set(planted))
            for name in planted:
                self.assertEqual((name, "native") in wrong, planted[name] == "native", wrong)
        result = self.launch(3, "barrier", "--pattern", "last-late", "--skew", "20000", "--algorithms", "auto", *SHORT,
                             preload=module)
        self.assertEqual(result.returncode, 1, result.stdout + result.stderr)
        self.assertRegex(result.stdout, r"WRONG: barrier 0 auto: in \d+ of \d+ calls a rank left before all had come")

    def test_wrong_usage(self):
        # What the command sees by itself needs no launcher, but for once: three ranks say it in one line.
        for ranks, words, said in ((3, ["alreduce"], "did you mean allreduce?"),
                                   (3, ["bcast", "--root", "3"], "there are 3 ranks"),
                                   (0, ["bcast", "-m", "9:1"], "the smaller first"),
                                   (0, ["bcast", "--nonsense"], "--nonsense"),
                                   (0, ["bcast", "--slack", "1"], "weakly consistent"), (0, [], "required"),
                                   (2, ["ssp_allreduce", "--algorithms", "ssp_hypercube:x=1"], "no parameter 'x'"),
                                   (2, ["bcast", "--json", "missing/out.json"], "cannot write missing/out.json"),
                                   (2, ["bcast", "--pattern", "replay:missing"], "cannot read missing")):
            result = self.launch(ranks, *words) if ranks else self.start([build / "papaya", "bench", *words])
            self.assertEqual(result.returncode, 2, result.stdout + result.stderr)
            lines = [line for line in result.stderr.splitlines() if "papaya bench:" in line]
            self.assertEqual(len(lines), 1, result.stderr)
            self.assertIn(said, lines[0])
        result = self.start([build / "papaya", "bench", "allreduce"])
        self.assertEqual(result.returncode, 2)
        self.assertIn("mpirun -n 4 papaya bench allreduce", result.stderr)

    def test_kernels(self):
        result = self.start([build / "papaya", "bench", "kernels", "--json", "out.json", "--csv", "out.csv"])
        self.assertEqual(result.returncode, 0, result.stderr)
        kernels = json.loads((self.folder / "out.json").read_text())["kernels"]
        self.assertGreater(len(kernels), 100)
        self.assertTrue(all(row["bytes_per_second"] > 0 and row["copy_bytes_per_second"] > 0 for row in kernels))
        self.assertEqual(len((self.folder / "out.csv").read_text().splitlines()), len(kernels) + 1)


def main():
    global build, mpi
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--mpi", choices=("openmpi", "mpich"), required=True)
    parser.add_argument("--case", action="append", help="several may be given; all if none is")
    arguments = parser.parse_args()
    build, mpi = arguments.build.resolve(), arguments.mpi
    Launched.build, Launched.mpi = build, mpi
    names = [f"test_{case}" for case in arguments.case or []] or unittest.defaultTestLoader.getTestCaseNames(Bench)
    suite = unittest.TestSuite(Bench(name) for name in names)
    result = unittest.TextTestRunner(stream=sys.stdout, verbosity=2).run(suite)
    return 0 if result.wasSuccessful() and result.testsRun > 0 else 1


if __name__ == "__main__":
    sys.exit(main())
