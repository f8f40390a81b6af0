"""Shared memory: limits, and that nothing grows."""

from harness import COLLECTIVES, LEADER, MEASURES_MEMORY, Preload
from marks import quick, time_limit, timed


class Memory(Preload):
    @quick
    def test_shm_limit(self):
        for limit in ("0", "1", "4K", "1M"):
            job = self.job(3, self.program("calls"), "blocking", env={**LEADER, "PAPAYA_SHM_LIMIT": limit})
            self.check_right(job, 3, quiet=False)
            if self.native_only:
                continue
            self.check_counts(job)
            # One sentence, as long as there is something that it is too little for.
            said = [line for line in job.complaints() if "names arrival_leader" in line and "PAPAYA_SHM_LIMIT" in line]
            self.assertEqual(job.complaints(), said)
            self.assertEqual(len(said), 0 if limit == "1M" else 1)
            if limit in ("0", "1"):
                rows = [row for row in job.report()["algorithms"] if "Allreduce" in row["collective"]]
                self.assertEqual({row["algorithm"] for row in rows}, {"native"})
                self.assertTrue(all(row["reason"] for row in rows), rows)
        self.need_papaya()
        # Between nodes as well. (Open MPI 4.1 hangs at the end of small windows.)
        for transport in ("mpi", "auto"):
            for limit in ("0", "4K", "100K") if self.mpi == "openmpi" else ("4K",):
                env = {"PAPAYA_ALLREDUCE": "ring", "PAPAYA_SHM_LIMIT": limit, "PAPAYA_NODE_SIZE": "1", "PAPAYA_TRANSPORT": transport}
                job = self.job(3 if self.mpi == "openmpi" else 2, self.program("calls"), "blocking", env=env, timeout=30)
                self.check_right(job, 3 if self.mpi == "openmpi" else 2, quiet=False)
                self.assertEqual(len(job.complaints()), 1, job.err)
                self.assertIn("PAPAYA_SHM_LIMIT or /dev/shm leaves too little memory", job.complaints()[0])
        job = self.job(2, self.program("calls"), "blocking",
                       env={"PAPAYA_ALLREDUCE": "ring", "PAPAYA_SHM_LIMIT": "999999G", "PAPAYA_NODE_SIZE": "1"})
        self.check_right(job, 2, quiet=False)
        self.assertRegex(job.complaints()[0], "PAPAYA_SHM_LIMIT=999999G: ranks of other nodes get [0-9]+ MiB")

    @time_limit(90)
    def test_full_shm(self):
        # Open MPI's own buffers go elsewhere, or it would be the one to fail.
        env = {"OMPI_MCA_btl_vader_backing_directory": str(self.scratch)}
        with self.small_file_system("/dev/shm", "64m") as wrapper:
            native = self.job(2, self.program("full_shm"), via="native", env=env, wrapper=wrapper)
            if native.code != 0:
                self.skipTest(f"{self.mpi} itself fails with a full /dev/shm")
            self.need_papaya()
            old_kernel = [*wrapper, str(self.build / "tests/old_kernel")]
            for choice, wrapped in (("auto", wrapper), ("arrival_leader", wrapper), ("arrival_leader", old_kernel)):
                job = self.job(2, self.program("full_shm"), env={**env, "PAPAYA_ALLREDUCE": choice}, wrapper=wrapped)
                if job.code == 77:
                    continue  # what this needs is not permitted here
                self.check_right(job, 2, quiet=False)
                self.check_counts(job)

    def test_own_window(self):
        """A small /dev/shm has room for a window of the program's beside what papaya takes of it."""
        with self.small_file_system("/dev/shm", "64m") as wrapper:
            job = self.job(2, self.build / f"tests/mpi_node_window-{self.mpi}", "small", via="native", wrapper=wrapper)
            self.assertEqual((job.code, job.out), (0, ""))
            native = self.job(2, self.program("own_window"), via="native", wrapper=wrapper)
            self.check_right(native, 2)
            self.need_papaya()
            for choice in ("auto", "arrival_tree"):
                job = self.job(2, self.program("own_window"), env={"PAPAYA_ALLREDUCE": choice}, wrapper=wrapper)
                self.check_right(job, 2, quiet=False)
                self.check_counts(job)
                self.assertGreater(sum(calls for name, calls in job.allreduce_algorithms().items() if name != "native"), 0)

    @quick
    @timed
    def test_deposits(self):
        """Every communicator is served, however many there are and whatever the sizes of their messages."""
        env = {"PAPAYA_ALLREDUCE": "0-65536:arrival_leader,65537-:arrival_tree", "PAPAYA_ALLGATHER": "arrival_allgather",
               "PAPAYA_ALLTOALL": "arrival_alltoall", "PAPAYA_BCAST": "arrival_bcast",
               "PAPAYA_REDUCE": "0-65536:arrival_leader,65537-:arrival_tree"}
        for ranks, words in ((2, (120, 1, 1, 8)), (3, (8, 2, 4, 8))):
            job = self.job(ranks, self.program("deposits"), *words, env=env)
            if job.code == 77:
                continue
            self.check_right(job, ranks)
            self.check_counts(job)
            rows = job.report()["algorithms"]
            rooted = ("MPI_Bcast", "MPI_Reduce")
            natively = [row for row in rows if row["algorithm"] == "native" and row["collective"] not in rooted]
            self.assertEqual(natively, [])
            # All but those that each of three set-ups of a communicator takes, at most four.
            for collective in rooted:
                calls = {kind: sum(row["calls"] for row in rows
                                   if row["collective"] == collective and (row["algorithm"] == "native") == kind)
                         for kind in (False, True)}
                print(collective, "served", calls[False], "native", calls[True])
                self.assertGreater(calls[False], 1.5 * calls[True])

    @time_limit(90)
    def test_flat(self):
        """Memory, descriptors and windows stay where they are over 100,000 calls and 10,000 communicators."""
        names = {collective: [name for name, order in self.variants(collective) if order == "rank"] for collective in COLLECTIVES}
        most = max(len(of_one) for of_one in names.values())
        for which in range(most):
            # A small window, which is soon full of what is not given back.
            env = {"PAPAYA_SHM_LIMIT": "6M", **MEASURES_MEMORY}
            for collective in COLLECTIVES:
                env[f"PAPAYA_{collective.upper()}"] = names[collective][which % len(names[collective])]
            calls, communicators = (100000, 10000) if which in (0, most - 1) else (20000, 2000)
            job = self.job(2, self.program("flat"), calls, communicators, env=env, timeout=85)
            print(job.err)
            self.check_right(job, 2)
            self.assertEqual(sum(job.counts().values()), 2 * (calls + 2 * communicators + 9 * 20 * 2))
            self.need_papaya()
            self.check_counts(job)
            natively = {row["collective"] for row in job.report()["algorithms"] if row["algorithm"] == "native"}
            allowed = {"MPI_Bcast", "MPI_Reduce"}  # these set up without waiting, after some calls
            if not env["PAPAYA_ALLGATHER"].startswith("arrival_allgather"):
                allowed.add("MPI_Allgatherv")
            self.assertLessEqual(natively, allowed)
