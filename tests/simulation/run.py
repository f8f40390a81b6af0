#!/usr/bin/env python3
"""The simulation of tools/simulate: right results, and times that follow from the machine by arithmetic.

  run.py --build DIR
"""

import argparse
import json
import math
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
build = None

# As in tools/simulate. Up to 8 nodes hang on one switch: two links apart.
LATENCY_US = 1.0
MESSAGE_US = 0.3
LINK_BYTES_PER_US = 12500.0


class Simulation(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="papaya-test-")
        self.addCleanup(folder.cleanup)
        self.json = pathlib.Path(folder.name) / "rows.json"

    def simulate(self, *words):
        command = [ROOT / "tools" / "simulate", "--build", build, "--json", self.json, "--jobs", 1, *words]
        result = subprocess.run(list(map(str, command)), stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                timeout=100)
        self.assertEqual((result.returncode, result.stderr), (0, ""), result.stdout)
        return json.loads(self.json.read_text()), result.stdout

    def time_us(self, *words):
        rows, _ = self.simulate(*words)
        self.assertEqual(len(rows), 1)
        return rows[0]["excess_us"]["p50"]

    def test_results_are_right_on_any_number_of_ranks(self):
        # Several ranks a node, a node that is not full, and three calls each, under a pattern that draws.
        for ranks in (1, 2, 13, 16):
            rows, _ = self.simulate("--ranks", ranks, "--ranks-per-node", 4, "--bytes", 8, 1000, 65536, "--pattern",
                                    "random", "--mif", 20, "--calls", 3, "--algorithm", "ring", "rabenseifner",
                                    "dissemination:radix=1", "dissemination:radix=3", "hierarchical/ring",
                                    "hierarchical/rabenseifner", "leaders/rabenseifner", "straggler_rsa",
                                    "native:ompi")
            self.assertEqual(len(rows), 27)
            for row in rows:
                self.assertTrue(row["checked"])
                self.assertEqual(row["wrong"], 0)
        # In chunks, of which one travels while the next is reduced.
        rows, _ = self.simulate("--ranks", 64, "--bytes", "1M", "--pattern", "none", "--algorithm", "hierarchical/ring",
                                "hierarchical/rabenseifner", "leaders/rabenseifner")
        self.assertEqual([row["wrong"] for row in rows], [0, 0, 0])
        rows, _ = self.simulate("--type", "integer", "--ranks", 13, "--ranks-per-node", 4, "--bytes", 1000, "--pattern",
                                "none", "--algorithm", "dissemination:radix=2")
        self.assertEqual([row["wrong"] for row in rows], [0])

    def test_twice_the_same(self):
        words = ("--ranks", 16, "--ranks-per-node", 4, "--bytes", 8, "64K", "--pattern", "exponential", "--mif", 20,
                 "--algorithm", "ring", "rabenseifner", "dissemination:radix=2", "native:ompi")
        first = self.simulate(*words)
        self.assertEqual(first, self.simulate(*words))
        self.assertIn("exponential 20", first[1])

    def test_ring_of_a_large_message_takes_what_its_bytes_take(self):
        ranks, size = 8, 32 << 20
        took_us = self.time_us("--ranks", ranks, "--ranks-per-node", 1, "--bytes", size, "--pattern", "none",
                               "--algorithm", "ring:chunk_bytes=65536", "--copy-gbytes", 1000,
                               "--reduce-gbytes", 1000)
        least_us = 2 * (ranks - 1) / ranks * size / LINK_BYTES_PER_US
        self.assertGreaterEqual(took_us, least_us)
        self.assertLess(took_us, 1.05 * least_us)

    def test_results_are_not_copied_out_of_the_segment(self):
        # Copying is slow. Where a rank's first operand is reduced, what comes is read, and nothing else.
        size, copy_gbytes = 8 << 20, 2
        for algorithm in ("ring:chunk_bytes=65536", "rabenseifner"):
            words = ("--ranks", 8, "--ranks-per-node", 1, "--bytes", size, "--pattern", "none", "--algorithm",
                     algorithm, "--reduce-gbytes", 1000)
            quick_us, slow_us = (self.time_us(*words, "--copy-gbytes", gbytes) for gbytes in (1000, copy_gbytes))
            self.assertLess(slow_us - quick_us, 1.2 * 7 / 8 * size / (copy_gbytes * 1000))

    def test_several_leaders_of_a_node_are_quicker_than_one_and_than_all(self):
        for size, than_one in (("64K", 0.6), ("256K", 0.6), ("1M", 0.7)):
            rows, _ = self.simulate("--ranks", 64, "--bytes", size, "--pattern", "none", "--algorithm",
                                    "leaders/rabenseifner", "hierarchical/rabenseifner", "rabenseifner")
            us = {row["algorithm"]: row["excess_us"]["p50"] for row in rows}
            self.assertLess(us["leaders/rabenseifner"], than_one * us["hierarchical/rabenseifner"])
            self.assertLess(us["leaders/rabenseifner"], us["rabenseifner"])

    def test_chunks_travel_while_others_are_reduced(self):
        # Where they go one by one, and where messages take no time, the difference is what the network hides.
        words = ("--ranks", 64, "--bytes", "1M", "--pattern", "none", "--algorithm", "leaders/rabenseifner")
        self.assertLess(self.time_us(*words), 0.9 * self.time_us(*words, "--chunk-bytes", "1M"))

    def test_dissemination_takes_one_latency_a_round(self):
        for radix in (1, 2, 7):
            took_us = self.time_us("--ranks", 8, "--ranks-per-node", 1, "--bytes", 8, "--pattern", "none",
                                   "--algorithm", f"dissemination:radix={radix}")
            rounds = math.ceil(round(math.log(8, radix + 1), 9))
            # Each round, all messages have to be started, and the last of them to travel.
            self.assertGreaterEqual(took_us, rounds * (LATENCY_US + MESSAGE_US))
            self.assertLess(took_us, rounds * (LATENCY_US + (radix + 0.5) * MESSAGE_US))

    def test_rabenseifner_takes_two_latencies_a_step(self):
        # Or one where a short message is exchanged whole.
        for doubling_bytes, latencies in ((0, 2), (2048, 1)):
            took_us = self.time_us("--ranks", 8, "--ranks-per-node", 1, "--bytes", 64, "--pattern", "none",
                                   "--algorithm", f"rabenseifner:recursive_doubling_bytes={doubling_bytes}")
            self.assertAlmostEqual(took_us, latencies * 3 * (LATENCY_US + MESSAGE_US), delta=0.5)

    def test_after_a_late_rank_each_round_takes_a_block(self):
        # n-2 + log2 n of them on n ranks. All others have come long before the last rank.
        for ranks in (4, 8):
            block = 128 << 10
            algorithm = f"straggler_rsa:chunk_bytes={(ranks - 1) * block}"
            rounds = ranks - 2 + math.log2(ranks)
            took_us = self.time_us("--ranks", ranks, "--ranks-per-node", 1, "--bytes", (ranks - 1) * block, "--pattern",
                                   "last-late", "--mif", 20, "--algorithm", algorithm, "--copy-gbytes", 1000,
                                   "--reduce-gbytes", 1000)
            self.assertGreater(took_us, rounds * block / LINK_BYTES_PER_US)
            self.assertLess(took_us, 1.01 * rounds * (LATENCY_US + MESSAGE_US + block / LINK_BYTES_PER_US))

    # By the algorithms' own cost models, with messages as the machine has them.
    def test_models_tell_how_long_algorithms_take(self):
        sizes = [8, 1024, 8192, 65536, 1 << 20, 16 << 20]
        names = {1: ["ring", "rabenseifner", "hierarchical_leaders", "hierarchical_rabenseifner", "hierarchical_tree",
                     "straggler_rsa"],
                 4: ["ring", "rabenseifner", "hierarchical/rabenseifner", "leaders/rabenseifner"],
                 16: ["rabenseifner", "hierarchical/rabenseifner", "leaders/rabenseifner"]}
        short = {1: ["dissemination:radix=1", "dissemination:radix=3", "dissemination:radix=7"],
                 4: [f"hierarchical/dissemination:radix={n}" for n in (1, 3, 7)]}
        for per_node, nodes, most in ((1, (2, 4, 8, 16), 16 << 20), (1, (64,), 1 << 20), (4, (2, 4, 16), 16 << 20),
                                      (16, (2, 4), 16 << 20)):
            rows = []
            for algorithms, limit in ((names[per_node], most), (short.get(per_node), 65536)):
                bytes_ = [size for size in sizes if size <= limit]
                if algorithms:
                    rows += self.simulate("--ranks", *(n * per_node for n in nodes), "--ranks-per-node", per_node,
                                          "--bytes", *bytes_, "--pattern", "none", "--calls", 1, "--algorithm",
                                          *algorithms)[0]
            cells = {}
            for row in rows:
                name = "dissemination" if "dissemination" in row["algorithm"] else row["algorithm"]
                us = cells.setdefault((row["ranks"], row["bytes"]), {})
                us[name] = min(us.get(name, (math.inf,)), (row["excess_us"]["p50"], row["model_us"]))
            for where, us in cells.items():
                for name, (took, model) in us.items():
                    # Where ranks are under several switches, messages take up to 1.8 times as long as those of the
                    # first two nodes.
                    with self.subTest(per_node=per_node, where=where, algorithm=name, took=took, model=model):
                        self.assertLess(max(took / model, model / took), 1.5 if where[0] <= 8 * per_node else 1.8)
                # As Selection::candidates() has it: the quickest is tried.
                _, of_best = min(us.values())
                self.assertLess(of_best, 2 * min(model for _, model in us.values()), (per_node, where, us))

    def test_blocks_of_allgathers_and_alltoalls(self):
        # Two leaders of a node send and copy at once; each is a broadcast more in the node.
        for collective, size, quicker, slower in (("allgather", "64K", 2, 1), ("allgather", 512, 1, 2),
                                                  ("alltoall", "4K", 2, 1), ("alltoall", 8, 2, 1)):
            name = f"hierarchical_{collective}"
            rows, _ = self.simulate("--collective", collective, "--ranks", 128, "--ranks-per-node", 16, "--bytes", size,
                                    "--algorithm", name, f"{name}:leaders=1", f"{name}:leaders=2")
            us = {row["algorithm"]: row["excess_us"]["p50"] for row in rows}
            self.assertLess(us[f"{name}:leaders={quicker}"], us[f"{name}:leaders={slower}"])
            self.assertLess(us[name], 1.01 * us[f"{name}:leaders={slower}"])
            for row in rows:
                self.assertLess(max(row["model_us"] / us[row["algorithm"]], us[row["algorithm"]] / row["model_us"]),
                                1.6)

    def test_blocks_of_the_simulated_mpi_take_what_their_bytes_take(self):
        for collective in ("allgather", "alltoall"):
            us = self.time_us("--collective", collective, "--ranks", 4, "--ranks-per-node", 1, "--bytes", "1M",
                              "--algorithm", "native:ompi")
            limit = 3 * 2**20 / LINK_BYTES_PER_US
            self.assertGreater(us, limit)
            self.assertLess(us, 1.5 * limit)

    def test_parts_of_the_document_are_put_together(self):
        root = self.json.parent
        for name in ("tools/simulate", "docs/simulation.md"):
            (root / name).parent.mkdir()
            shutil.copy(ROOT / name, root / name)

        def row(algorithm, us, **other):
            return {"algorithm": algorithm, "ranks": 48, "ranks_per_node": 16, "bytes": 2048, "pattern": "none",
                    "mif": 0, "excess_us": {"p50": us}, **other}

        parts = ([row("ring", 7, ranks=80), row("ring", 9), row("native:lr", 4, ranks=80)],
                 [row("rabenseifner", 8, ranks=80), row("ring", 6, ranks=80), row("native:lr", 10)],
                 [row(name, us, ranks=8, ranks_per_node=1, pattern="last-late", mif=20)
                  for name, us in (("straggler_rsa", 3), ("ring", 4))])
        files = []
        for number, rows in enumerate(parts):
            files.append(root / f"{number}.json")
            files[-1].write_text(json.dumps(rows))
        result = subprocess.run([sys.executable, root / "tools" / "simulate", "--from", *files], capture_output=True,
                                text=True, timeout=60)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        document = (root / "docs" / "simulation.md").read_text()
        # A later part replaces what an earlier one has of the same.
        self.assertIn("| bytes | 48 ranks on 3 nodes | 80 ranks on 5 nodes |\n|---|---|---|\n"
                      "| 2K | ring 9 us, 0.90 | *ring 6 us, 1.50* |\n", document)
        self.assertIn("| 8 | 3 us, 0.75 |", document)
        picture = (root / "docs" / "simulation.svg").read_text()
        self.assertIn("ring, 2K: 9 us", picture)

    def test_wrong_words(self):
        for words, text in ((("--pattern", "sometimes"), "'sometimes' is no pattern"),
                            (("--algorithm", "rign"), "did you mean ring?"),
                            (("--algorithm", "arrival_tree"), "works across nodes"),
                            (("--algorithm", "dissemination", "--bytes", "1M"), "up to 65536 bytes"),
                            (("--bytes", "12"), "no multiple of 8"),
                            (("--type", "integer"), "say with --ranks")):
            more = [] if words[0] == "--type" else ["--ranks", "2"]
            result = subprocess.run([ROOT / "tools" / "simulate", "--build", build, *words, *more],
                                    capture_output=True, text=True, timeout=60)
            self.assertNotEqual(result.returncode, 0)
            self.assertIn(text, result.stderr)
            self.assertNotIn("Traceback", result.stderr)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=pathlib.Path, required=True)
    arguments, rest = parser.parse_known_args()
    build = arguments.build
    if shutil.which("smpirun") is None or not (build / "tools" / "simulation" / "papaya-simulation.so").exists():
        print("skipped: SimGrid (libsimgrid-dev) is not installed, or was not when this was built")
        sys.exit(77)
    unittest.main(argv=[sys.argv[0], *rest])
