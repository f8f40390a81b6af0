"""Between nodes: MPI's messages and UCX."""

import shutil

from harness import MEASURES_MEMORY, Preload
from marks import quick, time_limit


class Transports(Preload):
    @time_limit(120)
    def test_across_nodes(self):
        """Ranks of this machine as if on two nodes: progress, communicators by the thousand, freed in any order."""
        jobs = [([self.program("progress"), way], 3) for way in ("receive", "send", "pair")]
        jobs += [([self.program("comm_churn")], 2), ([self.program("callbacks"), "crosswise"], 2)]
        for words, ranks in jobs:
            if self.mpi == "mpich" and ranks > 2:
                continue  # a flush waits for a target whose core another rank holds, spinning
            for name, _ in self.variants("allreduce", "across"):
                env = {"PAPAYA_NODE_SIZE": "1", "PAPAYA_ALLREDUCE": name, **MEASURES_MEMORY}
                job = self.job(ranks, *words, env=env, timeout=40)
                self.check_right(job, ranks, quiet=False)
                if not self.native_only:
                    self.assertGreater(job.allreduce_algorithms().get(name, 0), 0)
        self.need_papaya()

    @time_limit(120)
    def test_transport_ucx(self):
        """UCX between nodes: right results, and nothing left behind in the process, its communicators or its job."""
        if self.native_only or not (self.build / "libpapaya-ucx.so").exists():
            self.skipTest("there is no libpapaya-ucx.so: built without UCX, or native only")
        across = {"PAPAYA_NODE_SIZE": "1", "PAPAYA_ALLREDUCE": "ring", "UCX_WARN_UNUSED_ENV_VARS": "y",
                  "OMPI_MCA_pml": None}  # Open MPI looks at UCX too, in the same process
        ucx = {**across, "PAPAYA_TRANSPORT": "ucx"}
        seen = []
        for env in ({**across, "PAPAYA_TRANSPORT": "mpi"}, ucx):
            job = self.job(2, self.program("traces"), env=env)
            self.check_right(job, 2)
            lines = [line for line in job.out.splitlines() if not line.startswith("counts")]
            self.assertEqual(lines.pop(), f"ucx {1 if env is ucx else 0}", job.out)
            seen.append(lines)
        self.assertEqual(seen[0], seen[1], "signal handlers and variables")
        for words in ([self.program("progress"), "receive"], [self.program("progress"), "send"], [self.program("progress"), "pair"],
                      [self.program("callbacks"), "crosswise"]):
            ranks = 3 if "progress" in words[0] else 2
            self.check_right(self.job(ranks, *words, env=ucx, timeout=40), ranks, quiet=False)
        job = self.job(2, self.program("comm_churn"), 600, env={**ucx, **MEASURES_MEMORY}, timeout=40)
        self.check_right(job, 2, quiet=False)
        for ending in ("exit", "kill"):
            native = self.job(2, self.program("loop"), 200, ending, via="native")
            for tls in ("all", "tcp,self"):
                job = self.job(2, self.program("loop"), 200, ending, env={**ucx, "UCX_TLS": tls}, timeout=20)
                self.check_died(job.code)
                self.assertLess(job.seconds, native.seconds + 8)

    def test_transport_links_refused(self):
        """UCX reaches a neighbour but not everybody: blocking and nonblocking calls go to MPI, whenever that is found out."""
        if self.native_only or not (self.build / "libpapaya-ucx.so").exists():
            self.skipTest("there is no libpapaya-ucx.so: built without UCX, or native only")
        missing = "no transport between the nodes is available"
        for when in ("now", "later"):
            env = {"PAPAYA_TRANSPORT": "ucx", "PAPAYA_ALLREDUCE": "ring", "REFUSE_RANK": "1", "REFUSE_WHEN": when,
                   "LD_PRELOAD": str(self.build / "tests" / "preload" / "librefused_links.so")}
            calls = self.nonblocking(3, "results", 1, env, quiet=False)
            self.assertGreater(calls[missing], 0)
            # Of two ranks, which are neighbours, calls are replaced all the same.
            self.assertGreater(calls["ring"] + calls["notified_bcast"], 0)
            job = self.job(3, self.program("loop"), 20, "end", env={**env, "PAPAYA_NODE_SIZE": "1"})
            self.assertEqual(job.code, 0, job.err)
            self.assertEqual([line for line in job.complaints() if missing in line], job.complaints())
            self.assertEqual(len(job.complaints()), 1)
            reasons = {row["reason"] for row in job.report()["algorithms"] if row["collective"] == "MPI_Allreduce"}
            self.assertIn(missing, reasons)

    @quick
    def test_transport_missing(self):
        """Without the plugin: one sentence, MPI's operations, and the job goes on."""
        self.need_papaya()
        for name in ("libpapaya.so", f"libpapaya-{self.mpi}.so"):
            shutil.copy(self.build / name, self.scratch)
        folder = self.scratch / "out"
        job = self.job(2, self.program("traces"), via="native", env={
            "LD_PRELOAD": str(self.scratch / "libpapaya.so"), "PAPAYA_OUTPUT": str(folder), "PAPAYA_NODE_SIZE": "1",
            "PAPAYA_ALLREDUCE": "ring", "PAPAYA_TRANSPORT": "ucx"})
        self.check_right(job, 2, quiet=False)
        self.assertEqual(len(job.complaints()), 1, job.err)
        self.assertIn("there is no libpapaya-ucx.so in", job.complaints()[0])
        self.assertEqual(set(job.allreduce_algorithms()), {"ring"})
