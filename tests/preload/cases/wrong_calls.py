"""Calls with wrong arguments, and verified results."""

import re

from harness import LEADER, Preload
from marks import quick, time_limit


class WrongCalls(Preload):
    @quick
    def test_wrong_call(self):
        """An error of one rank: its later calls are compared with the others' right ones."""
        for words in (["wrong", "none"], ["wrong", "one"]):
            if not self.compare(3, [self.program("callbacks"), *words]):
                self.skipTest(f"{self.mpi} itself fails, or native only")
            report = self.last.report()
            self.assertEqual(report["notes"], [])
            rows = {row["name"]: row for row in report["collectives"]}
            self.assertEqual(rows["MPI_Allreduce"]["imbalance"]["calls"], 100)
            self.assertEqual(report["compared_calls"], 100)
            self.assertEqual(report["late_ranks"][0]["rank"], 2)
            self.assertEqual(report["late_ranks"][0]["calls"], 100)
            for row in report["collectives"]:
                if row["excess_us"] is not None:
                    self.assertGreaterEqual(row["excess_us"]["mean"], 0)
                    self.assertGreaterEqual(row["excess_us"]["p50"], 0)

    @quick
    def test_refused(self):
        """What MPI refuses because of a program's delete callback, or of its buffers, it refuses with papaya, too."""
        for words in (["refuse"], ["aliased"]):
            native = self.job(2, self.program("callbacks"), *words, via="native", timeout=20)
            if native.code != 0 or self.native_only:
                self.skipTest(f"{self.mpi} itself fails, or native only")
            for env in ({}, LEADER):
                job = self.job(2, self.program("callbacks"), *words, env=env, timeout=20)
                self.check_right(job, 2)
                answers = [sorted(re.findall(r"^.*class.*$", out, re.MULTILINE)) for out in (job.out, native.out)]
                self.assertGreater(len(answers[0]), 1)
                self.assertEqual(*answers)

    @quick
    def test_mismatched(self):
        """A rank sends less than the others receive from it, which MPI lets pass: nobody waits for a rank that went to MPI alone."""
        envs = ({}, {"PAPAYA_ALLGATHER": "arrival_allgather"}, {"PAPAYA_ALLGATHER": "arrival_allgather", "PAPAYA_VERIFY": "2"})
        for ranks in (2, 3):
            native = self.job(ranks, self.program("mismatched"), 60, via="native", timeout=20)
            if native.code != 0 or self.native_only:
                self.skipTest(f"{self.mpi} itself fails, or native only")
            self.check_right(native, ranks)
            for env in envs:
                job = self.job(ranks, self.program("mismatched"), 60, env=env, timeout=20)
                self.check_right(job, ranks, quiet=False)
                self.check_counts(job)
                served = {row["algorithm"] for row in job.report()["algorithms"] if row["calls"] > 0}
                self.assertIn("arrival_allgather", served)

    def test_invalid(self):
        """Invalid datatypes and operations: the error class that MPI gives, where it gives one."""
        compared = 0
        for name in ("uncommitted", "uncommitted_bcast", "replace", "garbage_op", "garbage_type", "freed_type",
                     "freed_op"):
            native = self.job(2, self.program("invalid"), name, via="native", timeout=20)
            if native.code != 0 or len(native.out.splitlines()) != 2 or self.native_only:
                continue
            compared += 1
            with self.subTest(name=name):
                job = self.job(2, self.program("invalid"), name, env=LEADER, timeout=20)
                self.assertEqual((job.code, sorted(job.out.splitlines())), (0, sorted(native.out.splitlines())))
                self.assertEqual(job.complaints(), [])
        self.need_papaya()
        self.assertGreater(compared, 0)

    @quick
    def test_verify(self):
        """No false alarm and no memory touched that is not the program's; an alarm where results do differ."""
        every = {**LEADER, "PAPAYA_BCAST": "arrival_bcast", "PAPAYA_VERIFY": "1"}
        for mode in ("hole", "cancel", "own"):
            self.check_right(self.job(3, self.program("verified"), mode, via="native"), 3)
            if self.native_only:
                continue
            # Two orders: with three ranks, one of them is not MPI's.
            for order in ("rank", "arrival"):
                job = self.job(3, self.program("verified"), mode, env={**every, "PAPAYA_ORDER": order}, timeout=20)
                self.check_right(job, 3, quiet=False)
                self.check_counts(job)
                self.check_leader(job)
                self.assertEqual(len(job.complaints()), 1, job.complaints())
                self.assertRegex(job.complaints()[0], r"[1-9]\d* verified results agree")
        self.check_right(self.job(3, self.program("verified"), "wrong", via="native"), 3)
        self.need_papaya()
        job = self.job(3, self.program("verified"), "wrong", env=every, timeout=20)
        self.check_right(job, 3, quiet=False)
        self.assertEqual(len(job.complaints()), 2, job.complaints())
        self.assertIn("MPI_Allreduce by arrival_leader differs from MPI's own in call 0", job.complaints()[0])
        self.assertRegex(job.complaints()[1], r"[1-9]\d* of [1-9]\d* verified results differ")

    @quick
    def test_wrong_algorithm(self):
        """A wrong algorithm is found, named and dropped by all ranks, and the program gets right results."""
        self.need_papaya()
        here = self.scratch / "wrong"
        here.mkdir()
        (here / "libpapaya.so").symlink_to(self.build / "libpapaya.so")
        flavour = f"libpapaya-{self.mpi}.so"
        (here / flavour).symlink_to(self.build / "tests" / "preload" / flavour)
        names = ("allreduce", "bcast", "reduce", "alltoall", "allgather", "gather", "scatter", "reduce_scatter",
                 "reduce_scatter_block")
        env = {"LD_PRELOAD": str(here / "libpapaya.so"), "PAPAYA_VERIFY": "1", "PAPAYA_NODE_SIZE": None,
               **{f"PAPAYA_{name.upper()}": "wrong" for name in names}}
        job = self.job(3, self.program("verified"), "planted", via="native", env={**env, "PAPAYA_OUTPUT": str(
            self.scratch / "planted")}, timeout=20)
        self.check_right(job, 3, quiet=False)
        report = job.report()
        found = {row["name"]: row for row in report["wrong_results"]}
        self.assertEqual(set(found), {f"MPI_{name.capitalize()}" for name in names})
        self.assertEqual(len(report["wrong_results"]), len(names))
        text = (job.folder / "report.txt").read_text(encoding="utf-8")
        for name, row in found.items():
            self.assertEqual((row["algorithm"], row["communicator"], row["rank"], row["element"], row["dropped"]),
                             ("wrong", "MPI_COMM_WORLD", 1, 5, True))
            self.assertEqual(int(row["value"]), int(row["mpi_value"]) + 1000)
            told = [line for line in job.said() if f"{name} by wrong differs" in line]
            self.assertEqual(len(told), 1, job.err)
            self.assertIn(f"in call {row['call']} on MPI_COMM_WORLD of 3 ranks: element 5 of the result on rank 1 is "
                          f"{row['value']}, not {row['mpi_value']}.", told[0])
            self.assertIn(f"PAPAYA_VERIFY: {name} by wrong differed", " ".join(text.split()))
            calls = {(one["algorithm"], one["reason"]): one["calls"] for one in report["algorithms"]
                     if one["collective"] == name}
            # It runs three times on each rank; those of MPI_Allreduce twice more, where no result was wrong.
            self.assertEqual(calls.pop(("wrong", "")), 15 if name == "MPI_Allreduce" else 9)
            reason = "a result of the algorithm differed from MPI's (PAPAYA_VERIFY)"
            self.assertGreater(calls[("native", reason)], 8)
        self.assertEqual(found["MPI_Alltoall"]["call"], 2)

        # Ranks may leave each call early: nothing is agreed on, and nobody waits.
        job = self.job(3, self.program("verified"), "only", via="native", env={**env, "PAPAYA_OUTPUT": str(
            self.scratch / "only")}, timeout=20)
        self.check_right(job, 3, quiet=False)
        row, = job.report()["wrong_results"]
        self.assertEqual((row["name"], row["dropped"]), ("MPI_Bcast", False))
        self.assertEqual(len([line for line in job.said() if "No barrier, allreduce or the like" in line]), 1, job.err)

    @quick
    @time_limit(90)
    def test_errors(self):
        """Wrong arguments: the same error classes, from the same handlers, as natively."""
        native = self.job(2, self.program("errors"), via="native")
        self.assertEqual(native.code, 0)
        expected = sorted(native.out.splitlines())
        self.assertGreater(len(expected), 100)
        self.need_papaya()
        for env in ({"PAPAYA_ALLREDUCE": "native"}, {}, LEADER):
            for way in ("run", "preload"):
                job = self.job(2, self.program("errors"), via=way, env=env)
                self.assertEqual(job.code, native.code)
                self.assertEqual(sorted(job.out.splitlines()), expected)
                # A count below zero is not taken for a large one.
                self.assertLess(sum(row["bytes"] for row in job.report()["collectives"]), 1 << 20)
