"""Beginning and end of a program, of its communicators and of its threads, and what MPI calls back meanwhile."""

import functools

from harness import LEADER, MEASURES_MEMORY, Preload
from marks import quick, time_limit


class Lifecycle(Preload):
    @quick
    def test_never_initialised(self):
        native = self.job(2, self.program("lifecycle"), "never", via="native")
        self.check_right(native, 2)
        before = self.job(2, self.program("lifecycle"), "before", via="native")
        self.check_died(before.code)
        self.need_papaya()
        for way in ("run", "preload"):
            job = self.job(2, self.program("lifecycle"), "never", via=way)
            self.check_right(job, 2)
            self.assertEqual(job.said(), [])
            self.assertFalse(job.folder.exists())
            job = self.job(2, self.program("lifecycle"), "before", via=way)
            self.check_same_end(job, before)

    @time_limit(90)
    def test_finalize(self):
        native = {}

        def natively(mode):
            native[mode] = self.job(2, self.program("lifecycle"), mode, via="native")

        self.together(*(functools.partial(natively, mode) for mode in ("after", "no_finalize", "at_exit", "thread", "twice")))
        self.check_right(native["at_exit"], 2)
        self.check_right(native["thread"], 2)
        self.need_papaya()

        def ends_well(mode, env):
            job = self.job(2, self.program("lifecycle"), mode, env=env)
            self.check_right(job, 2)
            self.check_counts(job)

        def ends_otherwise(env):
            job = self.job(2, self.program("lifecycle"), "after", env=env)
            self.check_same_end(job, native["after"])
            self.check_counts(job)
            job = self.job(2, self.program("lifecycle"), "no_finalize", env=env)
            # MPICH's launcher now and then takes the end of such a rank for a hangup, and says 1.
            if self.mpi != "mpich" or "Hangup" not in job.err + job.out + native["no_finalize"].err + native["no_finalize"].out:
                self.check_same_end(job, native["no_finalize"])
            self.assertIn("MPI_Allreduce", self.papaya("report", job.folder, code=3))
            job = self.job(2, self.program("lifecycle"), "twice", env=env)
            # Open MPI ends the job here, and its launcher itself now and then crashes doing so: then the code and
            # the output tell nothing.
            if min(job.code, native["twice"].code) < 0:
                return
            self.check_same_end(job, native["twice"])
            self.assertEqual(sorted(job.out.splitlines()), sorted(native["twice"].out.splitlines()))

        self.together(*(functools.partial(ends_well, mode, env) for env in ({}, LEADER) for mode in ("at_exit", "thread")),
                      *(functools.partial(ends_otherwise, env) for env in ({}, LEADER)))

    def test_finalize_alike(self):
        """Ranks sleep while the report is written and are where they were then; an error of MPI_Waitall is MPI's own."""
        self.compare_all(2, *([self.program("lifecycle"), mode] for mode in ("asleep", "processors", "request")))

    @time_limit(90)
    def test_finalize_late(self):
        """MPI_Finalize after main: the library's own exit handlers and destructors may have run before."""
        modes = ("at_exit_first", "at_exit_calls", "destructor")
        self.compare_all(2, *([self.program("lifecycle"), mode] for mode in modes), [self.program("guard")],
                         [self.program("guard"), "calls"])

    @quick
    @time_limit(90)
    def test_callbacks(self):
        self.compare_all(3, [self.program("callbacks"), "jump", "one"], [self.program("callbacks"), "jump", "all"],
                         [self.program("callbacks"), "handler"], [self.program("exceptions")])

    @quick
    def test_attributes(self):
        self.compare_all(3, *([self.program("callbacks"), *words] for words in
                              (("attribute", "free"), ("attribute", "disconnect"), ("by_rank",), ("nested",))))

    @quick
    @time_limit(30)
    def test_communicator_name(self):
        if self.compare(2, [self.program("callbacks"), "name"]):
            self.assertIn("ocean", [row["name"] for row in self.last.report()["communicators"]])
        self.need_papaya()

    def test_signals(self):
        """SIGUSR1 inside MPI_Finalize ends nobody, and the answer to it goes through nobody's link."""
        native = self.job(2, self.program("launched"), via="native")
        self.check_right(native, 2)
        self.need_papaya()
        victim = self.scratch / "victim"
        victim.write_text("precious")
        job = self.job(2, self.program("launched"), "planted", victim, "signal")
        self.check_right(job, 2, quiet=False)
        self.assertEqual(job.out.count("finalized"), 2)
        self.assertIn("asked by SIGUSR1", job.err)
        self.assertNotIn("asked.txt", job.err)
        self.assertEqual(victim.read_text(), "precious")

    @quick
    @time_limit(30)
    def test_descriptors(self):
        """The program closes papaya's descriptors and opens files in their place: these are its own."""
        self.compare_all(2, [self.program("closes")])
        for rank in (0, 1):
            self.assertEqual((self.scratch / f"own.{rank}").read_text(), "before\nafter\n")

    @quick
    def test_dist_graph(self):
        """Papaya makes no nonblocking call on the communicators of the program, and holds none on some ranks only."""
        self.check_right(self.job(4, self.program("dist_graph"), via="native", timeout=20), 4)
        self.need_papaya()
        for env in ({}, {"PAPAYA_IALLREDUCE": "ring"}):
            with self.subTest(**env):
                self.check_right(self.job(4, self.program("dist_graph"), env=env, timeout=20), 4)

    @quick
    @time_limit(120)
    def test_threads(self):
        self.check_program(2, self.program("threads"), ways=("run",))
        job = self.job(3, self.program("threads"), env=LEADER)
        self.check_right(job, 3)
        self.check_counts(job)
        self.check_leader(job)

    @time_limit(120)
    def test_communicators(self):
        # More than MPICH's 2048 contexts; Open MPI takes long to make a communicator where cores are busy.
        self.check_program(2, self.program("comm_churn"), {"openmpi": 500, "mpich": 1200}[self.mpi],
                           env=MEASURES_MEMORY, ways=("run",))
        job = self.job(3, self.program("comm_churn"), 120, env={**LEADER, **MEASURES_MEMORY})
        self.check_right(job, 3)
        self.check_counts(job)
