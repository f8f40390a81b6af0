#!/usr/bin/env python3
"""examples/terasort sorts what it should, finds what is wrong, and says so on all ranks.

  terasort.py --launcher MPIRUN --program TERASORT --driver RUN.PY [CASE...]
"""

import argparse
import importlib.util
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

RECORD = 100
options = None


def records_of(data):
    return [data[at:at + RECORD] for at in range(0, len(data), RECORD)]


def key(record):
    return record[:10]


class Terasort(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

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
        said = [line for line in lines if line.startswith("terasort: ")]
        self.assertEqual(len(said), 1, said)
        self.assertIn(sentence, said[0])

    def generate(self, name, ranks, records, *arguments):
        file = self.folder / name
        said = self.run_on(ranks, "generate", file, "-n", records, *arguments)
        return file, said.split("checksum: ")[1].split()[0]

    def sort(self, ranks, source, *arguments, environment=()):
        """The results, after a look at the file."""
        output, results = self.folder / "sorted", self.folder / "results.json"
        self.run_on(ranks, "sort", "-i", source, "-o", output, "--json", results, "--scratch", self.folder, *arguments,
                    environment=environment)
        found, wanted = records_of(output.read_bytes()), records_of(source.read_bytes())
        self.assertEqual([key(record) for record in found], sorted(map(key, wanted)))
        self.assertEqual(sorted(found), sorted(wanted))
        output.unlink()
        return json.loads(results.read_text(encoding="utf-8"))


class Generation(Terasort):
    def test_records_are_those_of_gensort(self):
        file, _ = self.generate("ascii", 2, 1, "--ascii")
        self.assertEqual(file.read_bytes(),
                         b"AsfAGHM5om  " + b"0" * 32 + b"  0000222200002222000022220000222200002222000000001111\r\n"
                         b"~sHd0jDv6X  " + b"0" * 31 + b"1  77779999444488885555CCCC777755555555BBBB666644446666\r\n")
        # Hadoop's TeraValidate prints this checksum for the first million of binary records, which TeraGen makes alike.
        said = self.run_on(2, "sort", "-n", 500000)
        self.assertIn("checksum: 7a27e2d0d55de\n", said)
        self.assertIn("all records are in order", said)

    def test_any_number_of_ranks_makes_the_same(self):
        one, checksum = self.generate("one", 1, 300, "--skew", 0.3)
        three, same = self.generate("three", 3, 100, "--skew", 0.3)
        self.assertEqual(one.read_bytes(), three.read_bytes())
        self.assertEqual(checksum, same)


class Sorting(Terasort):
    def test_on_odd_numbers_of_ranks(self):
        file, checksum = self.generate("input", 1, 5001)
        for ranks in (1, 2, 3, 5):
            for mode in ("notified", "alltoallv") if ranks in (2, 5) else ("notified",):
                with self.subTest(ranks=ranks, mode=mode):
                    results = self.sort(ranks, file, "-m", mode, "--buffer", 1000, "--run", 100)
                    self.assertEqual((results["checksum"], results["records"]), (checksum, 5001))
                    self.assertEqual(results["duplicates"], 0)
                    self.assertEqual(results["checksum_of_input"], checksum)
        results = self.sort(1, file, "-m", "single")
        self.assertEqual((results["mode"], results["checksum"]), ("single", checksum))

    def test_few_records(self):
        data = self.generate("some", 1, 3)[0].read_bytes()
        for count in (0, 1, 3):
            file = self.folder / f"few-{count}"
            file.write_bytes(data[:count * RECORD])
            for mode in ("notified", "alltoallv"):
                with self.subTest(count=count, mode=mode):
                    self.assertEqual(self.sort(5, file, "-m", mode)["records"], count)
        self.assertEqual(self.sort(1, self.folder / "few-0", "-m", "single")["records"], 0)

    def test_skewed_keys_overload_no_rank(self):
        for skew in (0.7, 1):
            file, _ = self.generate(f"skew-{skew}", 1, 6000, "--skew", skew)
            same = sum(key(record) == b"S" * 10 for record in records_of(file.read_bytes()))
            self.assertAlmostEqual(same / 6000, skew, delta=0.03)
            for mode in ("notified", "alltoallv"):
                with self.subTest(skew=skew, mode=mode):
                    results = self.sort(3, file, "-m", mode)
                    self.assertLess(results["largest_partition"], 1.2 * 2000)
                    self.assertEqual(results["duplicates"], same - 1)
        # In the order of the keys, too, where every record goes to one rank at first.
        ordered = self.folder / "ordered"
        ordered.write_bytes(b"".join(sorted(records_of(self.generate("input", 1, 6000)[0].read_bytes()), reverse=True)))
        self.assertLess(self.sort(3, ordered)["largest_partition"], 1.2 * 2000)

    def test_bins(self):
        source, _ = self.generate("records", 3, 700, "--skew", 0.4)
        for mode in ("notified", "alltoallv"):
            for bins in (0, 1, 5, 1000):
                with self.subTest(mode=mode, bins=bins):
                    self.sort(3, source, "--mode", mode, "--bins", bins, "--buffer", 1000)

    def test_out_of_core(self):
        file, _ = self.generate("input", 1, 30000)
        for ranks, mode in ((3, "notified"), (3, "alltoallv"), (1, "single")):
            with self.subTest(mode=mode):
                results = self.sort(ranks, file, "-m", mode, "--memory", "1300K", "--buffer", 5000, "--run", 500)
                self.assertGreaterEqual(results["runs_in_files"], ranks)
                self.assertFalse(list(self.folder.glob("terasort-run-*")))

    def test_between_nodes(self):
        file, _ = self.generate("input", 1, 4000)
        for node_size, slots in ((1, 8), (2, 3)):
            results = self.sort(3, file, "--buffer", "20000", "--slots", slots,
                                environment=(f"PAPAYA_NODE_SIZE={node_size}", "PAPAYA_TRANSPORT=mpi"))
            self.assertEqual(results["over"], "MPI's messages")
        for slots in (1, 3):
            self.assertEqual(self.sort(3, file, "--buffer", "1000", "--slots", slots)["over"], "shared memory")


class Faults(Terasort):
    def test_a_changed_file_is_found(self):
        file, checksum = self.generate("input", 1, 2000)
        self.run_on(3, "sort", "-i", file, "-o", self.folder / "sorted")
        good = (self.folder / "sorted").read_bytes()
        self.run_on(3, "validate", self.folder / "sorted", "--checksum", checksum)
        changed = self.folder / "changed"
        # In the first record of the second rank, whose share begins at 667, and in the middle of the last one's.
        for record in (667, 1700):
            changed.write_bytes(good[:record * RECORD] + b"\0" + good[record * RECORD + 1:])
            self.fails(3, f"1 record is not in order, the first is record {record}.", "validate", changed)
        changed.write_bytes(good[:70050] + bytes([good[70050] ^ 1]) + good[70051:])
        self.run_on(3, "validate", changed)
        self.fails(3, f"it should be {checksum}", "validate", changed, "--checksum", checksum)
        self.fails(3, "records are not in order", "validate", file)

    def test_what_is_wrong_is_said_once(self):
        file, _ = self.generate("input", 1, 2000)
        short = self.folder / "short"
        short.write_bytes(file.read_bytes()[:-1])
        nowhere = self.folder / "nowhere"
        self.fails(3, "199999 bytes, 99 more than a whole number of records", "sort", "-i", short)
        self.fails(3, "99 more than a whole number", "validate", short)
        self.fails(3, "No such file or directory", "sort", "-i", nowhere)
        self.fails(3, "is not a regular file", "sort", "-i", self.folder)
        self.fails(3, f"Cannot write {nowhere}/sorted", "sort", "-i", file, "-o", nowhere / "sorted")
        self.fails(3, f"Cannot write {nowhere}/made", "generate", nowhere / "made")
        self.fails(3, f"{file} is the input", "sort", "-i", file, "-o", file)
        self.assertEqual(file.stat().st_size, 2000 * RECORD)
        self.fails(3, "Cannot write runs to the folder", "sort", "-n", 30000, "--memory", "1M", "--buffer", 5000,
                   "--scratch", nowhere)
        self.fails(3, f"Cannot write {nowhere}/results", "sort", "-n", 10, "--json", nowhere / "results")
        self.fails(2, "start it on one rank", "sort", "-n", 10, "-m", "single")
        for mode in ("notified", "alltoallv"):
            self.fails(3, "needs at least", "sort", "-n", 30000, "--memory", "10K", "-m", mode)

    def test_usage(self):
        for arguments in (("sort", "--mode", "quick"), ("sort", "--skew", 2), ("sort", "--memory", "much"), ("merge",),
                          ()):
            self.run_on(2, *arguments, code=2)


class Driver(Terasort):
    def test_compares_the_modes(self):
        words = [sys.executable, options.driver, "--program", options.program, "--launcher", options.launcher,
                 "--ranks", 2, "--records", 3000, "--rounds", 1, "--output", self.folder]
        said = subprocess.run([str(word) for word in words], stdout=subprocess.PIPE, text=True, check=True).stdout
        for mode in ("notified", "alltoallv", "single"):
            self.assertIn(mode, said)
        self.assertIn("the same checksum in all runs", said)
        rows = json.loads((self.folder / "terasort.json").read_text(encoding="utf-8"))
        self.assertEqual({row["records"] for row in rows}, {6000})
        self.assertEqual((self.folder / "terasort.svg").exists(), importlib.util.find_spec("matplotlib") is not None)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--launcher", required=True)
    parser.add_argument("--program", required=True)
    parser.add_argument("--driver", required=True)
    options, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest])
