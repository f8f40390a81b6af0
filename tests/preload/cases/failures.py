"""Ranks that end or stop where others wait for them."""

import contextlib
import functools
import itertools
import os
import re
import signal
import subprocess
import sys
import time

from harness import COLLECTIVES, HERE, LEADER, Preload
from launchers import clean_environment, processes_with
from marks import quick, time_limit, timed

# Instructions from the beginning of a call, which has 1000 to 2400 of them.
KILLED_AFTER = (100, 450, 1000, 2200)
KILLED_IN_SET_UP = (300, 1500, 4000, 8000, 13000)
# Stacks of stalled.c.
FORCES = r"  rank 2:\n    compute_forces \(stalled.c:\d+\)\n    main \(stalled.c:\d+\)\n"
ENERGY = r"    MPI_Allreduce\n    energy \(stalled.c:\d+\)\n    main \(stalled.c:\d+\)\n"


class Failures(Preload):
    @quick
    def test_abort(self):
        native = self.job(3, self.program("loop"), 200, "abort", via="native")
        self.assertEqual(native.code, 7)
        self.need_papaya()
        for env in ({}, LEADER):
            job = self.job(3, self.program("loop"), 200, "abort", env=env, timeout=25)
            self.assertEqual(job.code, native.code)
            self.assertIn("MPI_Allreduce", self.papaya("report", job.folder, code=3))

    @time_limit(120)
    def test_rank_dies(self):
        def dies(ending):
            native = self.job(3, self.program("loop"), 200, ending, via="native")
            self.check_died(native.code)
            if self.native_only:
                return
            for env in ({}, LEADER):
                # MPICH's launcher gives the code of whichever rank it saw first: the one that died or one it killed.
                job = self.job(3, self.program("loop"), 200, ending, env=env, timeout=20)
                self.check_died(job.code)
                self.assertLess(job.seconds, native.seconds + 8)
                self.assertIn("MPI_Allreduce", self.papaya("report", job.folder, code=3))

        self.together(*(functools.partial(dies, ending) for ending in ("exit", "kill", "segv")))
        self.need_papaya()

    @quick
    @time_limit(90)
    def test_killed(self):
        for env in ({}, LEADER):
            with self.running(3, self.program("loop"), 0, env=env) as (process, pids, folder, _):
                time.sleep(1.5)
                self.assertIsNone(process.poll())
                for pid in pids:
                    with contextlib.suppress(ProcessLookupError):  # the launcher was faster
                        os.kill(pid, signal.SIGKILL)
                process.wait(20)
                self.check_died(process.returncode)
            if self.native_only:
                continue
            self.assertEqual(len(list(folder.glob("rank-*.pap"))), 3)
            text = self.papaya("report", folder, code=3)
            self.assertIn("MPI_Allreduce", text)
        self.need_papaya()

    @time_limit(180)
    def test_killed_inside(self):
        """A rank killed somewhere in a replaced call: the job ends as it does natively, and nothing is left of it."""
        probe = subprocess.run([self.program("killed"), "probe"], env=clean_environment(), stdin=subprocess.DEVNULL,
                               timeout=20, check=False)
        if probe.returncode != -signal.SIGKILL:
            self.skipTest("ptrace is not permitted here")
        # A /dev/shm of the job's own, where that is permitted, so that what is left in it is this job's.
        numbers = itertools.count()

        def own_memory():
            left = self.scratch / f"left{next(numbers)}"
            own = f'mount -t tmpfs none /dev/shm && {{ "$@"; code=$?; ls -A /dev/shm > {left}; exit $code; }}'
            return left, ["unshare", "-m", "sh", "-c", own, "sh"]

        may_mount = subprocess.run([*own_memory()[1], "true"], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                   check=False).returncode == 0

        def job(collective, victim, steps, *calls, **more):
            """The job, and what it left in its /dev/shm."""
            left, wrapper = own_memory() if may_mount else (None, ())
            done = self.job(3, self.program("killed"), collective, victim, steps, *calls, timeout=25, wrapper=wrapper, **more)
            wrong = done.code == 0 or "killed after" not in done.err or re.search("failed:|Segm", done.err)
            if wrong or done.complaints():
                self.show(done)
            self.assertFalse(wrong)
            self.assertEqual(done.complaints(), [])
            print(re.search("killed after.*", done.err)[0])
            marker = f"PAPAYA_OUTPUT={done.folder}\0"  # no other job's, whose number begins with this one's
            for _ in range(50):
                if not processes_with(marker):
                    break
                time.sleep(0.1)
            self.assertEqual(processes_with(marker), [], "a rank lives on")
            return done, left.read_text().split() if left is not None else []

        native, natively_left = job("allreduce", 1, 500, via="native")
        self.need_papaya()
        algorithms = [(collective, *variant) for collective in COLLECTIVES for variant in self.variants(collective)]

        def during_calls(number_of_algorithm, collective, algorithm, order):
            env = {f"PAPAYA_{collective.upper()}": algorithm, "PAPAYA_ORDER": order}
            # The algorithm is the same whichever MPI is below: each has half of the points.
            for number, steps in enumerate(KILLED_AFTER[self.mpi == "mpich"::2]):
                # The root is rank 1 in the first call. Other points for each algorithm.
                done, left = job(collective, (1, 0)[number % 2], steps + 23 * number_of_algorithm, env=env)
                self.assertLess(done.seconds, native.seconds + 8)
                self.assertLessEqual(len(left), len(natively_left), left)
                report = self.papaya("report", done.folder, code=(0, 3))
                self.assertRegex(report, f"(?mi)^.*MPI_{collective} +{algorithm}")
                # Open MPI's second between SIGTERM and SIGKILL: once for each algorithm.
                env["OMPI_MCA_odls_base_sigkill_timeout"] = "0"

        # In the first call, which sets the algorithm up: before, between and after what is agreed on there.
        def during_set_up(number, steps):
            collective = ("bcast", "allreduce")[number % 2]
            env = {f"PAPAYA_{collective.upper()}": f"arrival_{('bcast', 'leader')[number % 2]}",
                   "OMPI_MCA_odls_base_sigkill_timeout": "0"}
            done, _ = job(collective, number % 3, steps, 0, env=env)
            self.assertIn("and 0 whole calls", done.err)
            self.assertLess(done.seconds, native.seconds + 8)

        self.together(*(functools.partial(during_calls, number, *names) for number, names in enumerate(algorithms)))
        self.together(*(functools.partial(during_set_up, *one) for one in enumerate(KILLED_IN_SET_UP)), width=2)

    @quick
    @timed
    def test_rank_stops(self):
        """One rank hangs: after PAPAYA_STALL_SECONDS somebody says which."""
        self.need_papaya()
        with self.running(3, self.program("loop"), 400, "stop", env={**LEADER, "PAPAYA_STALL_SECONDS": "2"}) as job:
            process, _, folder, err = job
            deadline = time.monotonic() + 20
            lines = []
            while not lines and time.monotonic() < deadline and process.poll() is None:
                time.sleep(0.2)
                lines = [line for line in err.read_text().splitlines()
                         if line.startswith("papaya: ") and "Allreduce" in line and re.search(r"\b1\b", line)]
            self.assertTrue(lines, "nobody named the missing rank:\n" + err.read_text())
        self.assertIn("MPI_Allreduce", self.papaya("report", folder, code=3))

    def stalls(self, mode, *, said, file, code=0, **env):
        """What was said and written, and the job, of a job in which somebody does not come."""
        job = self.job(4, self.program("stalled"), mode, env={"PAPAYA_STALL_SECONDS": "2", **env})
        texts = [path.read_text() for path in job.folder.glob(file)]
        if len(texts) != 1 or (code is not None and job.code != code):
            self.show(job)
        self.assertEqual(len(texts), 1)
        if code is not None:
            self.assertEqual(job.code, code)
        self.assertEqual(len(re.findall(said, job.err)), 1, job.err)
        self.assertEqual(job.err.count(texts[0].split("Call stacks of the ranks")[0]), 1, job.err)
        self.assertRegex(job.err, rf"papaya: .*{said}")
        return texts[0], job

    @quick
    @timed
    def test_stalled_python(self):
        """Stacks of Python programs are their own lines, where they compute and where they sleep."""
        self.need_papaya()
        # Debian's mpi4py is for one MPI; MPICH's functions are called by ctypes.
        words = [self.python()] if self.mpi == "openmpi" else [sys.executable]
        self.need_known_python(words[0])
        library = [] if self.mpi == "openmpi" else ["libmpich.so.12"]
        lines = list(enumerate((HERE / "stalled.py").read_text().splitlines(), 1))

        def numbers(pattern):
            return "|".join(str(number) for number, line in lines if re.search(pattern, line))

        def stalled(function, inside, where):
            job = self.job(3, *words, HERE / "stalled.py", function, *library, env={"PAPAYA_STALL_SECONDS": "2"})
            if job.code != 0:
                self.show(job)
            text, = (path.read_text() for path in job.folder.glob("stall-*"))
            module = r"    <module> \(stalled.py:\d+\)\n"
            self.assertRegex(text, rf"  rank 1:\n{inside}    {function} \(stalled.py:({numbers(where)})\)\n" + module)
            self.assertRegex(text, rf"  ranks 0, 2:\n    MPI_Allreduce(?:_c)?\n    .*allreduce \(stalled.py:({numbers('# line that calls MPI')})\)\n"
                             rf"    energy \(stalled.py:{numbers('# line of energy')}\)\n" + module)

        # Loops and lines of the function; where it sleeps, also what it calls.
        self.together(
            functools.partial(stalled, "compute_forces", "", r"while not|for _ in range\(1|# line of compute_forces"),
            functools.partial(stalled, "wait_for_data", r"(?:    .*\n)*", r"while not|# line of wait_for_data"))

    @timed
    def test_stall_unanswered(self):
        """Of a node that is stopped as a whole nothing is claimed, and of the others everything is there."""
        self.need_papaya()
        text, job = self.stalls("computing", said="rank 2 is missing.|ranks 1-2 are missing.", file="stall-*.txt", STOPPED="1",
                                PAPAYA_NODE_SIZE="1", **self.network_files())
        self.assertRegex(text, FORCES)
        self.assertIn("  rank 1: has not answered: no stack.\n", text)
        self.assertIn("  Of ranks that have not answered, what is known may be half a minute old.\n", text)
        self.check_right(job, 4, quiet=False)

    @time_limit(120)
    @timed
    def test_stalls(self):
        """A rank that does not come is named while the job runs, in MPI's collectives and in papaya's; and a SIGUSR1 asks."""
        self.need_papaya()

        def late(settings):
            call = 0 if "COLD" in settings else 5
            text, job = self.stalls(
                "late", said=f"no progress for 2 s in MPI_Allreduce, call {call} on MPI_COMM_WORLD: rank 2 is missing.",
                file=f"stall-MPI_Allreduce-*-{call}.txt", **settings)
            self.assertRegex(
                text, rf"^MPI_Allreduce, call {call} on MPI_COMM_WORLD: 3 of 4 ranks wait, for \d+ s "
                r"\(ranks 0-1, 3, at energy \(stalled.c:\d+\)\)\.")
            self.assertRegex(text, r"\n  Missing: rank 2.\n  rank 2 " + (
                "has called no collective yet" if call == 0 else "last left MPI_Allreduce, call 4 on MPI_COMM_WORLD, "
                r"at energy \(stalled.c:\d+\), \d+ s ago"))
            # It sleeps between its looks for that.
            self.assertRegex(text, r"\n  rank 2:\n(?:    .*\n)*    wait_for_file \(stalled.c:\d+\)\n    main \(stalled.c:\d+\)\n")
            self.check_right(job, 4, quiet=False)

        def computing(settings, stacks, said):
            """Where all ranks are, in the program's own functions. A rank may be stopped before it comes to the call."""
            text, job = self.stalls("computing", said="rank 2 is missing.|ranks 1-2 are missing.", file="stall-*.txt", **settings)
            self.assertRegex(text, r"\nCall stacks of the ranks, .*:\n" + stacks)
            self.assertRegex(job.err, r"\nWhere the ranks are:\n" + said)
            self.check_right(job, 4, quiet=False)  # no signal has come to the program's handlers

        def differ():
            text, job = self.stalls("differ", said=r"no progress for 2 s in MPI_.*, call 0 on forces: the ranks disagree about the collective.",
                                    file="stall-*.txt", code=None)
            self.assertIn("Call 0 on forces: 4 of 4 ranks wait", text)
            self.assertIn("The ranks disagree about the collective: at call 0 on forces, rank 0 called MPI_Allreduce and rank 1 called "
                          "MPI_Barrier.", text)
            self.assertIn("energy() (stalled.c:", self.papaya("report", job.folder, code=3).replace("energy (", "energy() ("))

        def asked():
            text, job = self.stalls("asked", said="asked by SIGUSR1", file="asked.txt", PAPAYA_STALL_SECONDS="0")
            self.assertIn("3 of 4 ranks wait", text)
            self.check_right(job, 4, quiet=False)
            self.assertEqual(list(job.folder.glob("stall-*")), [])

        def claimed(settings):
            """The program's own handler, whenever it comes."""
            job = self.job(2, self.program("stalled"), "claimed", env=settings)
            self.check_right(job, 2)
            self.assertFalse((job.folder / "asked.txt").exists())

        def without_records():
            """A stall in an algorithm of papaya's is reported as well."""
            job = self.job(4, self.program("stalled"), "slow",
                           env={"PAPAYA_STALL_SECONDS": "2", "PAPAYA_ALLREDUCE": "arrival_tree", "PAPAYA_PROFILE": "off"})
            self.check_right(job, 4, quiet=False)
            self.assertRegex(job.err, "call 5 on MPI_COMM_WORLD .*missing: 2")

        def chain():
            job = self.job(3, self.program("stalled"), "chain", env={"PAPAYA_STALL_SECONDS": "2", "PAPAYA_IALLREDUCE": "ring"})
            self.check_right(job, 3)

        def nonblocking(settings, call, whom):
            """An algorithm of papaya's that MPI_Wait waits for: in its set-up, and with one that is there."""
            job = self.job(4, self.program("stalled"), "nonblocking", env={"PAPAYA_STALL_SECONDS": "2", "PAPAYA_IALLREDUCE": "ring", **settings})
            self.check_right(job, 4, quiet=False)
            self.assertRegex(job.err, rf"MPI_Iallreduce, call {call} on MPI_COMM_WORLD \(4 ranks\), cannot go on for \d s: rank 0 waits for {whom}")
            self.assertEqual(job.err.count("cannot go on"), 3)

        self.together(
            *(functools.partial(computing, *planted) for planted in (
                ({}, FORCES + r"  ranks 0-1, 3:\n" + ENERGY,
                 r"  rank 2: compute_forces .*\n  ranks 0-1, 3: MPI_Allreduce < energy .* < main "),
                ({"PAPAYA_NODE_SIZE": "2"}, FORCES + r"  ranks 0-1, 3:\n" + ENERGY, "  rank 2: compute_forces "),
                ({"STOPPED": "1", "PAPAYA_ALLREDUCE": "arrival_leader"},
                 r"  rank 1: its process is stopped: no stack.\n" + FORCES + r"  ranks 0, 3:\n" + ENERGY, "  rank 1: its process is stopped"),
                ({"TAKES_SIGNALS": "1"}, "  ranks 0-3: takes all real-time signals itself: no stack.\n$", ""))),
            *(functools.partial(late, settings) for settings in (
                {}, {"PAPAYA_ALLREDUCE": "arrival_tree"}, {"PAPAYA_ALLREDUCE": "dissemination", "PAPAYA_NODE_SIZE": "2"},
                {"PAPAYA_ALLREDUCE": "arrival_tree", "COLD": "1"},  # while the algorithm is set up
                {"CLOCK_SET": "1"}, {"PAPAYA_NODE_SIZE": "1", **self.network_files()})),
            differ, asked, functools.partial(claimed, {}), functools.partial(claimed, {"LATE_CLAIM": "1"}), without_records,
            chain, functools.partial(nonblocking, {"COLD": "1"}, 0, "ranks that have not arrived"),
            functools.partial(nonblocking, {"PAPAYA_PROFILE": "off"}, 6, r"data of rank \d"))
