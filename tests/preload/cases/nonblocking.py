"""Nonblocking collectives."""

import os
import re

from harness import NONBLOCKING, WAITS, Preload
from marks import quick, time_limit


class Nonblocking(Preload):
    @quick
    @time_limit(120)
    def test_nonblocking(self):
        # MPICH's ranks keep their cores while they wait: few of them, and natively no more than there are cores.
        few = 3 if self.mpi == "openmpi" else 2
        for way in ("results", "waits"):
            self.check_right(self.job(few, self.program("nonblocking"), way, via="native"), few)
        self.need_papaya()
        for ranks, node_size in ((2, 0), (2, 1), (3, 2), (5, 2)) if self.mpi == "openmpi" else ((2, 0), (2, 1), (3, 2)):
            for way in ("results", "waits"):
                calls = self.nonblocking(ranks, way, node_size)
                self.assertGreater(calls["ring"], 0)
                self.assertEqual(way == "results", calls["notified_bcast"] > 0 and calls["dissemination"] > 0)
        for transport in self.transports():
            calls = self.nonblocking(2, "results", 1, {"PAPAYA_TRANSPORT": transport})
            self.assertGreater(calls["ring"], 0)
        for name in ("rabenseifner", "straggler_rsa", "dissemination", "0-1K:dissemination,1K-:native"):
            calls = self.nonblocking(2, "results", 1, {"PAPAYA_IALLREDUCE": name})
            self.assertGreater(calls[re.sub(r".*:(\w+),.*", r"\1", name)], 0)
        # Ranks that find no memory, or no window, run it natively, in the order of the calls.
        calls = self.nonblocking(2, "results", 0, {"PAPAYA_SHM_LIMIT": "64K"})
        self.assertGreater(calls["PAPAYA_SHM_LIMIT or /dev/shm leaves too little memory"], calls["ring"] + calls["notified_bcast"])
        calls = self.nonblocking(2, "waits", 1, {"PAPAYA_SHM_LIMIT": "64K"})
        self.assertGreater(calls["PAPAYA_SHM_LIMIT or /dev/shm leaves too little memory"], calls["ring"])
        calls = self.nonblocking(2, "results", 0, {name: "native" for name in NONBLOCKING})
        self.assertEqual(dict(calls), {})

    @quick
    def test_nonblocking_exact(self):
        """What stays MPI's is the very call of the program."""
        native = self.job(4, self.program("nonblocking"), "exact", via="native")
        self.check_right(native, 4)
        self.need_papaya()
        job = self.job(4, self.program("nonblocking"), "exact", env=NONBLOCKING)
        self.check_right(job, 4)
        self.check_counts(job)
        self.assertEqual(re.findall("thread level .", native.out), re.findall("thread level .", job.out))

    def test_nonblocking_everywhere(self):
        """No start, test or early leaver waits for ranks that are not in MPI; what stays MPI's is the program's very call,
        and moves papaya's operations on nevertheless."""
        ways = "exact local early waits"
        # Before papaya, so that it sees what papaya calls, and behind it what papaya hands on.
        libraries = [self.build / "tests" / "preload" / f"lib{name}-{self.mpi}.so" for name in ("native_calls", "handed_on")]
        counted = ("sh", "-c", 'LD_PRELOAD="$0:$LD_PRELOAD:$1"; export LD_PRELOAD; shift; exec "$@"', *libraries)
        self.check_right(self.job(2, self.program("nonblocking"), *ways.split(), via="native"), 2)
        self.need_papaya()
        for place, env in self.places().items():
            # Those that leave early; what waits in a larger MPI_Bcast waits in MPI's.
            early = {"PAPAYA_BCAST": "0-1K:notified_bcast,1K-:native", "PAPAYA_REDUCE": "native" if place == "within" else "hierarchical_reduce"}
            for wait in WAITS:
                with self.subTest(place=place, wait=wait):
                    calls = self.nonblocking(2, ways, 0, {**env, **early, "PAPAYA_WAIT": wait}, starter=counted)
                    self.assertTrue(calls["ring"] > 0 and calls["notified_bcast"] > 0 and calls["dissemination"] > 0, calls)
                    self.assertEqual(set(calls), {"ring", "notified_bcast", "dissemination"})

    def test_nonblocking_over_tcp(self):
        """UCX moves nothing by itself: a rank that is through must not leave others without what it owes them."""
        if self.native_only or not (self.build / "libpapaya-ucx.so").exists():
            self.skipTest("there is no libpapaya-ucx.so: built without UCX, or native only")
        tcp = {"PAPAYA_TRANSPORT": "ucx", "UCX_TLS": "tcp,self"}
        missing = "no transport between the nodes is available"
        # While some are still connecting to it, a rank that is through with that keeps UCX going. (MPICH goes over TCP
        # too then, and hangs in MPI_Finalize of three ranks, natively too.)
        if self.mpi == "openmpi":
            self.assertEqual(self.nonblocking(3, "results", 1, tcp)[missing], 0)
        # A send that UCX has not let go when the operation is through.
        slow = {**tcp, "SLOW_TURNS": "40", "LD_PRELOAD": str(self.build / "tests" / "preload" / "libslow_links.so")}
        calls = self.nonblocking(2, "leaves", 1, slow)
        self.assertEqual((calls["ring"], calls["notified_bcast"], calls["dissemination"]), (20, 20, 20))

    def test_nonblocking_threads(self):
        native = self.job(2, self.program("nonblocking"), "threads", via="native")
        if native.code == 77:
            self.skipTest(native.out.splitlines()[0])
        self.check_right(native, 2)
        self.need_papaya()
        for ranks, node_size in ((2, 0), (3, 2)):
            self.assertGreater(self.nonblocking(ranks, "threads", node_size)["ring"], 0)

    def test_nonblocking_fortran(self):
        for binding in ("mpifh", "f08"):
            path = self.program(f"fortran_{binding}")
            if not os.path.exists(path):
                self.skipTest(f"no Fortran compiler for {self.mpi} when this was configured")
            job = self.job(3, path, env=NONBLOCKING)
            self.check_right(job, 3)
            self.check_counts(job)
