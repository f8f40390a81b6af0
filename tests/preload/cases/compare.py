"""papaya compare."""

import json

from harness import Preload
from marks import quick, timed


class Compare(Preload):
    @quick
    @timed
    def test_compare(self):
        """What an algorithm saves shows between runs, and nothing does between a run and itself."""
        self.need_papaya()
        words = [self.build / "examples" / f"imbalanced-{self.mpi}", "--iterations", "60", "--sleep"]
        runs = []
        for choice in ("native", "arrival_leader"):
            job = self.job(2, *words, env={"PAPAYA_ALLREDUCE": choice})
            self.assertEqual(job.code, 0, job.err)
            runs.append(job.folder)
        native, leader = runs
        found = json.loads(self.papaya("compare", "--json", native, leader))
        self.assertEqual({row["name"] for row in found["collectives"]}, {"MPI_Allreduce", "MPI_Barrier"})
        self.assertEqual(sum(row["calls_before"] for row in found["collectives"] if row["name"] == "MPI_Allreduce"), 120)
        self.assertEqual([row["name"] for row in found["settings"]], ["PAPAYA_ALLREDUCE"])
        self.assertIn("arrival_leader 100 %", found["algorithms"][0]["after"])
        for row in found["collectives"] + found["call_sites"]:
            for change in (row["inside"], row["waiting"], row["excess"]):
                self.assertGreater(change["ratio"], 0)
                if change["low"] is not None:
                    self.assertLessEqual(change["low"], change["high"])
                self.assertIn(change["outcome"], ("SAME", "FASTER", "SLOWER", "UNCLEAR"))
                self.assertTrue(change["reason"])
        same = json.loads(self.papaya("compare", "--json", native, native))
        outcomes = {change["outcome"] for row in same["collectives"] for change in (row["inside"], row["waiting"], row["excess"])}
        self.assertLessEqual(outcomes, {"SAME", "UNCLEAR"})
        self.assertTrue(same["verdict"].startswith(("SAME", "UNCLEAR")), same["verdict"])
        several = json.loads(self.papaya("compare", "--json", native, native, "--with", leader, leader))
        self.assertEqual((several["runs_before"], several["runs_after"]), (2, 2))
        self.assertIsNotNone(several["run"]["low"])
        text = self.papaya("compare", native, leader)
        self.assertIn("its 95 % interval", text)
        self.assertRegex(text, r"\b(SAME|FASTER|SLOWER)  .* to .*, (within|all)|\bUNCLEAR  ")
        # An estimate of the same from the native run alone.
        savings = json.loads(self.papaya("report", "--json", native))["savings"]
        self.assertGreater(savings["open_calls"], 100)
        self.assertGreater(savings["no_excess"]["rank_seconds"], 0)
        self.assertIn("arrival_leader", [name for one in savings["candidates"] for name in one["algorithm"].split(", ")])
        # What cannot be compared.
        self.papaya("compare", native, code=2)
        self.papaya("compare", native, self.scratch / "missing", code=2)
        other = self.job(3, *words, env={"PAPAYA_ALLREDUCE": "native"})
        self.assertIn("different numbers of ranks", self.papaya("compare", native, other.folder))
        record = bytearray((leader / "rank-00001.pap").read_bytes())
        record[8] ^= 0xff  # the version
        (leader / "rank-00001.pap").write_bytes(record)
        self.papaya("compare", native, leader, code=(1, 4))
        (leader / "rank-00001.pap").write_bytes(b"nothing")
        self.assertIn("no call in common", self.papaya("compare", native, leader, code=1))
