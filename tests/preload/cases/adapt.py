"""Online selection, PAPAYA_ADAPT."""

import json
import re
import tempfile

from harness import Preload
from marks import quick, time_limit, timed


class Adapt(Preload):
    @quick
    @time_limit(60)
    @timed
    def test_adapt(self):
        """Trials all the time, on several communicators, with late ranks and calls that fail on one: results stay right."""
        for ranks, seed in ((3, 1), (2, 2)):
            program = (self.program("adapt"), 300, seed)
            self.check_right(self.job(ranks, *program, via="native"), ranks)
            self.need_papaya()
            job = self.job(ranks, *program, env={"PAPAYA_ADAPT": "100%", "PAPAYA_LOG": "info"})
            self.check_right(job, ranks, quiet=False)
            ended = re.findall(r"MPI_\w+(?: of up to \d+ bytes)? on a communicator of \d+ ranks: (\w+) from call \d+ on \(trial", job.err)
            self.assertGreater(len(ended), 5, job.err)
            reasons = {row["reason"] for row in job.report()["algorithms"]}
            self.assertIn("MPI's turn before or in a trial of the algorithms", reasons)
            # The report has what was said while it ran: the last trial of each class of calls.
            trials = job.report()["trials"]
            self.assertGreater(sum(row["trials"] for row in trials), 5)
            for row in (row for row in trials if row["trials"] > 0):
                self.assertIn("native", [one["algorithm"] for one in row["tried"]])
                self.assertIn(row["algorithm"], [one["algorithm"] for one in row["tried"] if one["state"] == "kept"])
                self.assertLessEqual(len(row["last_changes"]), row["change_count"])
            self.assertIn("\nTrials (PAPAYA_ADAPT", (job.folder / "report.txt").read_text())

    @time_limit(60)
    @timed
    def test_adapt_across_nodes(self):
        """The same where ranks are on several nodes: algorithms over the wire are tried, and results stay right."""
        self.need_papaya()
        for ranks, nodes in ((4, 2), (3, 3)) if self.mpi == "openmpi" else ((2, 2),):
            program = (self.program("adapt"), 200, 3)
            job = self.job(ranks, *program, env={"PAPAYA_ADAPT": "100%", "PAPAYA_NODE_SIZE": str(ranks // nodes)})
            self.check_right(job, ranks)
            report = job.report()
            self.assertEqual(report["nodes"], nodes)
            measured = {one["algorithm"] for row in report["trials"] for one in row["tried"] if one["calls_measured"] > 0}
            self.assertIn("native", measured)
            self.assertTrue(measured & {"dissemination", "hierarchical_rabenseifner", "hierarchical_barrier"}, report["trials"])
        # What the candidates go by.
        for share in ("1%", "off"):
            job = self.job(2, self.program("loop"), 5, env={"PAPAYA_ADAPT": share, "PAPAYA_NODE_SIZE": "1", "PAPAYA_LOG": "info"})
            self.check_right(job, 2, quiet=False)
            self.assertEqual("a message between two nodes takes " in job.err, share != "off", job.err)

    @time_limit(90)
    @timed
    def test_adapt_across_nodes_by_default(self):
        """What algorithms across nodes need is made ready once a trial may pay for it, and not where threads may call at once; the environment stays."""
        self.need_papaya()
        ranks = 4 if self.mpi == "openmpi" else 2
        for words in ((6, 3000), (0, 1000), (6, 1000, "multiple")):
            job = self.job(ranks, self.program("wire_later"), *words, env={"PAPAYA_LOG": "info", "PAPAYA_NODE_SIZE": "1"})
            self.check_right(job, ranks, quiet=False)
            self.check_counts(job)
            self.assertNotIn("between nodes\n", job.err.split("records go to")[0], job.err)
            is_long_enough = words == (6, 3000)
            self.assertEqual(job.err.count("a message between two nodes takes "), 1 if is_long_enough else 0, job.err)
            measured = {(row["name"], one["algorithm"]) for row in job.report()["trials"] for one in row["tried"] if one["calls_measured"] > 0}
            names = {name for name, algorithm in measured if algorithm != "native"}
            if is_long_enough:
                self.assertTrue(names, job.err)
                self.assertNotIn("MPI_Allreduce", names)  # of floating-point numbers
            else:
                self.assertEqual(names, set())

    @time_limit(60)
    @timed
    def test_adapt_across_nodes_rooted(self):
        """Bcasts and reduces across nodes are tried, too: once the ranks meet, and nobody waits whom MPI lets leave early."""
        self.need_papaya()
        for ranks, size in ((4, 2), (3, 1)) if self.mpi == "openmpi" else ((2, 1),):
            job = self.job(ranks, self.program("rooted"), 2000, env={"PAPAYA_ADAPT": "100%", "PAPAYA_NODE_SIZE": str(size)})
            self.check_right(job, ranks)
            report = job.report()
            for call, names in (("MPI_Bcast", {"hierarchical_bcast", "notified_bcast"}), ("MPI_Reduce", {"hierarchical_reduce"})):
                measured = {one["algorithm"] for row in report["trials"] if row["name"] == call for one in row["tried"] if one["calls_measured"] > 0}
                self.assertEqual(measured, names | {"native"}, report["trials"])
                self.assertTrue(any(row["calls"] > 0 for row in report["algorithms"] if row["algorithm"] in names), report["algorithms"])

    @time_limit(60)
    @timed
    def test_adapt_to_arrivals(self):
        """Rules of the tuning file go by the pattern of arrivals, whether or not algorithms are tried, on one node and on several."""
        self.need_papaya()
        for ranks, size, rules in ((3, "0", {"persistent": "arrival_tree", "random": "arrival_leader", "any": "native"}),
                                   (2, "1", {"persistent": "dissemination", "any": "native"})):
            with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
                json.dump({"version": 1, "rules": [{"collective": "allreduce", "algorithm": algorithm, "arrivals": pattern}
                                                   for pattern, algorithm in rules.items()]}, file)
                file.flush()
                env = {"PAPAYA_ADAPT": "off", "PAPAYA_TUNING": file.name, "PAPAYA_LOG": "info", "PAPAYA_NODE_SIZE": size,
                       "PAPAYA_TRANSPORT": "mpi"}
                job = self.job(ranks, self.program("arriving"), *list(rules.values())[:2], env=env)
            self.check_right(job, ranks, quiet=False)
            found = re.findall(r"bytes on a communicator of \d+ ranks: arrivals are (\w+) from call (\d+) on(, rank 1 is the late one)?", job.err)
            self.assertIn(("persistent", True), [(pattern, late != "") for pattern, _, late in found], job.err)
            if "random" in rules:
                self.assertEqual(found[-1][0], "random", job.err)
            report = job.report()
            for algorithm in list(rules.values())[:2]:
                self.assertGreater(sum(row["calls"] for row in report["algorithms"] if row["algorithm"] == algorithm), 50, report["algorithms"])
            last = [(one["pattern"], one["straggler"]) for row in report["trials"] for one in row["last_arrivals"]]
            self.assertTrue(last)
            if len(last) < 4:
                self.assertIn(("persistent", 1), last)
            self.assertNotIn("(trial", job.err)

    @quick
    @time_limit(60)
    def test_adapt_settings(self):
        """Nothing is tried where the user says so or names an algorithm; a wrong value is reported."""
        self.need_papaya()
        for value, complaint in (("off", None), ("ten", "must be off, exact, or a percentage such as 1% or 0.5%")):
            job = self.job(2, self.program("adapt"), 30, 1, env={"PAPAYA_LOG": "info", "PAPAYA_ADAPT": value})
            self.assertEqual(complaint is None, "PAPAYA_ADAPT" not in job.err, job.err)
            if complaint:
                self.assertIn(complaint, job.err)
            else:
                self.assertNotIn("(trial", job.err)
        named = {f"PAPAYA_{name}": "native" for name in ("ALLREDUCE", "REDUCE", "BCAST", "ALLTOALL", "ALLGATHER", "BARRIER")}
        job = self.job(2, self.program("adapt"), 30, 1, env={"PAPAYA_LOG": "info", "PAPAYA_ADAPT": "100%", **named})
        self.assertNotIn("(trial", job.err)

    @time_limit(60)
    @timed
    def test_adapt_exact(self):
        """By default only where no bit of a result depends on who serves, and there with all calls."""
        self.need_papaya()
        for value, rounds in ((None, False), ("5%", True)):
            env = {"PAPAYA_LOG": "info"} if value is None else {"PAPAYA_LOG": "info", "PAPAYA_ADAPT": value}
            job = self.job(2, self.program("exact"), 40000, env=env)
            self.check_right(job, 2, quiet=False)
            self.assertRegex(job.err, r"MPI_Allreduce of up to 4 bytes on a communicator of 2 ranks: \w+ from call \d+ on \(trial 1")
            self.assertEqual(re.search(r"MPI_Allreduce of up to 64 bytes .*\(trial 1", job.err) is not None, rounds, job.err)

    @quick
    @time_limit(60)
    def test_adapt_memory(self):
        """Broadcasts whose candidates find memory on some ranks alone: the ranks go on in the same trial."""
        self.need_papaya()
        with tempfile.NamedTemporaryFile("w", suffix=".json") as rules:
            json.dump({"version": 1, "rules": [{"collective": "bcast", "algorithm": "native"}]}, rules)
            rules.flush()
            for limit in ("512K", "1M"):
                env = {"PAPAYA_ADAPT": "100%", "PAPAYA_TUNING": rules.name, "PAPAYA_SHM_LIMIT": limit,
                       "PAPAYA_ALLREDUCE": "arrival_tree", "PAPAYA_BARRIER": "native"}
                self.check_right(self.job(3, self.program("adapt_full"), 30, env=env), 3, quiet=False)

    @quick
    @time_limit(60)
    @timed
    def test_adapt_without_memory(self):
        """The ranks exchange what they measured through MPI where the allreduce meant for that finds no memory."""
        self.need_papaya()
        job = self.job(2, self.program("adapt"), 400, 1, env={"PAPAYA_ADAPT": "100%", "PAPAYA_SHM_LIMIT": "32K"})
        self.check_right(job, 2, quiet=False)
        # Of 4 KiB, as what is exchanged, among them.
        rows = [row for row in job.report()["algorithms"] if row["collective"] == "MPI_Allreduce" and row["calls"] > 0]
        self.assertEqual({row["algorithm"] for row in rows}, {"native"})
        self.assertIn("PAPAYA_SHM_LIMIT or /dev/shm leaves too little memory", {row["reason"] for row in rows})
        barriers = [row for row in job.report()["trials"] if row["name"] == "MPI_Barrier" and row["trials"] > 0]
        measured = {one["algorithm"] for row in barriers for one in row["tried"] if one["calls_measured"] > 0}
        self.assertEqual(measured, {"native", "arrival_barrier"})

    @time_limit(60)
    @timed
    def test_adapt_keeps_exchange(self):
        """The algorithm by which the ranks exchange what they measured is set up once, though it lost a trial of its own."""
        self.need_papaya()
        job = self.job(2, self.program("tried"), 4096, 20000, env={"PAPAYA_ADAPT": "100%", "PAPAYA_LOG": "debug"})
        self.check_right(job, 2, quiet=False)
        self.assertRegex(job.err, r"MPI_Allreduce of up to 16384 bytes on a communicator of 2 ranks: \w+ from call \d+ on \(trial")
        if not re.search(r": arrival_tree from call \d+ on \(trial", job.err):
            print("arrival_leader was the quickest here")
        self.assertEqual(job.err.count("set-up of arrival_leader for"), 1, job.err)

    @quick
    @time_limit(60)
    def test_freed_due(self):
        """A communicator is freed while a set-up across nodes is due on it, and by some callbacks used meanwhile."""
        ranks = 3 if self.mpi == "openmpi" else 2
        native = self.job(ranks, self.program("freed_due"), 60, via="native", timeout=20)
        self.check_right(native, ranks)
        self.need_papaya()
        for env in ({"PAPAYA_ADAPT": "10%"}, {"PAPAYA_BCAST": "notified_bcast", "PAPAYA_REDUCE": "hierarchical_reduce"}):
            job = self.job(ranks, self.program("freed_due"), 60, env={**env, "PAPAYA_NODE_SIZE": "1"}, timeout=20)
            self.check_right(job, ranks, quiet=False)
            self.check_counts(job)
            if "PAPAYA_BCAST" in env:
                # One sentence each, of a communicator that has been freed; the last one is served.
                self.assertEqual(job.err.count("no barrier, allreduce or the like has set it up yet"), 2, job.err)
                served = {row["algorithm"]: row["calls"] for row in job.report()["algorithms"] if row["algorithm"] != "native"}
                self.assertEqual(set(served), {"notified_bcast", "hierarchical_reduce"})
                # The last communicator's after its first barrier.
                self.assertEqual(set(served.values()), {3 * 60 * ranks})
