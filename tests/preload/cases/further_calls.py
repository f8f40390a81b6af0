"""Calls beyond blocking and nonblocking collectives of all ranks, and communicators that do not come from a parent at once."""

import collections
import csv

from harness import Preload
from marks import needs, quick


class FurtherCalls(Preload):
    def record_of(self, name, ranks):
        """Runs the program and returns its report and {MPI function: {(communicator, number): ranks that arrived}}."""
        self.check_right(self.job(ranks, self.program(name), via="native"), ranks)
        self.need_papaya()
        job = self.job(ranks, self.program(name))
        self.check_right(job, ranks)
        calls = collections.defaultdict(lambda: collections.defaultdict(list))
        for row in csv.DictReader(self.papaya("trace", "--csv", job.folder).splitlines()):
            self.assertGreaterEqual(float(row["exit_us"]), float(row["arrival_us"]))
            calls[row["collective"]][row["communicator"], row["call"]].append(int(row["rank"]))
        return job.report(), calls

    def check_calls(self, calls, expected, ranks):
        """Each with so many identities, under which every rank has it once."""
        self.assertEqual({name: len(calls[name]) for name in expected}, expected)
        for name in expected:
            for identity, arrived in calls[name].items():
                self.assertEqual(sorted(arrived), list(range(ranks)), (name, identity))

    @quick
    def test_neighbourhood(self):
        """Recorded in all forms with their identity, and nobody is said to be waited for."""
        ranks = 4
        report, calls = self.record_of("neighbourhood", ranks)
        kinds = ("allgather", "allgatherv", "alltoall", "alltoallv", "alltoallw")
        has_large = len(calls["MPI_Neighbor_allgather"]) > 4
        has_persistent = "MPI_Neighbor_alltoall_init" in calls
        expected = {f"MPI_Neighbor_{kind}": 1 + has_large for kind in kinds}
        expected["MPI_Neighbor_allgather"] += 3
        expected["MPI_Neighbor_alltoallv"] += 1
        expected |= {f"MPI_Ineighbor_{kind}": 1 for kind in kinds}
        if has_large:
            expected["MPI_Ineighbor_alltoallv"] += 1
        if has_persistent:
            for kind in kinds:
                both = 2 if kind == "alltoall" else 1
                expected |= {f"MPI_Neighbor_{kind}_init": both, f"MPI_Start(Neighbor_{kind})": 2 * both}
        self.assertTrue(has_persistent)
        self.assertTrue(has_large or self.mpi == "openmpi")
        self.check_calls(calls, expected, ranks)
        rows = {row["name"]: row for row in report["collectives"]}
        for name, count in expected.items():
            self.assertEqual(rows[name]["calls"], count * ranks, name)
            self.assertIsNone(rows[name]["imbalance"], name)
            self.assertEqual((rows[name]["waiting_seconds"], rows[name]["waits_for"]), (0, ""), name)
        # On the ring 2 neighbours get 4 bytes each; on the star rank 0 has 3, the others have none.
        self.assertEqual(rows["MPI_Neighbor_alltoallv"]["bytes"], 4 * 2 * ranks * (1 + has_large) + 4 * (ranks - 1))
        self.assertEqual(sum(one["compared_calls"] for one in report["communicators"]), 1)  # the barrier
        for one in report["late_ranks"]:
            self.assertGreater(one["time"]["neighbourhood_seconds"], 0)
            self.assertAlmostEqual(sum(one["time"].values()), report["run_seconds"], delta=1e-6)

    @needs("persistent_collectives")
    def test_persistent_collectives(self):
        """Each start is a call, the same on all ranks whatever the order; those of messages are timed beside them."""
        ranks = 4
        report, calls = self.record_of("persistent", ranks)
        self.check_calls(calls, {"MPI_Allreduce_init": 2, "MPI_Start(Allreduce)": 20, "MPI_Barrier_init": 1,
                                 "MPI_Start(Barrier)": 5, "MPI_Bcast_init": 1, "MPI_Start(Bcast)": 1}, ranks)
        timed = {row["name"]: row["calls"] for row in report["functions"]}
        expected = {"MPI_Start": 4, "MPI_Request_free": 4 * 6}
        if "MPI_Psend_init" in timed:
            expected |= {"MPI_Psend_init": 4, "MPI_Precv_init": 4, "MPI_Pready": 8, "MPI_Pready_range": 8,
                         "MPI_Pready_list": 8, "MPI_Startall": 8}
            expected["MPI_Request_free"] += 4 * 2
            self.assertGreaterEqual(timed["MPI_Parrived"], 8)
        else:
            self.assertEqual(self.mpi, "openmpi")
        self.assertEqual({name: timed.get(name) for name in expected}, expected)
        # Where the program starts them, not in papaya's own code.
        modules = {frame["module"].split("/")[-1] for site in report["call_sites"] if "MPI_Start(" in site["name"]
                   for frame in site["frames"]}
        self.assertEqual(modules, {"persistent-" + self.mpi})

    @quick
    def test_communicator_families(self):
        """Identities are equal on all ranks though these meet the communicators in different orders."""
        ranks = 4
        report, _ = self.record_of("families", ranks)
        expected = {"copy 0": 40, "copy 1": 41, "copy 2": 42, "merged 0": 50, "merged 1": 51}
        if any(row["name"].startswith("session") for row in report["communicators"]) or self.mpi == "mpich":
            expected |= {"session 0": 30, "session 1": 31, "session 0 #2": 30, "session 1 #2": 31}
        rows = {row["name"]: row for row in report["communicators"]}
        # A barrier, which is started, and the blocking calls.
        rooted = 20 + 20
        self.assertEqual({name: (rows[name]["calls"], rows[name]["compared_calls"]) for name in expected},
                         {name: ((1 + calls + rooted) * ranks, calls + rooted) for name, calls in expected.items()})
        # A rank may be alone with its identity, and alone in such a call.
        self.assertEqual({row["algorithm"] for row in report["algorithms"] if row["collective"] in ("MPI_Bcast", "MPI_Reduce")},
                         {"native"})
        between = [row for name, row in rows.items() if name.startswith("between")]
        self.assertEqual([(row["size"], row["calls"], row["compared_calls"]) for row in between], 2 * [(2, 6, 0)])
        replaced = sum(row["calls"] for row in report["algorithms"] if row["algorithm"] == "arrival_leader")
        few = 8  # calls that a communicator makes first
        self.assertEqual(replaced, sum(calls - few for calls in expected.values()) * ranks)
