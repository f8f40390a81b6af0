"""Variables, good and bad."""

import json
import os
import re

from harness import COLLECTIVES, LEADER, VARIABLES, Preload
from marks import quick, time_limit


class Settings(Preload):
    @quick
    @time_limit(30)
    def test_info(self):
        self.need_papaya()
        text = self.papaya("info", "--env")
        for name in VARIABLES:
            self.assertRegex(text, rf"(?m)^\s*{name}\b")
        algorithms = [line.split()[0] for line in self.papaya("info", "--algorithms", "allreduce").splitlines() if line]
        self.assertIn("arrival_leader", algorithms)
        self.assertIn("arrival_leader", self.papaya("info"))
        for subcommand in ("run", "report", "trace", "replay", "compare", "doctor", "info"):
            self.papaya(subcommand, "--help")
        self.papaya("nonsense", code=2)
        self.papaya("run", code=2)
        self.papaya("report", self.scratch / "missing", code=(1, 2, 3))
        missing = self.papaya("run", self.scratch / "missing", code=tuple(range(1, 128)))
        self.assertEqual(len(missing.splitlines()), 1, missing)

    @quick
    def test_disabled(self):
        for way in ("run", "preload"):
            job = self.job(2, self.program("calls"), "blocking", via=way, env={**LEADER, "PAPAYA_DISABLE": "1"})
            self.check_right(job, 2)
            self.assertEqual(job.said(), [])
            self.assertFalse(job.folder.exists())
        self.need_papaya()

    @quick
    def test_hints(self):
        """Info keys select the algorithm of one communicator where all its ranks give the same."""
        self.check_right(self.job(3, self.program("hints"), "native", via="native"), 3)
        self.need_papaya()
        job = self.job(3, self.program("hints"), env=LEADER)
        self.check_right(job, 3, quiet=False)
        self.check_counts(job)
        self.assertEqual(job.allreduce_algorithms(),
                         {"arrival_tree": 15, "dissemination": 15, "native": 6, "arrival_leader": 33})
        native = [row["reason"] for row in job.report()["algorithms"]
                  if (row["collective"], row["algorithm"]) == ("MPI_Allreduce", "native")]
        self.assertEqual(native, ["native selected by the user"])
        self.assertEqual(len(job.complaints()), 5, job.err)
        self.assertIn("Info key papaya_allreduc is unknown and without effect; did you mean papaya_allreduce?", job.complaints()[2])
        self.assertIn("papaya_set_algorithm(allreduce, arrival_three): ", job.complaints()[3])
        self.assertIn("papaya_set_algorithm: the selection is a null pointer", job.complaints()[4])
        self.assertIn("papaya_allreduce and its like differ between the ranks", job.complaints()[0])
        self.assertRegex(job.complaints()[1],
                         "papaya_allreduce=arrival_three: no algorithm 'arrival_three'.*did you mean arrival_tree")

    @quick
    def test_selected_too_late(self):
        """Where every selection was native in MPI_Init there is no memory for what the program selects later."""
        self.need_papaya()
        native = {f"PAPAYA_{collective.upper()}": "native" for collective in COLLECTIVES}
        for way, name in (("key", "papaya_allreduce"), ("call", "papaya_set_algorithm")):
            job = self.job(2, self.program("hints"), way, env=native)
            self.check_right(job, 2, quiet=False)
            self.assertEqual(len(job.complaints()), 1, job.err)
            self.assertRegex(job.complaints()[0], f"{name} names arrival_tree, .*: all selections were native in MPI_Init")
            self.assertEqual(job.allreduce_algorithms(), {"native": 10})

    def test_remembered(self):
        """A call like the last one goes where that went, and one unlike it does not."""
        self.check_right(self.job(3, self.program("remembered"), via="native"), 3)
        self.need_papaya()
        for adapt in ("off", "exact"):
            job = self.job(3, self.program("remembered"), env={"PAPAYA_ADAPT": adapt}, timeout=20)
            self.check_right(job, 3)
            self.check_counts(job)
            rows = [row for row in job.report()["algorithms"] if row["collective"] == "MPI_Gather"]
            self.assertEqual(sum(row["calls"] for row in rows), 3 * 220)
            by_algorithm = sum(row["calls"] for row in rows if row["algorithm"] == "arrival_gather")
            if adapt == "off":  # all small ones before the hint, and but for the first few no other
                self.assertEqual([row["calls"] for row in rows if "table" in row["reason"]], [3 * 100])
                self.assertGreater(by_algorithm, 3 * 60)

    def bad_job(self, env):
        job = self.job(2, self.program("loop"), 20, env=env)
        self.check_right(job, 2, quiet=False)
        return job

    @time_limit(120)
    def test_bad_values(self):
        self.need_papaya()
        special = {"PAPAYA_OUTPUT": "/dev/null/x", "PAPAYA_TUNING": str(self.scratch / "missing")}
        tries = [(name, special.get(name, "bad-value!(")) for name in VARIABLES]
        tries += [("PAPAYA_CALLSITES", "17"), ("PAPAYA_NODE_SIZE", "-1"), ("PAPAYA_SHM_LIMIT", "12Q"),
                  ("PAPAYA_ALLREDUCE", "0-4K:arrival_leader,oops"), ("PAPAYA_ALLREDUCE", "arrival_leader:nothing=3")]
        # What reads them knows no MPI: each has half of them.
        for name, value in tries[self.mpi == "mpich"::2]:
            with self.subTest(name=name, value=value):
                job = self.bad_job({name: value})
                lines = [line for line in job.said() if name in line or (value in line and " report in " not in line)]
                if len(lines) != 1 or len(job.complaints()) > 1:
                    self.show(job)
                self.assertEqual(len(lines), 1, "one warning, from rank 0")
                self.assertLessEqual(len(job.complaints()), 1)

    def test_all_bad_values(self):
        env = {name: "bad-value!(" for name in VARIABLES if name not in ("PAPAYA_OUTPUT", "PAPAYA_TUNING")}
        env["PAPAYA_ALREDUCE"] = "native"
        env["PAPAYA_SOMETHING_ELSE"] = "1"
        job = self.bad_job(env)
        self.need_papaya()
        for name in env:
            lines = [line for line in job.said() if re.search(rf"\b{name}[=; ]", line)]
            self.assertEqual(len(lines), 1, f"{name}: {lines}")

        for env, meant in (({"PAPAYA_ALREDUCE": "native"}, "PAPAYA_ALLREDUCE"),
                           ({"PAPAYA_ALLREDUCE": "arrival_laeder"}, "arrival_leader"),
                           ({"PAPAYA_ORDER": "arival"}, "arrival"), ({"PAPAYA_LOG": "inof"}, "info")):
            job = self.bad_job(env)
            self.assertEqual(len(job.complaints()), 1, job.complaints())
            self.assertRegex(job.complaints()[0], rf"\b{meant}\b")

    @quick
    def test_old_names(self):
        """What algorithms and parameters were called before still works, with one warning in the job."""
        rules = self.scratch / "rules"
        rules.write_text("bcast notified_bcast:piece_bytes=4K\nreduce native\n", encoding="utf-8")
        job = self.job(2, self.program("loop"), 20,
                       env={"PAPAYA_ALLREDUCE": "rsa:piece_bytes=64K", "PAPAYA_TUNING": str(rules)})
        self.check_right(job, 2, quiet=False)
        self.need_papaya()
        self.assertGreater(job.allreduce_algorithms().get("rabenseifner", 0), 0)
        self.assertEqual(len(job.complaints()), 1, job.err)
        self.assertIn("write chunk_bytes for piece_bytes, rabenseifner for rsa.", job.complaints()[0])

    def tuning_file(self, *rules):
        file = self.scratch / "tuning.json"
        file.write_text(json.dumps({"version": 1, "rules": rules}, indent=1), encoding="utf-8")
        return str(file)

    @quick
    def test_tuning_file(self):
        """A rule that cannot be used is told once, with its place, and the others are in force."""
        file = self.tuning_file({"collective": "allreduce", "algorithm": "arrival_laeder"},
                                {"collective": "allreduce", "ranks": 2, "nodes": 1, "algorithm": "arrival_tree"})
        job = self.job(2, self.program("loop"), 40, env={"PAPAYA_TUNING": file, "PAPAYA_ADAPT": "off"})
        self.check_right(job, 2, quiet=False)
        self.need_papaya()
        self.assertEqual(len(job.complaints()), 1, job.err)
        self.assertRegex(job.complaints()[0], r"PAPAYA_TUNING, line 6, column 17: .*did you mean arrival_leader\?")
        algorithms = job.allreduce_algorithms()
        self.assertGreater(algorithms.get("arrival_tree", 0), 0, algorithms)
        self.assertEqual(set(algorithms), {"arrival_tree", "native"})

    @time_limit(60)
    def test_tuning_across_nodes(self):
        """One node has more ranks than cores, the other has not: all ranks choose by the former."""
        file = self.tuning_file({"collective": "allreduce", "oversubscribed": True, "algorithm": "dissemination"},
                                {"collective": "allreduce", "algorithm": "native"})
        env = {"PAPAYA_TUNING": file, "PAPAYA_NODE_SIZE": "2", "PAPAYA_TRANSPORT": "mpi"}
        job = self.job(3, self.program("loop"), 40, env=env, wrapper=("taskset", "-c", self.one_core()))
        self.check_right(job, 3)
        self.need_papaya()
        self.assertGreater(job.allreduce_algorithms().get("dissemination", 0), 0)

    @staticmethod
    def one_core():
        return str(min(os.sched_getaffinity(0)))

    @quick
    def test_mixed_environment(self):
        """Ranks whose environments differ: rank 0's holds."""
        for first, second in (("native", "arrival_leader"), ("arrival_leader", "native")):
            runner = [] if self.native_only else [str(self.build / "papaya"), "run"]
            words = ["env", f"PAPAYA_ALLREDUCE={first}", *runner, self.program("calls"), "blocking", ":", "-n", "2", "env",
                     f"PAPAYA_ALLREDUCE={second}", "PAPAYA_ORDER=arrival", *runner, self.program("calls"), "blocking"]
            job = self.job(1, *words, via="")
            self.check_right(job, 3)
            if not self.native_only:
                self.check_counts(job)
                if first == "native":
                    self.assertEqual(set(job.allreduce_algorithms()), {"native"})
        self.need_papaya()
