"""Every language and binding: results, and each call counted once."""

import os

from harness import HERE, LEADER, Preload
from marks import needs, quick


class Languages(Preload):
    @quick
    def test_c_blocking(self):
        self.check_program(2, self.program("calls"), "blocking")
        for ranks in (1, 3, 4):
            job = self.job(ranks, self.program("calls"), "blocking", env=LEADER)
            self.check_right(job, ranks)
            self.check_counts(job)

    @quick
    def test_c_nonblocking(self):
        self.check_program(3, self.program("calls"), "nonblocking", ways=("run",))

    @needs("large_counts")
    def test_c_large(self):
        self.check_program(3, self.program("calls"), "large", ways=("run",))

    @needs("persistent_collectives")
    def test_c_persistent(self):
        self.check_program(3, self.program("calls"), "persistent", ways=("run",))

    def fortran(self, binding):
        path = self.program(f"fortran_{binding}")
        if not os.path.exists(path):
            self.skipTest(f"no Fortran compiler for {self.mpi} when this was configured")
        self.check_program(3, path)

    def test_fortran_mpifh(self):
        self.fortran("mpifh")

    def test_fortran_use_mpi(self):
        self.fortran("usempi")

    @quick
    def test_fortran_f08(self):
        self.fortran("f08")

    def test_mpi4py(self):
        self.check_program(3, self.python(), HERE / "calls.py")

    def test_plugin(self):
        self.check_program(2, self.build / "tests/preload/plugin_host", self.build / f"tests/preload/libplugin-{self.mpi}.so")

    @needs("mpi4")
    def test_sessions(self):
        self.check_right(self.job(2, self.program("lifecycle"), "session", via="native"), 2)
        self.need_papaya()
        for way in ("run", "preload"):
            self.check_right(self.job(2, self.program("lifecycle"), "session", via=way, env=LEADER), 2)
