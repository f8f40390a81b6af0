"""ABIs: the standard's over the MPI that is here, and layers that pass calls on to an MPI."""

from harness import LEADER, Preload
from marks import quick, time_limit


class Abi(Preload):
    def of_abi(self, name):
        return str(self.build / "tests" / "abi" / f"{name}-{self.mpi}")

    def served(self, job):
        """The calls of the report and what served them: of MPI_Allreduce how many each. (From which call on the others are
        replaced depends on when memory was ready.)"""
        report = job.report()
        return (sorted((row["name"], row["calls"], row["bytes"]) for row in report["collectives"]),
                sorted({(row["collective"], row["algorithm"], row["reason"]) for row in report["algorithms"]}),
                job.allreduce_algorithms())

    @quick
    def test_standard_abi(self):
        """A program of the standard ABI: as many calls, served alike, as of one that is built with the MPI beneath."""
        self.check_right(self.job(3, self.of_abi("abi_calls"), via="native"), 3)
        self.need_papaya()
        for program, *words in (("calls", "blocking"), ("calls", "nonblocking"), ("callbacks", "handler"),
                                ("callbacks", "attribute", "free")):
            own = self.job(3, self.program(program), *words, env=LEADER)
            job = self.job(3, self.of_abi(f"abi_{program}"), *words, env=LEADER)
            self.check_right(job, 3, quiet=False)
            self.assertEqual(job.complaints(), own.complaints())
            self.check_counts(job)
            self.assertEqual(self.served(job), self.served(own), program)
        if self.mpi == "mpich":
            job = self.job(3, self.of_abi("abi_sessions"), "all", env=LEADER)
            self.check_right(job, 3)
            self.check_counts(job)
            self.check_leader(job)
        native = self.job(2, self.of_abi("abi_errors"), via="native")
        job = self.job(2, self.of_abi("abi_errors"), env=LEADER)
        self.assertEqual((job.code, sorted(job.out.splitlines())), (native.code, sorted(native.out.splitlines())))
        if native.code == 0:  # MPICH 5.0.2 aborts
            self.check_leader(job)
        said = self.papaya("doctor", self.of_abi("abi_calls"), code=(0, 1))
        self.assertIn("libpapaya-abi.so", said)

    @quick
    @time_limit(30)
    def test_translators(self):
        """wi4mpi's calls are those of the MPI that the program was built with; the others have an ABI of their own."""
        for name in ("wi4mpi", "MPItrampoline", "Mukautuva"):
            program = self.of_abi(f"through_{name}")
            self.check_right(self.job(2, program, 50, via="native"), 2)
            self.need_papaya()
            job = self.job(2, program, 50, env=LEADER)
            self.check_right(job, 2, quiet=name == "wi4mpi")
            if name == "wi4mpi":
                self.check_counts(job)
                self.check_leader(job)
            else:
                self.assertEqual(len(job.said()), 1, job.said())
                self.assertIn(f"{name} passes", job.said()[0])
                self.assertFalse(job.folder.exists())
            said = self.papaya("doctor", program, code=(0, 1))
            self.assertIn(f"{name} passes the program's calls on", said)
