"""Programs that have sessions, and MPI_Init later, meanwhile or never."""

from harness import LEADER, Preload
from marks import needs, quick

BY_NODES = {"PAPAYA_NODE_SIZE": "2", "PAPAYA_ALLREDUCE": "hierarchical_tree", "PAPAYA_BCAST": "hierarchical_bcast"}
ENDED = "papaya: MPI is started a second time in this process; papaya has served and recorded the first time alone."
NOT_ALL = "papaya: the program's sessions have made no communicator of all ranks in their order, so what they did is not recorded."


# The launcher seems to put each rank on a node of its own, so that they ask each other by messages.
APART = ("env", "OMPI_COMM_WORLD_LOCAL_SIZE=1", "MPI_LOCALNRANKS=1")
BARE_RANK_1 = ("sh", "-c", '[ "$PMI_RANK$OMPI_COMM_WORLD_RANK" = 1 ] && unset LD_PRELOAD; exec "$@"', "sh")


class Sessions(Preload):
    def calls_of(self, mode, env=None, complaints=(), ranks=3):
        """Runs the program, natively first, and returns {communicator: calls} of its report; None: there is none."""
        native = self.job(ranks, self.program("sessions"), mode, via="native")
        if native.code != 0:
            self.skipTest(f"`sessions {mode}` fails natively with this {self.mpi}")
        self.check_right(native, ranks)
        self.need_papaya()
        job = self.job(ranks, self.program("sessions"), mode, env=env)
        self.check_right(job, ranks, quiet=False)
        self.assertEqual(job.complaints(), list(complaints))
        if not (job.folder / "report.json").exists():
            return None
        report = job.report()
        if env is not None:
            used = {row["algorithm"] for row in report["algorithms"]}
            self.assertLessEqual(set(env.values()) - {"2"}, used)
        return {row["name"]: row["calls"] for row in report["communicators"]}

    @quick
    @needs("mpi4")
    def test_sessions_alone(self):
        """All that follows the first communicator of all ranks, to the end of the last session."""
        expected = {"all": 243, "other": 303, "dup of all": 183, "even": 82, "odd": 41}
        for env in (None, LEADER, BY_NODES, {**LEADER, "PAPAYA_IALLREDUCE": "dissemination"}):
            self.assertEqual(self.calls_of("all", env), expected)

    @needs("mpi4")
    def test_sessions_of_one_rank(self):
        self.assertEqual(self.calls_of("all", ranks=1), {"all": 81, "other": 101, "dup of all": 61, "even": 41})

    @needs("mpi4")
    def test_sessions_around_init(self):
        """MPI_Finalize is not the end, as a session is still open."""
        self.assertEqual(self.calls_of("around", LEADER), {"all": 309, "MPI_COMM_WORLD": 183})

    @needs("mpi4")
    def test_sessions_before_init(self):
        """Sessions without a communicator of all ranks begin no job; MPI_Init does."""
        self.assertEqual(self.calls_of("init_first", complaints=[NOT_ALL]), {"MPI_COMM_WORLD": 183})

    @needs("mpi4")
    def test_sessions_of_some_ranks(self):
        self.assertIsNone(self.calls_of("part", complaints=[NOT_ALL]))

    @needs("mpi4")
    def test_sessions_once_more(self):
        """A job has one record, and a sentence says what is not in it."""
        for mode in ("again", "then_init"):
            self.assertEqual(self.calls_of(mode, complaints=[ENDED]), {"communicator of a session": 123})

    @quick
    @needs("mpi4")
    def test_sessions_of_threads(self):
        """Threads make the first communicators of all ranks at once, in another order on each rank."""
        if self.mpi == "openmpi":
            self.skipTest("Open MPI 5.0.7 hangs natively where two threads make communicators from groups at once")
        self.calls_of("threads")
        for words in ((), APART) * 3:
            job = self.job(3, *words, self.program("sessions"), "threads")
            self.check_right(job, 3)
            self.assertEqual({row["name"]: row["calls"] for row in job.report()["communicators"]}, {"one": 120, "two": 120})

    @needs("mpi4")
    def test_sessions_without_a_rank(self):
        """One rank of a program of sessions has no papaya: a sentence, and the job goes on natively."""
        self.calls_of("all")
        for words, absent in ((BARE_RANK_1, "rank 1"), ((*APART, *BARE_RANK_1), "1 rank")):
            job = self.job(3, *words, self.program("sessions"), "all")
            self.check_right(job, 3, quiet=False)
            self.assertEqual(len(job.said()), 1, job.err)
            self.assertRegex(job.said()[0], f"^papaya: {absent} runs without papaya")
            self.assertFalse(job.folder.exists())
