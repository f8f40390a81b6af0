"""Programs that people run, with each algorithm forced in turn."""

import collections
import re
import shutil
import subprocess

from harness import HERE, LEADER, Preload
from marks import time_limit


class Applications(Preload):
    def application(self, command, name):
        """Where the program is; skips the test if it is not installed for this MPI."""
        path = shutil.which(command)
        if path is None:
            self.skipTest(f"no {name} ({command}) here")
        libraries = subprocess.run(["ldd", path], stdout=subprocess.PIPE, text=True, check=False).stdout
        if {"openmpi": "libmpi.so", "mpich": "libmpich.so"}[self.mpi] not in libraries:
            self.skipTest(f"{name} here is not built for {self.mpi}")
        return path

    def thermo(self, job):
        """LAMMPS's table of results."""
        lines = job.out.splitlines()
        if job.code != 0 or not any(line.startswith("Loop time") for line in lines):
            self.show(job)
        self.assertEqual(job.code, 0)
        begin = next(i for i, line in enumerate(lines) if line.startswith("Step "))
        end = next(i for i, line in enumerate(lines) if line.startswith("Loop time"))
        return lines[begin:end]

    def algorithms(self):
        """{collective: algorithms} of the registry, and those that want PAPAYA_ORDER=arrival."""
        found = {}
        ordered = set()
        for line in self.papaya("info", "--algorithms").split("\nWeakly consistent")[0].splitlines():
            if match := re.match(r"MPI_(\w+)", line):
                collective = match[1]
                found[collective] = []
            elif match := re.match(r"  (\w+): ", line):
                found[collective].append(match[1])
            elif "PAPAYA_ORDER=arrival" in line:
                ordered.add((collective, found[collective][-1]))
        for collective, names in found.items():
            self.assertEqual(self.papaya("info", "--algorithms", collective).split(), ["native", *names])
            self.assertGreater(len(names), 0)
        return found, ordered

    def check_each_algorithm(self, check, *words, inputs=()):
        """The program on 4 ranks with one algorithm of each collective forced at a time; `check(job, folder)` looks at
        its results. Where the program makes calls that an algorithm can serve, it served them."""
        algorithms, ordered = self.algorithms()
        for turn in range(max(len(names) for names in algorithms.values())):
            chosen = {collective: names[turn % len(names)] for collective, names in algorithms.items()}
            env = {f"PAPAYA_{collective.upper()}": name for collective, name in chosen.items()}
            if not ordered.isdisjoint(chosen.items()):
                env["PAPAYA_ORDER"] = "arrival"
            folder = self.scratch / f"run{turn}"
            folder.mkdir()
            for file in inputs:
                shutil.copy(file, folder)
            job = self.job(4, *words, env=env, cwd=folder)
            check(job, folder)
            self.assertEqual(job.complaints(), [])
            served = collections.Counter()
            others = collections.Counter()
            for row in job.report()["algorithms"]:
                collective = row["collective"].replace("MPI_", "")
                if collective not in chosen:
                    continue
                if row["algorithm"] == chosen[collective]:
                    served[collective] += row["calls"]
                else:
                    self.assertEqual(row["algorithm"], "native")
                    # These no algorithm serves, or this one cannot; the others it must.
                    reasons = ("a communicator of one rank", "a call of zero bytes", "larger than the algorithm takes",
                               "a user-defined operation, which the algorithm cannot split")
                    if collective in ("Bcast", "Reduce", "Gather", "Scatter"):  # who may leave early waits for nobody
                        reasons += ("the communicator has made too few calls so far", "the root was too far ahead, or had no memory for a deposit")
                    self.assertIn(row["reason"], reasons, f"{row} with {chosen[collective]} forced")
                    others[collective] += row["calls"]
            print(f"  served {dict(served)}, by MPI {dict(others)}")
            for collective in ("Allreduce", "Barrier"):
                self.assertGreater(served[collective], others[collective], collective)
            self.assertGreater(served["Bcast"], 0)

    @time_limit(120)
    def test_lammps_algorithms(self):
        words = [self.application("lmp", "LAMMPS"), "-in", HERE / "in.melt", "-log", "none"]
        expected = self.thermo(self.job(4, *words, via="native"))
        self.assertEqual(len(expected), 12)
        self.need_papaya()
        self.check_each_algorithm(lambda job, _: self.assertEqual(self.thermo(job), expected), *words)

    @time_limit(120)
    def test_hpcc_algorithms(self):
        """HPC Challenge checks its own results: residuals of HPL and PTRANS, lost updates, the FFT's error."""
        words = [self.application("hpcc", "HPC Challenge")]

        def results(job, folder):
            """Which checks there were, each with its outcome; only figures that every right run has."""
            if job.code != 0 or not (folder / "hpccoutf.txt").exists():
                self.show(job)
            self.assertEqual(job.code, 0)
            text = (folder / "hpccoutf.txt").read_text(errors="replace")
            figures = dict(re.findall(r"(?m)^(\w+)=(\S+)$", text))
            # PTRANS leaves a line out where its clock of processor time has not moved.
            outcomes = re.findall(r"(?i)\b(?:passed|failed)\b", re.sub(r"(?m)^CPU .*", "", text))
            residuals = [float(value) for value in re.findall(r"\*N\)=\s*(\S+)", text)]
            if figures.get("Success") != "1" or "FAILED" in text:
                print(text)
            self.assertEqual(figures["Success"], "1")
            self.assertEqual(len(residuals), 1)
            self.assertLess(residuals[0], 16.0)  # HPL's threshold in hpccinf.txt
            self.assertLess(float(figures["MPIFFT_maxErr"]), 1e-14)
            for name in ("MPIRandomAccess_Errors", "MPIRandomAccess_LCG_Errors", "PTRANS_residual"):
                self.assertEqual(figures[name], "0", name)
            self.assertEqual(set(re.findall(r"Node\(s\) with error (\S+)", text)), {"0"})
            return outcomes, sorted(figures)

        folder = self.scratch / "native"
        folder.mkdir()
        shutil.copy(HERE / "hpccinf.txt", folder)
        expected = results(self.job(4, *words, via="native", cwd=folder), folder)
        self.assertGreater(len(expected[0]), 15)
        self.need_papaya()

        def check(job, folder):
            self.assertEqual(results(job, folder), expected)
            self.assertIn("MPI_Alltoall", [row["name"] for row in job.report()["collectives"]])

        self.check_each_algorithm(check, *words, inputs=[HERE / "hpccinf.txt"])

    @time_limit(120)
    def test_lammps(self):
        words = [self.application("lmp", "LAMMPS"), "-in", HERE / "in.melt", "-log", "none"]
        expected = self.thermo(self.job(4, *words, via="native"))
        self.assertEqual(len(expected), 12)
        self.need_papaya()
        for way in ("run", "preload"):
            for choice in ("native", "auto", "arrival_leader"):
                job = self.job(4, *words, via=way, env={"PAPAYA_ALLREDUCE": choice})
                self.assertEqual(self.thermo(job), expected)
                self.assertEqual(job.complaints(), [])
                report = job.report()
                self.assertEqual(report["ranks"], 4)
                self.assertIn("MPI_Allreduce", [row["name"] for row in report["collectives"]])
                self.assertGreater(sum(row["times_last"] for row in report["late_ranks"]), 0)
                text = self.papaya("report", job.folder)
                self.assertIn("MPI_Allreduce", text)
        self.check_leader(job)

    def test_background(self):
        words = [self.build / "examples" / f"background_coordination-{self.mpi}", "--seconds", "0.3", "--rounds", "1"]
        for way, env in (("native", {}), ("run", {}), ("preload", LEADER)):
            job = self.job(2, *words, via=way, env=env)
            if job.code != 0:
                self.show(job)
            self.assertEqual(job.code, 0)
            self.assertRegex(job.out, r"(?m)^computing speed left: \d+\.\d\d$")
            self.assertNotIn("wrong", job.out)
            self.assertEqual(job.complaints(), [])
            if way != "native" and not self.native_only:
                self.assertGreater(sum(job.allreduce_algorithms().values()), 10)
        self.need_papaya()

    @time_limit(90)
    def test_training(self):
        """A network that learns with Horovod's communication."""
        words = [self.python("torch", "numpy"), HERE.parents[1] / "examples" / "training.py", "--steps", "40", "--hidden", "256",
                 "--layers", "2"]
        self.need_papaya()
        lines = {}
        for extra, env in (([], {"PAPAYA_CALLSITES": "3"}), (["--fp16"], {"PAPAYA_ALLREDUCE": "arrival_tree"})):
            job = self.job(2, *words, *extra, env=env)
            done = re.findall(r"(?m)^training: rank \d of 2, 40 steps .* (\d+) negotiations, (\d+) sums of .* to \d+.\d+$", job.out)
            if job.code != 0 or len(done) != 2 or job.complaints():
                self.show(job)
            self.assertEqual((job.code, len(done), job.complaints()), (0, 2, []))
            compared = 2  # of the networks, at the end
            self.assertEqual(sum(job.allreduce_algorithms().values()), sum(int(n) + int(s) + compared for n, s in done))
            for site in job.report()["call_sites"]:
                lines.setdefault(site["frames"][0]["function"], site)
                self.assertTrue(site["frames"][0]["file"].endswith("training.py"))
        self.assertEqual(set(job.allreduce_algorithms()), {"arrival_tree"})
        self.assertEqual([frame["function"] for frame in lines["Background.negotiate"]["frames"]],
                         ["Background.negotiate", "Background.run_cycle", "Background.run"])
        self.assertIn("Background.sum_gradients", lines)
