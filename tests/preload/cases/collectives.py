"""What the replaced collectives promise beyond a right result."""

from harness import LEADER, Preload
from marks import quick, time_limit


class Collectives(Preload):
    @quick
    @time_limit(90)
    def test_alltoallv(self):
        """Replaced whatever the counts, as the selection for MPI_Alltoall says; native where that needs a size."""
        sizes = "the choice depends on sizes that differ from rank to rank"
        forced = {"PAPAYA_ALLTOALL": "arrival_alltoall"}
        for ranks in (2, 5):
            self.check_right(self.job(ranks, self.program("varying"), via="native"), ranks)
            self.need_papaya()
            for env, algorithm, reason in (
                    (forced, "arrival_alltoall", ""),
                    ({**forced, "PAPAYA_VERIFY": "1"}, "arrival_alltoall", ""),
                    ({"PAPAYA_ALLTOALL": "native"}, "native", "native selected by the user"),
                    ({"PAPAYA_ALLTOALL": "0-4K:arrival_alltoall,4K-:native"}, "native", sizes),
                    ({"PAPAYA_ALLTOALL": "4K-:arrival_alltoall"}, "native", sizes)):
                job = self.job(ranks, self.program("varying"), env=env)
                verifies = "PAPAYA_VERIFY" in env
                self.check_right(job, ranks, quiet=not verifies)
                self.check_counts(job)
                if verifies:
                    self.assertEqual(len(job.complaints()), 1, job.complaints())
                    self.assertRegex(job.complaints()[0], r"[1-9]\d* verified results agree")
                rows = [row for row in job.report()["algorithms"] if row["collective"] == "MPI_Alltoallv"]
                self.assertEqual([(row["algorithm"], row["reason"], row["calls"]) for row in rows],
                                 [(algorithm, reason, 40 * ranks)])

    @quick
    @time_limit(90)
    def test_order(self):
        """The same bits in every run, however the ranks wait and arrive."""
        path = self.build / "examples" / f"imbalanced-{self.mpi}"

        def checksum(job):
            self.assertEqual(job.code, 0)
            self.assertEqual(job.complaints(), [])
            return job.out.split("checksum")[1]

        checksum(self.job(4, path, "--iterations", 60, via="native"))
        self.need_papaya()
        seen = set()
        for wait in ("auto", "spin", "yield", "block"):
            job = self.job(4, path, "--iterations", 60, env={**LEADER, "PAPAYA_WAIT": wait})
            seen.add(checksum(job))
            self.check_leader(job)
        self.assertEqual(len(seen), 1, seen)
        checksum(self.job(4, path, "--iterations", 60, env={**LEADER, "PAPAYA_ORDER": "arrival"}))

    def test_device_memory(self):
        devices = {"cuMemcpy": "libcuda.so.1", "hipMemcpy": "libamdhip64.so.6",
                   "zeCommandListAppendMemoryCopy": "libze_loader.so.1"}
        devices = {copy: self.build / "tests/preload" / library for copy, library in devices.items()}
        env = {**LEADER, "PAPAYA_ALLTOALL": "arrival_alltoall", "PAPAYA_BCAST": "arrival_bcast",
               "PAPAYA_REDUCE": "arrival_tree"}
        vetoed = "a rank has its buffer on a device or no memory for a deposit"
        for ranks, library in zip((3, 2, 2), devices.values()):
            with self.subTest(library=library.name):
                if ranks == 3 or self.native_only:
                    self.check_right(self.job(ranks, self.program("device"), library, via="native"), ranks)
                if self.native_only:
                    continue
                job = self.job(ranks, self.program("device"), library, env=env, timeout=20)
                self.check_right(job, ranks)
                self.check_counts(job)
                calls = {(row["collective"], row["algorithm"], row["reason"]): row["calls"]
                         for row in job.report()["algorithms"]}
                self.assertEqual(calls, {("MPI_Allreduce", "arrival_leader", ""): 21 * ranks,
                                         ("MPI_Allreduce", "native", vetoed): 20 * ranks,
                                         ("MPI_Alltoallv", "arrival_alltoall", ""): 10 * ranks,
                                         ("MPI_Alltoallv", "native", vetoed): 10 * ranks})
        self.need_papaya()
        # Copied by the runtime: as it is, or only with a context of CUDA's; at last not at all.
        works, wants_context, has_no_context, answers_in_context, fails = range(5)
        for copy, library in devices.items():
            modes = (wants_context, has_no_context, answers_in_context) if copy == "cuMemcpy" else ()
            for mode in (works, *modes):
                with self.subTest(copy=copy, mode=mode):
                    job = self.job(2, self.program("device"), library, "copied", mode, env=env, timeout=20)
                    self.check_right(job, 2)
                    self.check_counts(job)
                    natively = {row["reason"] for row in job.report()["algorithms"] if row["algorithm"] == "native"}
                    self.assertEqual(natively, {"the communicator has made too few calls so far"})
            with self.subTest(copy=copy, mode=fails):
                job = self.job(2, self.program("device"), library, "copied", fails, env=env, timeout=20)
                self.check_died(job.code)
                said = [line for line in job.said() if copy in line]
                self.assertIn(len(said), (1, 2), job.err)
                self.assertRegex(said[0], f"{copy}.* failed with error [0-9]+.*PAPAYA_DISABLE=1")

    @time_limit(60)
    def test_ahead_blocks(self):
        """The same of a scatter's root and of who brings a gather its block."""
        settings = {"PAPAYA_GATHER": "arrival_gather", "PAPAYA_SCATTER": "arrival_scatter"}
        for ranks, what in ((2, "setup"), (2, "far"), (3, "behind"), (2, "freed")):
            with self.subTest(what=what, ranks=ranks):
                job = self.job(ranks, self.program("ahead"), what, "blocks", env=settings)
                self.check_right(job, ranks)
                if self.native_only or what in ("setup", "freed"):
                    continue
                rows = [row for row in job.report()["algorithms"] if row["collective"] in ("MPI_Gather", "MPI_Scatter")]
                self.assertLessEqual(set(settings.values()), {row["algorithm"] for row in rows})
                if what == "far":
                    ahead = "the root was too far ahead, or had no memory for a deposit"
                    self.assertEqual({row["collective"] for row in rows if row["reason"] == ahead}, {"MPI_Scatter"})

    @time_limit(90)
    def test_ahead(self):
        """Whom MPI lets leave a bcast or a reduce early waits for nobody, whatever is set up or full meanwhile."""
        most = 4 if self.mpi == "openmpi" else 3
        for ranks in (2, most):
            for what in ("setup", "far", "behind"):
                with self.subTest(what=what, ranks=ranks):
                    job = self.job(ranks, self.program("ahead"), what)
                    self.check_right(job, ranks)
                    if self.native_only or what == "setup":
                        continue
                    rows = [row for row in job.report()["algorithms"] if row["collective"] in ("MPI_Bcast", "MPI_Reduce")]
                    self.assertLessEqual({"arrival_bcast", "arrival_leader"}, {row["algorithm"] for row in rows})
                    if what == "far":
                        self.assertIn("the root was too far ahead, or had no memory for a deposit", {row["reason"] for row in rows})
        if self.native_only:
            return
        for mode in ("spin", "yield", "block"):
            with self.subTest(wait=mode):
                self.check_right(self.job(2, self.program("ahead"), "far", env={"PAPAYA_WAIT": mode}), 2)
        # A small window, so that most communicators borrow memory, and there is not enough to borrow.
        settings = {"PAPAYA_SHM_LIMIT": "8M", "PAPAYA_BCAST": "arrival_bcast", "PAPAYA_REDUCE": "arrival_leader"}
        for ranks in (2, 3):
            with self.subTest(what="crowded", ranks=ranks):
                job = self.job(ranks, self.program("ahead"), "crowded", env=settings)
                self.check_right(job, ranks)
                rows = [row for row in job.report()["algorithms"] if row["collective"] in ("MPI_Bcast", "MPI_Reduce")]
                self.assertNotIn("PAPAYA_SHM_LIMIT or /dev/shm leaves too little memory", {row["reason"] for row in rows})
        # What is verified is left as early.
        job = self.job(2, self.program("ahead"), "far", env={"PAPAYA_VERIFY": "3"}, timeout=25)
        self.check_right(job, 2, quiet=False)
        self.assertRegex(job.err, r"papaya: \d+ verified results agree")
        for bcast, reduce, order in (("tree_bcast", "arrival_tree", "rank"), ("arrival_bcast", "arrival_chain", "arrival")):
            settings = {"PAPAYA_BCAST": bcast, "PAPAYA_REDUCE": reduce, "PAPAYA_ORDER": order}
            for what in ("setup", "behind"):
                with self.subTest(what=what, **settings):
                    job = self.job(3, self.program("ahead"), what, env=settings)
                    self.check_right(job, 3)
                    if what == "behind":
                        self.assertLessEqual({bcast, reduce}, {row["algorithm"] for row in job.report()["algorithms"]})
        # Across nodes, where algorithms are set up in calls that all wait in, and what finds no slot goes as messages.
        jobs = [(2, 1, "mpi", "notified_bcast", what) for what in ("setup", "far")]
        jobs += [(most, 2, "mpi", "hierarchical_bcast", what) for what in ("setup", "far", "freed", "behind")]
        if (self.build / "libpapaya-ucx.so").exists():
            jobs += [(2, 1, "ucx", "notified_bcast", "far"), (most, 2, "ucx", "hierarchical_bcast", "behind")]
        jobs = [(*job, "auto") for job in jobs] + [(2, 1, "mpi", "notified_bcast", "far", mode) for mode in ("spin", "yield", "block")]
        jobs.append((2, 0, "auto", "notified_bcast", "far", "auto"))  # a wire in the node's window
        for ranks, node_size, transport, bcast, what, mode in jobs:
            settings = {"PAPAYA_BCAST": bcast, "PAPAYA_REDUCE": "hierarchical_reduce", "PAPAYA_NODE_SIZE": node_size,
                        "PAPAYA_TRANSPORT": transport, "PAPAYA_WAIT": mode}
            with self.subTest(ranks=ranks, what=what, **settings):
                job = self.job(ranks, self.program("ahead"), what, env={name: str(value) for name, value in settings.items()}, timeout=30)
                self.check_right(job, ranks)
                rows = job.report()["algorithms"]
                served = {row["algorithm"]: row["calls"] for row in rows if row["collective"] in ("MPI_Bcast", "MPI_Reduce")
                          and row["algorithm"] != "native"}
                self.assertEqual(set(served), {bcast, "hierarchical_reduce"})
                if what == "far":  # all but the first
                    made = ranks * 2 * 3220
                    self.assertGreaterEqual(min(served.values()), made - ranks if node_size else made - 100)
        # Of 4 to 12 KB, which MPICH's sender on one node waits with, and Open MPI's over TCP does not.
        if self.mpi == "openmpi":
            over_tcp = {"OMPI_MCA_btl": "self,tcp"}
            self.check_right(self.job(2, self.program("ahead"), "large", via="native", env=over_tcp), 2)
            for ranks, node_size, bcast in ((2, "1", "notified_bcast"), (4, "2", "hierarchical_bcast")):
                with self.subTest(what="large", ranks=ranks):
                    job = self.job(ranks, self.program("ahead"), "large", timeout=30,
                                   env={**over_tcp, "PAPAYA_BCAST": bcast, "PAPAYA_REDUCE": "hierarchical_reduce",
                                        "PAPAYA_NODE_SIZE": node_size, "PAPAYA_TRANSPORT": "mpi"})
                    self.check_right(job, ranks)
                    self.assertLessEqual({bcast, "hierarchical_reduce"}, {row["algorithm"] for row in job.report()["algorithms"]})
        for node_size in ("1", "0"):
            with self.subTest(what="started", node_size=node_size):
                job = self.job(2, self.program("ahead"), "started", env={"PAPAYA_IBCAST": "notified_bcast", "PAPAYA_NODE_SIZE": node_size}, timeout=30)
                self.check_right(job, 2)
                rows = [row for row in job.report()["algorithms"] if row["collective"] == "MPI_Ibcast"]
                self.assertEqual([(row["algorithm"], row["calls"]) for row in rows], [("notified_bcast", 2 * 840)])
