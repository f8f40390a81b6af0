"""Other tools that take MPI's functions, beside papaya."""

import collections
import re

from harness import LEADER, Preload
from marks import quick, time_limit

NATIVE = {f"PAPAYA_{name}": "native" for name in ("ALLREDUCE", "BCAST", "BARRIER")}
OURS = {**LEADER, "PAPAYA_BCAST": "tree_bcast", "PAPAYA_BARRIER": "dissemination"}
CALLS = ("allreduce", "bcast", "barrier")


class OtherTools(Preload):
    def tool(self, kind):
        return self.build / "tests" / "preload" / f"libtool_{kind}-{self.mpi}.so"

    def seen(self, job):
        """{name of a tool: {function: calls that it saw on all ranks}}"""
        found = collections.defaultdict(collections.Counter)
        for name, counts in re.findall(r"^(\w+) \d+ (init=.*)$", job.out, re.MULTILINE):
            found[name].update({key: int(value) for key, value in (word.split("=") for word in counts.split())})
        return found

    def run_with(self, preloads, settings, program="launched"):
        job = self.job(2, "env", f"LD_PRELOAD={':'.join(map(str, preloads))}", self.program(program), env=settings, via="")
        self.check_right(job, 2)
        made = {name.removeprefix("MPI_").lower(): calls for name, calls in job.counts().items()}
        return job, self.seen(job), made

    @quick
    @time_limit(60)
    def test_other_tools(self):
        """Preloaded before papaya a tool sees each call; behind it each that MPI serves; papaya sees all in either case."""
        self.need_papaya()
        papaya = self.build / "libpapaya.so"
        for kind in ("pmpi", "next", "symbolic"):
            job, seen, made = self.run_with([self.tool(kind), papaya], OURS)
            self.check_counts(job)
            self.check_leader(job)
            self.assertEqual({name: seen[kind][name] for name in CALLS}, made, f"{kind} in front")
            self.assertEqual((seen[kind]["init"], seen[kind]["send"]), (2, 1))
            job, seen, made = self.run_with([papaya, self.tool(kind)], NATIVE)
            self.check_counts(job)
            self.assertEqual({name: seen[kind][name] for name in CALLS}, made, f"{kind} behind")
            self.assertEqual((seen[kind]["init"], seen[kind]["send"]), (2, 1))
        # What papaya serves itself does not reach a tool behind it, and nothing of what it calls for that does.
        job, seen, made = self.run_with([papaya, self.tool("pmpi")], OURS)
        self.check_counts(job)
        served = {name: calls - seen["pmpi"][name] for name, calls in made.items()}
        algorithms = collections.Counter()
        for row in job.report()["algorithms"]:
            if row["algorithm"] != "native":
                algorithms[row["collective"].lower().removeprefix("mpi_")] += row["calls"]
        self.assertEqual(served, {name: algorithms[name] for name in CALLS})
        self.assertGreater(served["allreduce"], 0)
        # Around it from both sides; linked into the program; where papaya is told to stay out.
        job, seen, made = self.run_with([self.tool("symbolic"), papaya, self.tool("next")], NATIVE)
        self.check_counts(job)
        for kind in ("symbolic", "next"):
            self.assertEqual({name: seen[kind][name] for name in CALLS}, made, kind)
        job, seen, made = self.run_with([papaya], OURS, program="tooled")
        self.check_counts(job)
        self.check_leader(job)
        self.assertEqual({name: seen["linked"][name] for name in CALLS}, made)
        for order in ([papaya, self.tool("pmpi")], [self.tool("pmpi"), papaya]):
            job, seen, made = self.run_with(order, {"PAPAYA_DISABLE": "1"})
            self.assertEqual({name: seen["pmpi"][name] for name in CALLS}, made)
            self.assertFalse(job.folder.exists())

    @quick
    @time_limit(30)
    def test_past_papaya(self):
        """What no preloaded library sees: a program that calls PMPI_Init, which is said, and a plugin opened with RTLD_DEEPBIND."""
        self.need_papaya()
        job = self.job(2, self.program("launched"), "hidden")
        self.check_right(job, 2, quiet=False)
        self.assertRegex(job.err, r"(?m)^papaya: rank 0: .*/launched-\w+ calls PMPI_Init where other programs call MPI_Init")
        self.assertFalse(job.folder.exists())
        plugin = self.build / "tests" / "preload" / f"libplugin-{self.mpi}.so"
        job = self.job(2, self.build / "tests/preload/plugin_host", plugin, "deepbind")
        self.check_right(job, 2)
        self.assertFalse(job.folder.exists())
