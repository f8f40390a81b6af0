"""Where the time of each rank goes, in all functions of MPI's."""

import contextlib
import json
import os
import re
import signal
import struct
import subprocess
import time

from harness import Preload
from marks import quick, timed


class Times(Preload):
    def check_times(self, case, ranks, functions):
        """A run of planted, whose rank 1 computes 2 ms before each of 100 calls. `functions`: how often it calls what."""
        job = self.job(ranks, self.program("planted"), case, 100)
        self.assertEqual(job.code, 0, job.err)
        report = job.report()
        self.assertEqual({function["name"]: function["calls"] for function in report["functions"]}, functions)
        times = {rank["rank"]: rank["time"] for rank in report["late_ranks"]}
        self.assertEqual(sorted(times), list(range(ranks)))
        for parts in times.values():
            self.assertAlmostEqual(sum(parts.values()), report["run_seconds"], delta=1e-6)
        self.assertGreaterEqual(times[1]["computing_seconds"], 0.2)
        self.assertGreater(report["efficiency"]["parallel"], 0)
        for text in ("Time of each rank", "Parallel efficiency", *functions):
            self.assertIn(text, (job.folder / "report.txt").read_text())
        return report, times

    @quick
    @timed
    def test_planted(self):
        """Time in other functions than blocking collectives: counted once, all of it, for the right rank."""
        self.need_papaya()
        report, times = self.check_times("iallreduce", 2, {"MPI_Wait": 200})
        longer = r"rank 1 (is outside MPI|computes) \d+ ms longer than the median of the others, which "
        self.assertRegex(report["verdict"], longer)
        without_core = [rank["usage"]["core_wait_share"] or 0 for rank in report["late_ranks"]]
        if max(without_core) < 0.1:  # else it is not known that rank 1 sleeps there, nor what else rank 0 waits for
            self.assertRegex(report["verdict"], r"rank 1 is outside MPI \d+ ms longer than .* which wait meanwhile\.")
            self.assertIn("Look at what rank 1 waits for outside MPI before its calls of MPI_Wait: it spends ", " ".join(report["next"]))
        self.assertGreater(times[0]["completion_seconds"], 0.15)  # for rank 1
        self.assertGreater(times[0]["starting_seconds"], 0)
        _, times = self.check_times("comm_dup", 2, {"MPI_Comm_dup": 200, "MPI_Comm_free": 200})
        self.assertGreater(times[0]["management_seconds"], 0.15)
        _, times = self.check_times("fence", 2, {"MPI_Win_create": 2, "MPI_Win_fence": 200, "MPI_Win_free": 2})
        self.assertGreater(times[0]["one_sided_seconds"], 0.15)
        _, times = self.check_times("ring", 2, {"MPI_Sendrecv": 200})
        self.assertGreater(times[0]["point_to_point_seconds"], 0.15)
        report, times = self.check_times("victim", 3, {"MPI_Send": 100, "MPI_Recv": 100})
        self.assertGreater(times[2]["point_to_point_seconds"], 0.15)
        blamed = {rank["rank"]: rank["began_waiting_seconds"] for rank in report["late_ranks"]}
        self.assertEqual(max(blamed, key=blamed.get), 1)
        job = self.job(4, self.program("planted"), "innocent", 60)
        waits = {rank["rank"]: rank for rank in job.report()["late_ranks"]}
        self.assertEqual(waits[2]["waited_in_messages_for"], 1)
        self.assertGreater(waits[2]["waited_for_it_seconds"], 0.06)
        self.assertEqual(waits[2]["passed_on_from"], 1)
        self.assertIn("For whom ranks wait most in messages: rank 2 for rank 1 (", (job.folder / "report.txt").read_text())
        report, times = self.check_times("finalize", 2, {})
        self.assertGreater(times[0]["finalize_seconds"], 0.15)
        self.assertIn("In MPI_Finalize the others wait for rank 1, which comes there", report["verdict"])
        # Nothing else than collectives, if that is what is asked for.
        job = self.job(2, self.program("planted"), "ring", 10, env={"PAPAYA_PROFILE": "collectives"})
        report = job.report()
        self.assertEqual((report["functions"], report["efficiency"]), ([], None))
        self.assertEqual({str(rank["time"]) for rank in report["late_ranks"]}, {"None"})

    @timed
    def test_busy_cores(self):
        """Others use the cores of ranks that could have one each: the report says so."""
        self.need_papaya()
        cores = len(os.sched_getaffinity(0))
        if cores < 2:
            self.skipTest("two ranks would share the one core themselves")
        with contextlib.ExitStack() as busy:
            for _ in range(cores):
                loop = busy.enter_context(subprocess.Popen(["sh", "-c", "while :; do :; done"]))
                busy.callback(loop.kill)
            job = self.job(2, self.program("planted"), "iallreduce", 200000, 0)
        self.assertEqual(job.code, 0, job.err)
        self.assertRegex(" ".join((job.folder / "report.txt").read_text().split()),
                         r"Cores \d+ cores for 2 ranks: ranks were ready to run but had no core for \d+ % of the time")

    @quick
    @timed
    def test_grid(self):
        """Communicators for rows and columns: what a column waits for a rank that waited in its row began in the row."""
        self.need_papaya()
        report = self.job(4, self.program("planted"), "grid", 30, 5).report()
        ranks = {rank["rank"]: rank for rank in report["late_ranks"]}
        waiting = report["waiting_seconds"]
        self.assertGreater(waiting, 0.3)  # three ranks wait for 30 x 5 ms
        # MPICH's ranks, which spin, take cores from each other.
        self.assertGreater(ranks[1]["began_waiting_seconds"], (0.9 if self.mpi == "openmpi" else 0.6) * waiting, report["verdict"])
        # Of the waiting in the columns half is for rank 0.
        self.assertGreater(ranks[0]["caused_waiting_seconds"], 0.1)
        self.assertEqual(ranks[0]["passed_on_from"], 1)
        self.assertRegex(report["verdict"], r"^Rank 1 is late: waiting for it costs \d+ % of .*, with what other ranks pass on of it \d+ %")

    @quick
    @timed
    def test_peers(self):
        """For whom a rank waits in messages, in each of MPI's ways to wait for one."""
        self.need_papaya()
        rounds = 4
        for threads in ([], ["multiple"]):
            job = self.job(3, self.program("peers"), rounds, *threads)
            self.assertEqual((job.code, job.complaints()), (0, []), job.err)
            ways = job.out.split()
            record = (job.folder / "rank-00002.pap").read_bytes()
            intervals, capacity = struct.unpack_from("=QQ", record, 6872)
            named = {way: set() for way in ways}
            for event in range(rounds * len(ways)):
                waited_for = struct.unpack_from("=I", record, intervals + event % capacity * 32 + 28)[0] & 0xffffff
                named[ways[event % len(ways)]].add(waited_for - 1)
            # Where ranks share cores rank 0 may be late for once, too.
            unknown = {"freed", "generalized", "switched", *(["Waitall", "Startall"] if threads else [])}
            self.assertEqual({way for way in ways if 1 not in named[way]}, unknown, named)
            self.assertEqual(named["freed"], {-1})
            self.assertEqual(named["switched"], {-1})  # not the rank that its handle was for before

    @quick
    @timed
    def test_polls(self):
        """Polls in quick succession are counted one by one, though few are timed, and are what the rank's time goes into."""
        self.need_papaya()
        job = self.job(2, self.program("polls"), 10)
        self.assertEqual((job.code, job.complaints()), (0, []), job.err)
        tests, probes = (int(word) for word in job.out.split())
        report = job.report()
        functions = {function["name"]: function for function in report["functions"]}
        self.assertEqual((functions["MPI_Test"]["calls"], functions["MPI_Iprobe"]["calls"]), (tests, probes))
        parts = next(rank["time"] for rank in report["late_ranks"] if rank["rank"] == 0)
        self.assertAlmostEqual(sum(parts.values()), report["run_seconds"], delta=1e-6)
        polling = functions["MPI_Test"]["seconds"] + functions["MPI_Iprobe"]["seconds"]
        self.assertGreater(polling, 0.05)
        self.assertLess(polling, report["run_seconds"])

    @quick
    @timed
    def test_ranks_ahead(self):
        """A root 2 ms ahead of its receivers, and ranks 2 ms ahead of their root: nobody waits, so that is no imbalance."""
        self.need_papaya()
        job = self.job(2, self.program("planted"), "ahead", 100)
        self.assertEqual(job.code, 0, job.err)
        report = job.report()
        collectives = {row["name"]: row for row in report["collectives"]}
        self.assertIn("In collective calls nobody waits long", report["verdict"])
        self.assertRegex(report["verdict"], "Rank 1 is outside MPI [0-9]+ ms longer than the median of the ranks, before calls at ")
        for name in ("MPI_Bcast", "MPI_Reduce"):
            self.assertEqual(collectives[name]["imbalance"]["calls"], 100)
            self.assertLess(collectives[name]["imbalance"]["worst_us"], 1000)

    @timed
    def test_waits(self):
        """Rank 1 is 2 ms late at each of 10 calls of five kinds: who waits for it in which, as Scalasca names it."""
        self.need_papaya()
        report = self.job(3, self.program("planted"), "waits", 10).report()
        waits = {one["kind"]: one for one in report["waits"]}
        self.assertEqual({kind: one["scalasca"] for kind, one in waits.items()},
                         {"all": "Wait at N x N", "barrier": "Wait at Barrier", "root": "Late Broadcast",
                          "as_root": "Early Reduce", "lower_ranks": "Early Scan"})
        self.assertAlmostEqual(sum(one["seconds"] for one in waits.values()), report["waiting_seconds"], places=6)
        ranks = {rank["rank"]: rank for rank in report["late_ranks"]}
        for rank in ranks.values():
            self.assertAlmostEqual(sum(rank["waits"].values()), rank["waited_seconds"], places=6)
        for waiter, kinds in ((0, ("all", "barrier", "root", "as_root")), (2, ("all", "barrier", "root", "lower_ranks"))):
            for kind in kinds:
                self.assertGreater(ranks[waiter]["waits"][kind], 0.005, kind)
        self.assertNotIn("lower_ranks", ranks[0]["waits"])
        self.assertNotIn("as_root", ranks[2]["waits"])

    @quick
    @timed
    def test_intercommunicators(self):
        """The ranks of one group wait for those of the other: nobody is called late from the arrivals of one group."""
        self.need_papaya()
        job = self.job(4, self.program("planted"), "inter", 60)
        self.assertEqual(job.code, 0, job.err)
        report = job.report()
        self.assertTrue(report["verdict"].startswith("Arrivals cannot be compared: the blocking collective calls are on "
                                                     "intercommunicators"), report["verdict"])
        self.assertRegex(" ".join(report["notes"]), r"Not compared because they are on intercommunicators, .*: 244 calls")
        self.assertEqual([row["imbalance"] for row in report["collectives"]], [None, None])

    @timed
    def test_efficiencies(self):
        """POP's efficiencies of the run and of each phase, and the same as TALP writes them."""
        self.need_papaya()
        job = self.job(3, self.program("phases"), "recorded")  # all the time
        report = job.report()
        phases = [phase for phase in report["phases"] if phase["calls"] > 0]
        self.assertEqual({phase["name"]: (phase["ranks"], phase["entered"]) for phase in phases},
                         {"": (3, 0), "assembly": (3, 3), "solve": (3, 6)})
        for pop in (report["efficiency"], *(phase["efficiency"] for phase in phases)):
            self.assertTrue(0 < pop["parallel"] <= 1, pop)
            self.assertAlmostEqual(pop["parallel"], pop["load_balance"] * pop["communication"], places=6)
        self.assertIn("Efficiencies of phases and communicators", (job.folder / "report.txt").read_text())
        regions = json.loads(self.papaya("report", "--talp", job.folder))["Application"]
        self.assertLessEqual({"Global", "assembly", "solve"}, set(regions))
        self.assertEqual(regions["Global"]["numMpiRanks"], 3)
        self.assertAlmostEqual(regions["Global"]["elapsedTime"] / 1e9, report["run_seconds"], places=6)
        self.assertAlmostEqual(regions["Global"]["mpiParallelEfficiency"], report["efficiency"]["parallel"], places=6)
        for region in regions.values():
            self.assertAlmostEqual(region["parallelEfficiency"],
                                   region["mpiLoadBalance"] * region["mpiCommunicationEfficiency"], places=6)

    @timed
    def test_top(self):
        """The same while the job runs: who is late, who is stopped, in text, JSON and Prometheus' format."""
        self.need_papaya()
        with self.running(3, self.program("loop"), 0) as (process, _, folder, _):
            self.until(lambda: list(folder.glob("rank-*.pap")))
            looks = [json.loads(line) for line in
                     self.papaya("top", "--json", "-d", "0.4", "-n", "3", folder).splitlines()]
            self.assertEqual([(look["ended"], len(look["ranks"])) for look in looks], [(False, 3)] * 3)
            for before, now in zip(looks, looks[1:]):
                self.assertGreater(now["ranks"][0]["calls"], before["ranks"][0]["calls"])
                rank = now["ranks"][0]
                self.assertEqual(rank["rank"], 1)  # it sleeps before each call
                self.assertLess(rank["relative_score"], 0.75)
                self.assertGreater(rank["caused_seconds"], 0.05)
                self.assertTrue(now["verdict"].startswith("Rank 1 is late"), now["verdict"])
            file = self.scratch / "papaya.prom"
            self.assertEqual(self.papaya("top", "--prometheus", file, "-n", "1", folder), "")
            score = re.search(r'papaya_rank_relative_score\{job="[^"]*",rank="1",node="0"\} (\S+)', file.read_text())
            self.assertLess(float(score[1]), 0.75)
            self.assertIsNone(process.poll())
        with self.running(3, self.program("loop"), 400, "stop") as (_, _, folder, _):
            self.assertTrue(self.until(lambda: "Rank 1 is late now: ranks 0, 2 have waited in MPI_Allreduce" in
                                       self.papaya("top", "-n", "1", folder)))

    @timed
    def test_top_change(self):
        """The moment since which a rank is slower than it was: in JSON and in Prometheus' format."""
        self.need_papaya()
        with self.running(3, self.program("loop"), 0, "slows") as (_, pids, folder, _), contextlib.ExitStack() as ends:
            file = self.scratch / "papaya.prom"

            def top(*words):
                process = subprocess.Popen([str(self.build / "papaya"), "top", "-d", "0.15", *words, str(folder)],
                                           stdout=subprocess.PIPE, text=True)
                ends.enter_context(process)
                ends.callback(process.terminate)
                return process.stdout

            looks = top("--json")
            top("--prometheus", str(file))
            for _ in range(8):  # as it was
                looks.readline()
            slow_since = time.time()
            for pid in pids:
                os.kill(pid, signal.SIGUSR2)
            changed = {}
            while 1 not in changed and time.time() < slow_since + 20:
                look = json.loads(looks.readline())
                changed = {rank["rank"]: rank for rank in look["ranks"] if (rank["changed_unix_seconds"] or 0) > slow_since - 1}
            self.assertIn(1, changed)
            self.assertGreater(changed[1]["change_ratio"], 1.25)
            self.assertLess(max(changed[1]["relative_score"], changed[1]["individual_score"]), 0.75)
            self.assertTrue(self.until(lambda: re.search(
                r'papaya_rank_speed_change_timestamp_seconds\{job="[^"]*",rank="1",node="0"\} \d+', file.read_text())))

    @timed
    def test_top_stacks(self):
        """Where the ranks of a running job are: asked for, or left by the report about a missing rank."""
        self.need_papaya()

        def look(folder, *options):
            return json.loads(self.papaya("top", "--json", "-n", "1", *options, folder))

        def groups(stacks):
            """The ranks, and the names of the functions, of the processes' first threads; or why there are none."""
            return {str(stack["ranks"]): stack["reason"] or [line.split(" (")[0] for line in stack["functions"]]
                    for stack in stacks if stack["first_thread"]}

        quiet = {"PAPAYA_STALL_SECONDS": "0"}
        with self.running(4, self.program("stalled"), "computing", env=quiet) as (process, _, folder, _):
            self.assertTrue(self.until(lambda: list(folder.glob("rank-*.pap")) and
                                       [pending["not_arrived"] for pending in look(folder)["pending"]] == [[[2, 2]]]))
            self.assertEqual(look(folder)["stacks"], [])  # nobody has asked
            self.assertEqual(groups(look(folder, "--stacks")["stacks"]), {
                "[[2, 2]]": ["compute_forces", "main"], "[[0, 1], [3, 3]]": ["MPI_Allreduce", "energy", "main"]})
            self.assertRegex(self.papaya("top", "--stacks", "-n", "1", folder),
                             r"\nCall stacks of the ranks, .*:\n  rank 2:\n    compute_forces \(stalled.c:\d+\)\n")
            self.assertEqual(len(look(folder)["stacks"]), 2)  # those of before
            self.assertEqual(sorted(path.name for path in folder.glob("sta*")), [])
            self.assertIsNone(process.poll())
        with self.running(4, self.program("stalled"), "computing", env={**quiet, "PAPAYA_STACKS": "0"}) as (_, _, folder, _):
            self.assertTrue(self.until(lambda: len(list(folder.glob("rank-*.pap"))) == 4 and look(folder)["pending"]))
            self.assertEqual(groups(look(folder, "--stacks")["stacks"]), {"[[0, 3]]": "gives no stacks (PAPAYA_STACKS)"})
        with self.running(3, self.program("loop"), 400, "stop", env={"PAPAYA_STALL_SECONDS": "1"}) as (_, _, folder, _):
            self.assertTrue(self.until(lambda: "\nWhere the ranks are:\n  ranks 0, 2: MPI_Allreduce < " in
                                       self.papaya("top", "-n", "1", folder)))
            self.assertEqual(groups(look(folder, "--stacks")["stacks"])["[[1, 1]]"], "its process is stopped: no stack")

    def until(self, condition):
        """What it returns, once that is true, or after ten seconds."""
        deadline = time.monotonic() + 10
        while not (result := condition()) and time.monotonic() < deadline:
            time.sleep(0.1)
        return result
