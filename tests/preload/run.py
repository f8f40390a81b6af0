#!/usr/bin/env python3
"""Runs real MPI programs with papaya and without, and compares.

  run.py --build DIR --mpi openmpi|mpich --case NAME    one case; exit code 77 if it cannot be run here
  run.py --list                                         the names
  run.py ... --native                                   without papaya: what fails now is not papaya's doing
"""

import argparse
import collections
import contextlib
import csv
import dataclasses
import fcntl
import json
import os
import pathlib
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest
import uuid

HERE = pathlib.Path(__file__).resolve().parent
VARIABLES = [
    "PAPAYA_DISABLE", "PAPAYA_ALLREDUCE", "PAPAYA_REDUCE", "PAPAYA_BCAST", "PAPAYA_ALLTOALL", "PAPAYA_BARRIER",
    "PAPAYA_ALLGATHER", "PAPAYA_IALLREDUCE", "PAPAYA_IBCAST", "PAPAYA_IBARRIER", "PAPAYA_PROFILE", "PAPAYA_OUTPUT", "PAPAYA_TUNING", "PAPAYA_ORDER", "PAPAYA_WAIT",
    "PAPAYA_SHM_LIMIT", "PAPAYA_TRANSPORT", "PAPAYA_NODE_SIZE", "PAPAYA_VERIFY", "PAPAYA_STALL_SECONDS",
    "PAPAYA_CALLSITES", "PAPAYA_TRACE_LIMIT", "PAPAYA_LOG",
]
LEADER = {"PAPAYA_ALLREDUCE": "arrival_leader"}
NONBLOCKING = {"PAPAYA_IALLREDUCE": "ring", "PAPAYA_IBCAST": "notified_bcast", "PAPAYA_IBARRIER": "dissemination"}
COLLECTIVES = ("allreduce", "reduce", "bcast", "alltoall", "allgather", "barrier")  # that can be replaced
# Instructions from the beginning of a call, which has 1000 to 2400 of them.
KILLED_AFTER = (100, 450, 1000, 2200)
KILLED_IN_SET_UP = (300, 1500, 4000, 8000, 13000)

build = None  # the build folder
mpi = None  # "openmpi" or "mpich"
native_only = False


def program(name):
    return str(build / "tests" / "preload" / f"{name}-{mpi}")


def variants(collective, which="few"):
    """[algorithm, order] of every algorithm of the registry; "across": of those that work across nodes."""
    command = [str(build / "tests" / "mpi_variants"), collective, which]
    found = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    return [line.split() for line in found.splitlines()
            if not line.startswith("auto ") and (which == "few" or (":" not in line and line.endswith(" rank")))]


def clean_environment():
    """Without anything that steers papaya, and with what Open MPI wants in a container."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PAPAYA_") and k != "LD_PRELOAD"}
    environment.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMP_NUM_THREADS="1")
    return environment


def processes_with(marker):
    """Process ids whose environment holds `marker`: the ranks of one job, whatever group they moved to."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            with contextlib.suppress(OSError):
                if marker.encode() in (entry / "environ").read_bytes():
                    found.append(int(entry.name))
    return found


def kill_all(marker):
    for _ in range(3):
        for pid in processes_with(marker):
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.1)


@dataclasses.dataclass
class Job:
    code: int
    out: str
    err: str
    seconds: float
    folder: pathlib.Path  # PAPAYA_OUTPUT

    def said(self):
        """What papaya wrote to standard error."""
        return [line for line in self.err.splitlines() if line.startswith("papaya: ")]

    def complaints(self):
        """The same, without the line that says where the report is."""
        return [line for line in self.said() if str(self.folder) not in line]

    def counts(self):
        """Calls the program says it made, summed over its ranks."""
        total = collections.Counter()
        for line in self.out.splitlines():
            if line.startswith("counts"):
                for word in line.split()[1:]:
                    if "=" in word:
                        name, number = word.split("=")
                        total[name] += int(number)
        return dict(total)

    def report(self):
        with open(self.folder / "report.json", encoding="utf-8") as file:
            return json.load(file)

    def allreduce_algorithms(self):
        """{algorithm: calls} of MPI_Allreduce."""
        calls = collections.Counter()
        for row in self.report()["algorithms"]:
            if row["collective"].lower().replace("mpi_", "") == "allreduce":
                calls[row["algorithm"]] += row["calls"]
        return dict(calls)


class Preload(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.scratch = pathlib.Path(tempfile.mkdtemp(prefix="papaya-test-"))
        self.addCleanup(shutil.rmtree, self.scratch, ignore_errors=True)
        self.jobs = 0

    # How jobs are started

    def launch(self, ranks, words, via, env, cwd, wrapper=()):
        """The command, its environment and the output folder of one job."""
        self.jobs += 1
        environment = clean_environment()
        folder = self.scratch / f"out{self.jobs}"
        if via != "native":
            environment["PAPAYA_OUTPUT"] = str(folder)
        environment.update(env or {})
        for name in [name for name, value in environment.items() if value is None]:
            del environment[name]
        marker = f"PRELOAD_TEST_JOB={uuid.uuid4()}"
        environment.update([marker.split("=")])
        folder = pathlib.Path(environment.get("PAPAYA_OUTPUT", folder))

        if native_only:
            via = "native"
        library = str(build / "libpapaya.so")
        if mpi == "openmpi":
            command = ["mpirun.openmpi", "--oversubscribe", "--bind-to", "none"]
            preload = ["-x", f"LD_PRELOAD={library}"]
        else:
            command = ["mpirun.mpich"]
            preload = ["-genv", "LD_PRELOAD", library]
        if via == "preload":
            command += preload
        command += ["-n", str(ranks)]
        if via == "run":
            command += [str(build / "papaya"), "run"]
        if via == "launcher":
            environment["LD_PRELOAD"] = library
        return [*wrapper, *command, *map(str, words)], environment, marker, folder

    def job(self, ranks, *words, via="run", env=None, timeout=50, cwd=None, wrapper=()):
        """Runs a job to its end and returns it; fails if it does not end in time."""
        command, environment, marker, folder = self.launch(ranks, words, via, env, cwd, wrapper)
        begin = time.monotonic()
        # Into files: a process left behind that still holds a pipe would keep communicate() waiting.
        with open(self.scratch / "stdout", "w+b") as out, open(self.scratch / "stderr", "w+b") as err:
            process = subprocess.Popen(command, env=environment, cwd=cwd or self.scratch, stdin=subprocess.DEVNULL,
                                       stdout=out, stderr=err, start_new_session=True)
            try:
                process.wait(timeout)
                ended = True
            except subprocess.TimeoutExpired:
                ended = False
                kill_all(marker)
                process.wait(10)
            seconds = time.monotonic() - begin
            texts = []
            for file in (out, err):
                file.seek(0)
                texts.append(file.read().decode(errors="replace"))
        shown = " ".join(f"{k}={v}" for k, v in (env or {}).items()) + " " + " ".join(command)
        print(f"{shown}: {process.returncode} after {seconds:.1f} s")
        result = Job(process.returncode, texts[0], texts[1], seconds, folder)
        if not ended:
            self.show(result)
            self.fail(f"did not end within {timeout} s: {shown}")
        return result

    def show(self, job):
        print(f"--- standard output\n{job.out[-4000:]}\n--- standard error\n{job.err[-4000:]}\n---")

    def need_papaya(self):
        if native_only:
            self.skipTest("native only: the job itself passed")

    # What must hold for a job

    def check_right(self, job, ranks, quiet=True):
        """Ended well, every rank found its results right, papaya had nothing to complain about."""
        done = [line for line in job.out.splitlines() if line.startswith("counts")]
        if job.code != 0 or len(done) != ranks or "FAILED" in job.out or (quiet and job.complaints()):
            self.show(job)
        self.assertEqual(job.code, 0)
        self.assertEqual(len(done), ranks, "ranks that came to their end")
        self.assertNotIn("FAILED", job.out)
        if quiet:
            self.assertEqual(job.complaints(), [])

    def check_counts(self, job):
        """The report has each call of the program exactly once."""
        self.need_papaya()
        reported = collections.Counter()
        for row in job.report()["collectives"]:
            if row["calls"] > 0:
                reported[row["name"]] += row["calls"]
        expected = {name: calls for name, calls in job.counts().items() if calls > 0}
        self.assertEqual(dict(reported), expected)
        blocking = expected.get("MPI_Allreduce", 0)
        self.assertEqual(sum(job.allreduce_algorithms().values()), blocking, "calls booked under an algorithm")

    def check_leader(self, job):
        self.assertGreater(job.allreduce_algorithms().get("arrival_leader", 0), 0,
                           f"arrival_leader did nothing: {job.report()['algorithms']}")

    def check_program(self, ranks, *words, env=None, ways=("run", "preload"), timeout=50):
        """A well-behaved program, natively and with papaya, natively dispatched and by arrival_leader."""
        native = self.job(ranks, *words, via="native", env=env, timeout=timeout)
        if native.code == 77:
            self.skipTest(native.out.splitlines()[0])
        self.check_right(native, ranks)
        self.need_papaya()
        for way in ways:
            for choice in ("native", "auto", "arrival_leader"):
                job = self.job(ranks, *words, via=way, env={**(env or {}), "PAPAYA_ALLREDUCE": choice},
                               timeout=timeout)
                self.check_right(job, ranks)
                self.check_counts(job)
                if choice == "native":
                    self.assertLessEqual(set(job.allreduce_algorithms()), {"native"})
        return job

    def papaya(self, *words, code=0):
        """One run of the command; returns standard output and standard error together."""
        done = subprocess.run([str(build / "papaya"), *map(str, words)], env=clean_environment(), cwd=self.scratch,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=30, check=False)
        print(f"papaya {' '.join(map(str, words))}: {done.returncode}")
        codes = code if isinstance(code, tuple) else (code,)
        if done.returncode not in codes:
            print(done.stdout[-4000:])
        self.assertIn(done.returncode, codes)
        return done.stdout

    @contextlib.contextmanager
    def small_file_system(self, place, size):
        """A wrapper command that runs a job with `size` of tmpfs at `place`, seen by nobody else."""
        mount = f"mount -t tmpfs -o size={size} none {place}"
        try:
            allowed = subprocess.run(["unshare", "-m", "sh", "-c", mount], stdin=subprocess.DEVNULL,
                                     stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode == 0
        except OSError:
            allowed = False
        if not allowed:
            self.skipTest("no permission to mount a small file system here (unshare -m)")
        yield ["unshare", "-m", "sh", "-c", f'{mount} && exec "$@"', "sh"]

    # Counts and results, by language

    def test_c_blocking(self):
        self.check_program(2, program("calls"), "blocking")
        for ranks in (1, 3, 4):
            job = self.job(ranks, program("calls"), "blocking", env=LEADER)
            self.check_right(job, ranks)
            self.check_counts(job)

    def test_c_nonblocking(self):
        self.check_program(3, program("calls"), "nonblocking", ways=("run",))

    def test_c_large(self):
        self.check_program(3, program("calls"), "large", ways=("run",))

    def test_c_persistent(self):
        self.check_program(3, program("calls"), "persistent", ways=("run",))

    def fortran(self, binding):
        path = program(f"fortran_{binding}")
        if not os.path.exists(path):
            self.skipTest(f"no Fortran compiler for {mpi} when this was configured")
        self.check_program(3, path)

    def test_fortran_mpifh(self):
        self.fortran("mpifh")

    def test_fortran_use_mpi(self):
        self.fortran("usempi")

    def test_fortran_f08(self):
        self.fortran("f08")

    def python(self, *modules):
        """A Python with mpi4py for this MPI and some other modules; skips the test if there is none."""
        # The distribution's mpi4py belongs to the distribution's Python and to its default MPI.
        imports = "".join(f"import {module}; " for module in modules)
        probe = imports + "from mpi4py import MPI; import sys; print(MPI.Get_library_version()); print(sys.executable)"
        for python in ("python3", "/usr/bin/python3"):
            found = subprocess.run([python, "-c", probe], env=clean_environment(), stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False)
            if found.returncode == 0:
                break
        else:
            self.skipTest(f"no Python here that has {', '.join((*modules, 'mpi4py'))}")
        if {"openmpi": "Open MPI", "mpich": "MPICH"}[mpi] not in found.stdout:
            self.skipTest(f"mpi4py here is not built for {mpi}")
        return found.stdout.splitlines()[-1]

    def test_mpi4py(self):
        self.check_program(3, self.python(), HERE / "calls.py")

    def test_python_call_sites(self):
        """Lines of the Python program, not of mpi4py."""
        words = [self.python(), HERE / "calls.py"]
        self.need_papaya()
        source = (HERE / "calls.py").read_text().splitlines()
        for env in ({}, {"PAPAYA_ALLREDUCE": "arrival_tree"}):
            job = self.call_sites(*words, env=env)[2]
            self.check_counts(job)
            # In MPI_Finalize already.
            sites = job.report()["call_sites"]
            self.assertEqual(len(sites), 8)
            for site in sites:
                self.assertEqual([(frame["function"], frame["file"]) for frame in site["frames"]], [("<module>", str(words[1]))])
                self.assertIn(f".{site['name'].removeprefix('MPI_')}(", source[site["frames"][0]["line"] - 1])
            self.assertEqual(sorted(site["calls"] for site in sites), [4, 6, 8, 10, 12, 14, 16, 18])
            self.assertRegex(self.papaya("report", job.folder), r"MPI_Alltoall .*\n    <module> \(calls.py:\d+\)\n")

    def test_plugin(self):
        self.check_program(2, build / "tests/preload/plugin_host", build / f"tests/preload/libplugin-{mpi}.so")

    def application(self, command, name):
        """Where the program is; skips the test if it is not installed for this MPI."""
        path = shutil.which(command)
        if path is None:
            self.skipTest(f"no {name} ({command}) here")
        libraries = subprocess.run(["ldd", path], stdout=subprocess.PIPE, text=True, check=False).stdout
        if {"openmpi": "libmpi.so", "mpich": "libmpich.so"}[mpi] not in libraries:
            self.skipTest(f"{name} here is not built for {mpi}")
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
        for line in self.papaya("info", "--algorithms").splitlines():
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
                               "a user-defined operation, which the algorithm cannot cut")
                    if collective in ("Bcast", "Reduce"):  # who may leave early waits for nobody
                        reasons += ("the communicator has made too few calls yet", "the root was too far ahead, or had no memory to deposit in")
                    self.assertIn(row["reason"], reasons, f"{row} with {chosen[collective]} forced")
                    others[collective] += row["calls"]
            print(f"  served {dict(served)}, by MPI {dict(others)}")
            for collective in ("Allreduce", "Barrier"):
                self.assertGreater(served[collective], others[collective], collective)
            self.assertGreater(served["Bcast"], 0)

    def test_lammps_algorithms(self):
        words = [self.application("lmp", "LAMMPS"), "-in", HERE / "in.melt", "-log", "none"]
        expected = self.thermo(self.job(4, *words, via="native"))
        self.assertEqual(len(expected), 12)
        self.need_papaya()
        self.check_each_algorithm(lambda job, _: self.assertEqual(self.thermo(job), expected), *words)

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

    # Children, shells, launchers

    def partly(self, libraries, *arguments, cut=False):
        """A started job whose rank N has LD_PRELOAD=libraries[N]; `cut`: the launcher seems to put each rank on a node of its own."""
        words = []
        for library in libraries:
            words += [*([":", "-n", "1"] if words else []), "env", f"LD_PRELOAD={library}"]
            if cut:
                words += ["OMPI_COMM_WORLD_LOCAL_SIZE=1", "MPI_LOCALNRANKS=1"]
            words += [program("launched"), *arguments]
        command, environment, marker, folder = self.launch(1, words, "", None, None)
        out, err = self.scratch / f"{folder.name}.stdout", self.scratch / f"{folder.name}.stderr"
        with open(out, "wb") as out_file, open(err, "wb") as err_file:
            process = subprocess.Popen(command, env=environment, cwd=self.scratch, stdin=subprocess.DEVNULL, stdout=out_file,
                                       stderr=err_file, start_new_session=True)

        def end():
            try:
                code = process.wait(30)
            except subprocess.TimeoutExpired:
                kill_all(marker)
                process.wait(10)
                self.fail(f"hangs: {' '.join(command)}")
            return Job(code, out.read_text(), err.read_text(), 0, folder)

        return end

    def test_partly(self):
        """Ranks without papaya, with one that cannot load its flavour, with another version, build or tool: the job goes on
        natively and says why. They wait for the others, so all run at once."""
        self.need_papaya()
        name = f"libpapaya-{mpi}.so"
        flavour = (build / name).read_bytes()
        notes = subprocess.run(["readelf", "-nW", build / name], stdout=subprocess.PIPE, text=True, check=True).stdout
        build_id = bytes.fromhex(re.search(r"Build ID: (\w+)", notes)[1])
        whole = build / "libpapaya.so"
        copies = {}
        for kind, content in (("bare", None), ("older", flavour.replace(b"0.1.0\0", b"0.0.9\0")),
                              ("other", flavour.replace(build_id, bytes(len(build_id))))):
            self.assertNotEqual(content, flavour)
            (self.scratch / kind).mkdir()
            copies[kind] = shutil.copy(whole, self.scratch / kind)
            if content is not None:
                (self.scratch / kind / name).write_bytes(content)
        taken = f"{build}/tests/preload/libtaker-{mpi}.so:{whole}"
        bare, older, other = copies["bare"], copies["older"], copies["other"]
        absent = "ranks? {} runs? without papaya"
        aside = "rank {} cannot use papaya, so on all ranks"
        builds = r"rank \d has another build of papaya"
        waiting = [  # what each says, in any order
            (self.partly([whole, ""]), [absent.format(1)]),
            (self.partly(["", whole, whole, ""]), [absent.format("0, 3")]),
            (self.partly([whole, bare, whole]), [r"rank 1: cannot load the library for this MPI", aside.format(1)]),
            (self.partly([bare, whole]), [r"rank 0: cannot load the library for this MPI", aside.format(0)]),
            (self.partly([bare, bare, bare]), [r"rank 0: cannot load the library for this MPI"]),
            (self.partly([bare, "", bare]), [r"rank 0: cannot load the library for this MPI", r"rank 2: cannot load"]),
            (self.partly([whole, older]), [r"rank 1: .* is of another version", aside.format(1)]),
            (self.partly([whole, whole, other]), [builds]),
            (self.partly([whole, taken]), [r"rank 1: .*/libtaker.* takes MPI_Init for itself", aside.format(1)]),
            (self.partly([whole, whole, ""], cut=True), ["1 rank runs without papaya"]),
            (self.partly([whole, other, whole], cut=True), [builds]),
        ]
        unanswered = self.partly(["", whole], "named", cut=True)
        everywhere = self.partly([whole] * 3, cut=True)
        for end, sentences in waiting:
            job = end()
            self.check_right(job, job.out.count("counts"), quiet=False)
            if len(job.said()) != len(sentences):
                self.show(job)
            self.assertEqual(len(job.said()), len(sentences))
            for sentence in sentences:
                self.assertRegex(job.err, rf"(?m)^papaya: {sentence}")
            self.assertFalse(job.folder.exists())
        # A message lies at rank 0, which may receive it.
        job = unanswered()
        self.assertNotEqual(job.code, 0)
        self.assertRegex(job.err, "papaya: rank 0 runs without papaya on another node, or does not answer")
        job = everywhere()
        self.check_right(job, 3)
        self.check_counts(job)

    def test_left_behind(self):
        """The next job removes the name of a board whose ranks died in MPI_Init, and none that somebody still holds."""
        self.need_papaya()
        names = [pathlib.Path(f"/dev/shm/papaya-{os.geteuid()}-{uuid.uuid4().hex[:16]}") for _ in range(3)]
        held, dead, new = names
        for name in names:
            name.write_bytes(bytes(4096))
            self.addCleanup(name.unlink, missing_ok=True)
        for name in (held, dead):
            os.utime(name, (time.time() - 3600,) * 2)
        with open(held, "rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH)
            self.check_right(self.job(2, program("launched")), 2)
            self.assertEqual([name.exists() for name in names], [True, False, True])

    def test_relative_preload(self):
        """LD_PRELOAD names the library by a relative path, and the program enters another folder before MPI_Init: there
        are libraries of the same names."""
        elsewhere = self.scratch / "elsewhere"
        (elsewhere / "lib").mkdir(parents=True)
        for name in ("openmpi", "mpich"):
            (elsewhere / "lib" / f"libpapaya-{name}.so").write_text("not papaya's")
        (self.scratch / "lib").symlink_to(build)
        job = self.job(2, "env", "LD_PRELOAD=lib/libpapaya.so", program("launched"), "chdir", elsewhere, via="")
        self.need_papaya()
        self.check_right(job, 2)
        self.check_counts(job)

    def test_children(self):
        native = self.job(2, program("children"), via="native")
        self.check_right(native, 2)
        self.need_papaya()
        under_run = self.job(2, program("children"), via="run")
        self.check_right(under_run, 2)
        self.check_counts(under_run)
        self.assertEqual(sorted(under_run.out.splitlines()), sorted(native.out.splitlines()),
                         "what papaya run preloads stays in the program itself")
        preloaded = self.job(2, program("children"), via="preload")
        self.check_right(preloaded, 2)
        self.check_counts(preloaded)
        self.assertEqual(len(preloaded.out.splitlines()), len(native.out.splitlines()))

    def test_launcher(self):
        """LD_PRELOAD exported in the shell: mpirun and its helpers get the library too."""
        job = self.job(2, program("calls"), "blocking", via="launcher", env=LEADER)
        self.check_right(job, 2)
        self.check_counts(job)

    def test_shell(self):
        self.need_papaya()
        commands = [["sh", "-c", "echo ok; sh -c 'echo inner'"], ["bash", "-c", "echo ok | cat"], ["ls", "/"],
                    [sys.executable, "-c", "import subprocess; subprocess.run(['echo', 'ok'])"]]
        for command in commands:
            results = []
            for preload in (None, str(build / "libpapaya.so")):
                environment = clean_environment()
                if preload:
                    environment["LD_PRELOAD"] = preload
                results.append(subprocess.run(command, env=environment, cwd=self.scratch, stdin=subprocess.DEVNULL,
                                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False))
            self.assertEqual((results[1].returncode, results[1].stdout, results[1].stderr),
                             (results[0].returncode, results[0].stdout, results[0].stderr))
        self.assertEqual(os.listdir(self.scratch), [])

    # Beginning and end

    def test_never_initialised(self):
        native = self.job(2, program("lifecycle"), "never", via="native")
        self.check_right(native, 2)
        before = self.job(2, program("lifecycle"), "before", via="native")
        self.assertNotEqual(before.code, 0)
        self.need_papaya()
        for way in ("run", "preload"):
            job = self.job(2, program("lifecycle"), "never", via=way)
            self.check_right(job, 2)
            self.assertEqual(job.said(), [])
            self.assertFalse(job.folder.exists())
            job = self.job(2, program("lifecycle"), "before", via=way)
            self.assertEqual(job.code, before.code)

    def test_finalize(self):
        native = {mode: self.job(2, program("lifecycle"), mode, via="native")
                  for mode in ("after", "no_finalize", "at_exit", "thread", "twice")}
        self.check_right(native["at_exit"], 2)
        self.check_right(native["thread"], 2)
        self.need_papaya()
        for env in ({}, LEADER):
            for mode in ("at_exit", "thread"):
                job = self.job(2, program("lifecycle"), mode, env=env)
                self.check_right(job, 2)
                self.check_counts(job)
            job = self.job(2, program("lifecycle"), "after", env=env)
            self.assertEqual(job.code, native["after"].code)
            self.check_counts(job)
            job = self.job(2, program("lifecycle"), "no_finalize", env=env)
            self.assertEqual(job.code, native["no_finalize"].code)
            self.assertIn("MPI_Allreduce", self.papaya("report", job.folder, code=3))
            job = self.job(2, program("lifecycle"), "twice", env=env)
            # Open MPI ends the job here, and its launcher itself now and then crashes doing so: then the code and
            # the output tell nothing.
            if min(job.code, native["twice"].code) < 0:
                continue
            self.assertEqual(job.code, native["twice"].code)
            self.assertEqual(sorted(job.out.splitlines()), sorted(native["twice"].out.splitlines()))

    def compare(self, ranks, words, envs=({}, LEADER), **more):
        """The job with papaya ends as without, with the same calls in its report; False if it fails without."""
        native = self.job(ranks, *words, via="native", timeout=20)
        if native.code != 0:
            print(f"{' '.join(map(str, words))}: {mpi} itself fails")
            return False
        self.check_right(native, ranks)
        if native_only:
            return False
        for env in envs:
            job = self.job(ranks, *words, env=env, timeout=20, **more)
            self.check_right(job, ranks)
            self.check_counts(job)
            self.assertEqual(job.counts(), native.counts())
            if env is LEADER:
                self.check_leader(job)
        self.last = job
        return True

    def compare_all(self, ranks, *several, **more):
        if not any([self.compare(ranks, words, **more) for words in several]):
            self.skipTest(f"{mpi} itself fails, or native only")

    def test_finalize_late(self):
        """MPI_Finalize after main: the library's own exit handlers and destructors may have run before."""
        modes = ("at_exit_first", "at_exit_calls", "destructor")
        self.compare_all(2, *([program("lifecycle"), mode] for mode in modes), [program("guard")],
                         [program("guard"), "calls"])

    # What MPI calls back, and calls that fail

    def test_callbacks(self):
        self.compare_all(3, [program("callbacks"), "jump", "one"], [program("callbacks"), "jump", "all"],
                         [program("callbacks"), "handler"], [program("exceptions")])

    def test_attributes(self):
        self.compare_all(3, *([program("callbacks"), *words] for words in
                              (("attribute", "free"), ("attribute", "disconnect"), ("by_rank",), ("nested",))))

    def test_across_nodes(self):
        """Ranks of this machine as if on two nodes: progress, communicators by the thousand, freed in any order."""
        jobs = [([program("progress"), way], 3) for way in ("receive", "send", "pair")]
        jobs += [([program("comm_churn")], 2), ([program("callbacks"), "crosswise"], 2)]
        for words, ranks in jobs:
            if mpi == "mpich" and ranks > 2:
                continue  # a flush waits for a target whose core another rank holds, spinning
            for name, _ in variants("allreduce", "across"):
                job = self.job(ranks, *words, env={"PAPAYA_NODE_SIZE": "1", "PAPAYA_ALLREDUCE": name}, timeout=40)
                self.check_right(job, ranks, quiet=False)
                if not native_only:
                    self.assertGreater(job.allreduce_algorithms().get(name, 0), 0)
        self.need_papaya()

    def test_transport_ucx(self):
        """UCX between nodes: right results, and nothing left behind in the process, its communicators or its job."""
        if native_only or not (build / "libpapaya-ucx.so").exists():
            self.skipTest("there is no libpapaya-ucx.so: built without UCX, or native only")
        across = {"PAPAYA_NODE_SIZE": "1", "PAPAYA_ALLREDUCE": "ring", "UCX_WARN_UNUSED_ENV_VARS": "y"}
        ucx = {**across, "PAPAYA_TRANSPORT": "ucx"}
        seen = []
        for env in ({**across, "PAPAYA_TRANSPORT": "mpi"}, ucx):
            job = self.job(2, program("traces"), env=env)
            self.check_right(job, 2)
            lines = [line for line in job.out.splitlines() if not line.startswith("counts")]
            self.assertEqual(lines.pop(), f"ucx {1 if env is ucx else 0}", job.out)
            seen.append(lines)
        self.assertEqual(seen[0], seen[1], "signal handlers and variables")
        for words in ([program("progress"), "receive"], [program("progress"), "send"], [program("progress"), "pair"],
                      [program("callbacks"), "crosswise"]):
            ranks = 3 if "progress" in words[0] else 2
            self.check_right(self.job(ranks, *words, env=ucx, timeout=40), ranks, quiet=False)
        self.check_right(self.job(2, program("comm_churn"), 600, env=ucx, timeout=40), 2, quiet=False)
        for ending in ("exit", "kill"):
            native = self.job(2, program("loop"), 200, ending, via="native")
            for tls in ("all", "tcp,self"):
                job = self.job(2, program("loop"), 200, ending, env={**ucx, "UCX_TLS": tls}, timeout=20)
                self.assertNotEqual(job.code, 0)
                self.assertLess(job.seconds, native.seconds + 8)

    def test_transport_links_refused(self):
        """UCX reaches a neighbour but not everybody: blocking and nonblocking calls go to MPI, whenever that is found out."""
        if native_only or not (build / "libpapaya-ucx.so").exists():
            self.skipTest("there is no libpapaya-ucx.so: built without UCX, or native only")
        missing = "no transport between the nodes to be had"
        for when in ("now", "later"):
            env = {"PAPAYA_TRANSPORT": "ucx", "PAPAYA_ALLREDUCE": "ring", "REFUSE_RANK": "1", "REFUSE_WHEN": when,
                   "LD_PRELOAD": str(build / "tests" / "preload" / "librefused_links.so")}
            calls = self.nonblocking(3, "results", 1, env, quiet=False)
            self.assertGreater(calls[missing], 0)
            # Of two ranks, which are neighbours, calls are replaced all the same.
            self.assertGreater(calls["ring"] + calls["notified_bcast"], 0)
            job = self.job(3, program("loop"), 20, "end", env={**env, "PAPAYA_NODE_SIZE": "1"})
            self.assertEqual(job.code, 0, job.err)
            self.assertEqual([line for line in job.complaints() if missing in line], job.complaints())
            self.assertEqual(len(job.complaints()), 1)
            reasons = {row["reason"] for row in job.report()["algorithms"] if row["collective"] == "MPI_Allreduce"}
            self.assertIn(missing, reasons)

    def test_transport_missing(self):
        """Without the plugin: one sentence, MPI's operations, and the job goes on."""
        self.need_papaya()
        for name in ("libpapaya.so", f"libpapaya-{mpi}.so"):
            shutil.copy(build / name, self.scratch)
        folder = self.scratch / "out"
        job = self.job(2, program("traces"), via="native", env={
            "LD_PRELOAD": str(self.scratch / "libpapaya.so"), "PAPAYA_OUTPUT": str(folder), "PAPAYA_NODE_SIZE": "1",
            "PAPAYA_ALLREDUCE": "ring", "PAPAYA_TRANSPORT": "ucx"})
        self.check_right(job, 2, quiet=False)
        self.assertEqual(len(job.complaints()), 1, job.err)
        self.assertIn("there is no libpapaya-ucx.so in", job.complaints()[0])
        self.assertEqual(set(job.allreduce_algorithms()), {"ring"})

    def test_wrong_call(self):
        """An error of one rank: its later calls are compared with the others' right ones."""
        for words in (["wrong", "none"], ["wrong", "one"]):
            if not self.compare(3, [program("callbacks"), *words]):
                self.skipTest(f"{mpi} itself fails, or native only")
            report = self.last.report()
            self.assertEqual(report["notes"], [])
            rows = {row["name"]: row for row in report["collectives"]}
            self.assertEqual(rows["MPI_Allreduce"]["imbalance"]["calls"], 100)
            self.assertEqual(report["compared_calls"], 100)
            self.assertEqual(report["late_ranks"][0]["rank"], 2)
            self.assertEqual(report["late_ranks"][0]["calls"], 100)
            for row in report["collectives"]:
                if row["excess_us"] is not None:
                    self.assertGreaterEqual(row["excess_us"]["mean"], 0)
                    self.assertGreaterEqual(row["excess_us"]["p50"], 0)

    def test_invalid(self):
        """Invalid datatypes and operations: the error class that MPI gives, where it gives one."""
        compared = 0
        for name in ("uncommitted", "uncommitted_bcast", "replace", "garbage_op", "garbage_type", "freed_type",
                     "freed_op"):
            native = self.job(2, program("invalid"), name, via="native", timeout=20)
            if native.code != 0 or len(native.out.splitlines()) != 2 or native_only:
                continue
            compared += 1
            with self.subTest(name=name):
                job = self.job(2, program("invalid"), name, env=LEADER, timeout=20)
                self.assertEqual((job.code, sorted(job.out.splitlines())), (0, sorted(native.out.splitlines())))
                self.assertEqual(job.complaints(), [])
        self.need_papaya()
        self.assertGreater(compared, 0)

    def test_communicator_name(self):
        if self.compare(2, [program("callbacks"), "name"]):
            self.assertIn("ocean", [row["name"] for row in self.last.report()["communicators"]])
        self.need_papaya()

    def test_verify(self):
        """No false alarm and no memory touched that is not the program's; an alarm where results do differ."""
        every = {**LEADER, "PAPAYA_BCAST": "arrival_bcast", "PAPAYA_VERIFY": "1"}
        for mode in ("hole", "cancel", "own"):
            self.check_right(self.job(3, program("verified"), mode, via="native"), 3)
            if native_only:
                continue
            # Two orders: with three ranks, one of them is not MPI's.
            for order in ("rank", "arrival"):
                job = self.job(3, program("verified"), mode, env={**every, "PAPAYA_ORDER": order}, timeout=20)
                self.check_right(job, 3, quiet=False)
                self.check_counts(job)
                self.check_leader(job)
                self.assertEqual(len(job.complaints()), 1, job.complaints())
                self.assertRegex(job.complaints()[0], r"[1-9]\d* verified results agree")
        self.check_right(self.job(3, program("verified"), "wrong", via="native"), 3)
        self.need_papaya()
        job = self.job(3, program("verified"), "wrong", env=every, timeout=20)
        self.check_right(job, 3, quiet=False)
        self.assertEqual(len(job.complaints()), 1, job.complaints())
        self.assertRegex(job.complaints()[0], r"[1-9]\d* of [1-9]\d* verified results differ")

    def test_alltoallv(self):
        """Replaced whatever the counts, as the selection for MPI_Alltoall says; native where that needs a size."""
        sizes = "the choice depends on sizes that differ from rank to rank"
        forced = {"PAPAYA_ALLTOALL": "arrival_alltoall"}
        for ranks in (2, 5):
            self.check_right(self.job(ranks, program("varying"), via="native"), ranks)
            self.need_papaya()
            for env, algorithm, reason in (
                    (forced, "arrival_alltoall", ""),
                    ({**forced, "PAPAYA_VERIFY": "1"}, "arrival_alltoall", ""),
                    ({"PAPAYA_ALLTOALL": "native"}, "native", "native selected by the user"),
                    ({"PAPAYA_ALLTOALL": "0-4K:arrival_alltoall,4K-:native"}, "native", sizes),
                    ({"PAPAYA_ALLTOALL": "4K-:arrival_alltoall"}, "native", sizes)):
                job = self.job(ranks, program("varying"), env=env)
                verifies = "PAPAYA_VERIFY" in env
                self.check_right(job, ranks, quiet=not verifies)
                self.check_counts(job)
                if verifies:
                    self.assertEqual(len(job.complaints()), 1, job.complaints())
                    self.assertRegex(job.complaints()[0], r"[1-9]\d* verified results agree")
                rows = [row for row in job.report()["algorithms"] if row["collective"] == "MPI_Alltoallv"]
                self.assertEqual([(row["algorithm"], row["reason"], row["calls"]) for row in rows],
                                 [(algorithm, reason, 40 * ranks)])

    def test_sessions(self):
        self.check_right(self.job(2, program("lifecycle"), "session", via="native"), 2)
        self.need_papaya()
        for way in ("run", "preload"):
            self.check_right(self.job(2, program("lifecycle"), "session", via=way, env=LEADER), 2)

    def test_spawn(self):
        native = self.job(1, program("spawn"), via="native")
        if native.code != 0 and "MPI_Comm_spawn" in native.err:
            self.skipTest(f"MPI_Comm_spawn fails natively with this {mpi}")
        self.check_right(native, 3)
        self.need_papaya()
        for way in ("run", "preload"):
            self.check_right(self.job(1, program("spawn"), via=way, env=LEADER), 3, quiet=False)

    def test_abort(self):
        native = self.job(3, program("loop"), 200, "abort", via="native")
        self.assertEqual(native.code, 7)
        self.need_papaya()
        for env in ({}, LEADER):
            job = self.job(3, program("loop"), 200, "abort", env=env, timeout=25)
            self.assertEqual(job.code, native.code)
            self.assertIn("MPI_Allreduce", self.papaya("report", job.folder, code=3))

    def test_rank_dies(self):
        for ending in ("exit", "kill", "segv"):
            native = self.job(3, program("loop"), 200, ending, via="native")
            self.assertNotEqual(native.code, 0)
            if native_only:
                continue
            for env in ({}, LEADER):
                # MPICH's launcher gives the code of whichever rank it saw first: the one that died or one it killed.
                job = self.job(3, program("loop"), 200, ending, env=env, timeout=20)
                self.assertNotEqual(job.code, 0)
                self.assertLess(job.seconds, native.seconds + 8)
                self.assertIn("MPI_Allreduce", self.papaya("report", job.folder, code=3))
        self.need_papaya()

    @contextlib.contextmanager
    def running(self, ranks, *words, via="run", env=None):
        """A job that does not end by itself: its pids, its marker, its folder and its standard error."""
        command, environment, marker, folder = self.launch(ranks, words, via, env, None)
        out, err = self.scratch / "stdout", self.scratch / "stderr"
        with open(out, "wb") as out_file, open(err, "wb") as err_file:
            process = subprocess.Popen(command, env=environment, cwd=self.scratch, stdin=subprocess.DEVNULL,
                                       stdout=out_file, stderr=err_file, start_new_session=True)
        try:
            deadline = time.monotonic() + 20
            pids = []
            while len(pids) < ranks and time.monotonic() < deadline and process.poll() is None:
                time.sleep(0.1)
                pids = [int(line.split()[1]) for line in out.read_text().splitlines() if line.startswith("pid ")]
            self.assertEqual(len(pids), ranks, err.read_text())
            yield process, pids, folder, err
        finally:
            kill_all(marker)
            process.wait(10)

    def test_killed(self):
        for env in ({}, LEADER):
            with self.running(3, program("loop"), 0, env=env) as (process, pids, folder, _):
                time.sleep(1.5)
                self.assertIsNone(process.poll())
                for pid in pids:
                    os.kill(pid, signal.SIGKILL)
                process.wait(20)
                self.assertNotEqual(process.returncode, 0)
            if native_only:
                continue
            self.assertEqual(len(list(folder.glob("rank-*.pap"))), 3)
            text = self.papaya("report", folder, code=3)
            self.assertIn("MPI_Allreduce", text)
        self.need_papaya()

    def test_killed_inside(self):
        """A rank killed somewhere in a replaced call: the job ends as it does natively, and nothing is left of it."""
        probe = subprocess.run([program("killed"), "probe"], env=clean_environment(), stdin=subprocess.DEVNULL,
                               timeout=20, check=False)
        if probe.returncode != -signal.SIGKILL:
            self.skipTest("ptrace is not permitted here")
        # A /dev/shm of the job's own, where that is permitted, so that what is left in it is this job's.
        left = self.scratch / "left"
        own = f'mount -t tmpfs none /dev/shm && {{ "$@"; code=$?; ls -A /dev/shm > {left}; exit $code; }}'
        wrapper = ["unshare", "-m", "sh", "-c", own, "sh"]
        if subprocess.run([*wrapper, "true"], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                          check=False).returncode != 0:
            wrapper = []

        def job(collective, victim, steps, *calls, **more):
            done = self.job(3, program("killed"), collective, victim, steps, *calls, timeout=25, wrapper=wrapper, **more)
            wrong = done.code == 0 or "killed after" not in done.err or re.search("failed:|Segm", done.err)
            if wrong or done.complaints():
                self.show(done)
            self.assertFalse(wrong)
            self.assertEqual(done.complaints(), [])
            print(re.search("killed after.*", done.err)[0])
            marker = f"PAPAYA_OUTPUT={done.folder}"
            for _ in range(50):
                if not processes_with(marker):
                    break
                time.sleep(0.1)
            self.assertEqual(processes_with(marker), [], "a rank lives on")
            return done

        native = job("allreduce", 1, 500, via="native")
        natively_left = left.read_text() if wrapper else ""
        self.need_papaya()
        algorithms = [(collective, *variant) for collective in COLLECTIVES for variant in variants(collective)]
        for place, (collective, algorithm, order) in enumerate(algorithms):
            env = {f"PAPAYA_{collective.upper()}": algorithm, "PAPAYA_ORDER": order}
            for number, steps in enumerate(KILLED_AFTER):
                # The root is rank 1 in the first call. Other points for each algorithm.
                done = job(collective, (1, 0)[number % 2], steps + 23 * place, env=env)
                self.assertLess(done.seconds, native.seconds + 8)
                if wrapper:
                    self.assertLessEqual(len(left.read_text().split()), len(natively_left.split()), left.read_text())
                report = self.papaya("report", done.folder, code=(0, 3))
                self.assertRegex(report, f"(?mi)^.*MPI_{collective} +{algorithm}")
                # Open MPI's second between SIGTERM and SIGKILL: once for each algorithm.
                env["OMPI_MCA_odls_base_sigkill_timeout"] = "0"
        # In the first call, which sets the algorithm up: before, between and after what is agreed on there.
        for number, steps in enumerate(KILLED_IN_SET_UP):
            collective = ("bcast", "allreduce")[number % 2]
            env = {f"PAPAYA_{collective.upper()}": f"arrival_{('bcast', 'leader')[number % 2]}",
                   "OMPI_MCA_odls_base_sigkill_timeout": "0"}
            done = job(collective, number % 3, steps, 0, env=env)
            self.assertIn("and 0 whole calls", done.err)
            self.assertLess(done.seconds, native.seconds + 8)

    def test_rank_stops(self):
        """One rank hangs: after PAPAYA_STALL_SECONDS somebody says which."""
        self.need_papaya()
        with self.running(3, program("loop"), 400, "stop", env={**LEADER, "PAPAYA_STALL_SECONDS": "2"}) as job:
            process, _, folder, err = job
            deadline = time.monotonic() + 20
            lines = []
            while not lines and time.monotonic() < deadline and process.poll() is None:
                time.sleep(0.2)
                lines = [line for line in err.read_text().splitlines()
                         if line.startswith("papaya: ") and "Allreduce" in line and re.search(r"\b1\b", line)]
            self.assertTrue(lines, "nobody named the missing rank:\n" + err.read_text())
        self.assertIn("MPI_Allreduce", self.papaya("report", folder, code=3))

    def test_what_is_preloaded(self):
        """Brings no library with it that the program may have in another version, and shows none of those within it."""
        self.need_papaya()
        for name, own in (("libpapaya.so", ""), (f"libpapaya-{mpi}.so", "hwloc|stdc\\+\\+|gcc_s|m")):
            dynamic = subprocess.run(["readelf", "-dW", build / name], check=True, capture_output=True, text=True).stdout
            for needed in re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic):
                self.assertRegex(needed, rf"^(ld-linux.*|lib(c|dl|pthread{own and '|' + own})\.so.*)$", name)
            symbols = subprocess.run(["nm", "-DC", "--defined-only", build / name], check=True, capture_output=True,
                                     text=True).stdout
            self.assertIn("papaya", symbols)
            self.assertNotRegex(symbols, r"\b(fmt|nlohmann|CLI)::", name)

    # Settings

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

    def test_disabled(self):
        for way in ("run", "preload"):
            job = self.job(2, program("calls"), "blocking", via=way, env={**LEADER, "PAPAYA_DISABLE": "1"})
            self.check_right(job, 2)
            self.assertEqual(job.said(), [])
            self.assertFalse(job.folder.exists())
        self.need_papaya()

    def bad_job(self, env):
        job = self.job(2, program("loop"), 20, env=env)
        self.check_right(job, 2, quiet=False)
        return job

    def test_bad_values(self):
        self.need_papaya()
        names = re.findall(r"(?m)^\s*(PAPAYA_[A-Z_]+)", self.papaya("info", "--env"))
        self.assertGreaterEqual(len(names), len(VARIABLES))
        special = {"PAPAYA_OUTPUT": "/dev/null/x", "PAPAYA_TUNING": str(self.scratch / "missing")}
        tries = [(name, special.get(name, "bad-value!")) for name in names]
        tries += [("PAPAYA_CALLSITES", "17"), ("PAPAYA_NODE_SIZE", "-1"), ("PAPAYA_SHM_LIMIT", "12Q"),
                  ("PAPAYA_ALLREDUCE", "0-4K:arrival_leader,oops"), ("PAPAYA_ALLREDUCE", "arrival_leader:nothing=3")]
        for name, value in tries:
            with self.subTest(name=name, value=value):
                job = self.bad_job({name: value})
                lines = [line for line in job.said() if name in line or (value in line and " report in " not in line)]
                if len(lines) != 1 or len(job.complaints()) > 1:
                    self.show(job)
                self.assertEqual(len(lines), 1, "one warning, from rank 0")
                self.assertLessEqual(len(job.complaints()), 1)

    def test_all_bad_values(self):
        env = {name: "bad-value!" for name in VARIABLES if name not in ("PAPAYA_OUTPUT", "PAPAYA_TUNING")}
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

    def test_mixed_environment(self):
        """Ranks whose environments differ: rank 0's holds."""
        for first, second in (("native", "arrival_leader"), ("arrival_leader", "native")):
            runner = [] if native_only else [str(build / "papaya"), "run"]
            words = ["env", f"PAPAYA_ALLREDUCE={first}", *runner, program("calls"), "blocking", ":", "-n", "2", "env",
                     f"PAPAYA_ALLREDUCE={second}", "PAPAYA_ORDER=arrival", *runner, program("calls"), "blocking"]
            job = self.job(1, *words, via="")
            self.check_right(job, 3)
            if not native_only:
                self.check_counts(job)
                if first == "native":
                    self.assertEqual(set(job.allreduce_algorithms()), {"native"})
        self.need_papaya()

    def test_order(self):
        """The same bits in every run, however the ranks wait and arrive."""
        path = build / "examples" / f"imbalanced-{mpi}"

        def checksum(job):
            self.assertEqual(job.code, 0)
            self.assertEqual(job.complaints(), [])
            return job.out.split("checksum")[1]

        checksum(self.job(4, path, "--iterations", 60, via="native"))
        self.need_papaya()
        seen = set()
        for wait in ("auto", "spin", "yield", "block"):
            job = self.job(4, path, "--iterations", 60, env={**LEADER, "PAPAYA_WAIT": wait})
            seen.add(checksum(job))
            self.check_leader(job)
        self.assertEqual(len(seen), 1, seen)
        checksum(self.job(4, path, "--iterations", 60, env={**LEADER, "PAPAYA_ORDER": "arrival"}))

    # The output folder

    def test_default_output(self):
        job = self.job(2, program("calls"), "blocking", env={"PAPAYA_OUTPUT": None}, cwd=self.scratch)
        self.check_right(job, 2, quiet=False)
        self.need_papaya()
        folders = list(self.scratch.glob("papaya.*"))
        self.assertEqual(len(folders), 1)
        self.assertRegex(folders[0].name, rf"^papaya\.calls-{mpi}\.2\.[^.]+$")
        self.assertLessEqual({"README", "papaya.cfg", "rank-00000.pap", "rank-00001.pap", "report.txt", "report.json"},
                             set(os.listdir(folders[0])))
        settings = (folders[0] / "papaya.cfg").read_text()
        for name in VARIABLES:
            self.assertIn(name, settings)
        self.assertIn("MPI_Allreduce", (folders[0] / "report.txt").read_text())
        self.assertIn("MPI_Allreduce", self.papaya("report", folders[0]))

    def test_output_exists(self):
        folder = self.scratch / "results"
        folder.mkdir()
        (folder / "precious").write_text("keep me")
        for _ in range(3):
            job = self.job(2, program("calls"), "blocking", env={"PAPAYA_OUTPUT": str(folder)})
            self.check_right(job, 2, quiet=False)
            self.check_counts(job)
        self.assertFalse((folder / "precious").exists())
        kept = [path for path in self.scratch.rglob("precious")]
        self.assertEqual([path.read_text() for path in kept], ["keep me"])
        self.assertEqual(len(list(self.scratch.rglob("report.json"))), 3)

    def test_output_unwritable(self):
        for place in ("/dev/null/x", "/proc/papaya-test"):
            # The records go to the folder for temporary files then.
            job = self.job(2, program("calls"), "blocking",
                           env={**LEADER, "PAPAYA_OUTPUT": place, "TMPDIR": str(self.scratch)})
            self.check_right(job, 2, quiet=False)
            if not native_only:
                warnings = [line for line in job.said() if not line.startswith("papaya: report in ")]
                self.assertEqual(len(warnings), 1, job.said())
                self.assertIn(place, warnings[0])
                reports = list(self.scratch.rglob("report.json"))
                self.assertEqual(len(reports), 1)
                self.assertTrue(reports[0].parent.name.startswith("papaya.calls"))
                shutil.rmtree(reports[0].parent)
        self.need_papaya()

    def test_output_full(self):
        """A file system with no room: a mapped file without pages behind it would be SIGBUS."""
        place = self.scratch / "small"
        place.mkdir()
        for size in ("16k", "512k"):
            for profile in ("summary", "trace"):
                with self.small_file_system(place, size) as wrapper:
                    env = {**LEADER, "PAPAYA_OUTPUT": str(place / "out"), "PAPAYA_PROFILE": profile}
                    job = self.job(2, program("calls"), "blocking", env=env, wrapper=wrapper)
                    self.check_right(job, 2, quiet=False)
                    if not native_only:
                        self.assertIn(len(job.said()), (1, 2), job.said())
        self.need_papaya()

    def test_output_place(self):
        """Folders that must stay where they are, and files, are left alone: the records go elsewhere, one sentence."""
        temporary = self.scratch / "temporary"
        work = self.scratch / "outer" / "work"
        for folder in (temporary, work):
            folder.mkdir(parents=True)
        file = self.scratch / "notes"
        file.write_text("keep me")
        (work / "precious").write_text("keep me")
        env = {**LEADER, "TMPDIR": str(temporary)}
        for place in (file, work, work.parent, f"{work}/", ".", ".."):
            with self.subTest(place=place):
                job = self.job(2, program("loop"), 20, env={**env, "PAPAYA_OUTPUT": str(place)}, cwd=work)
                self.check_right(job, 2, quiet=False)
                self.assertEqual((file.read_text(), (work / "precious").read_text()), ("keep me", "keep me"))
                if native_only:
                    continue
                warnings = [line for line in job.said() if not line.startswith("papaya: report in ")]
                self.assertEqual(len(warnings), 1, job.said())
                self.assertEqual(os.listdir(work), ["precious"])
                self.assertEqual(sorted(os.listdir(self.scratch)), ["notes", "outer", "stderr", "stdout", "temporary"])
                reports = list(temporary.rglob("report.json"))
                # "." and ".." are no names for a folder elsewhere.
                self.assertEqual(len(reports), 1)
                for report in reports:
                    shutil.rmtree(report.parent)
        self.need_papaya()
        # A trailing slash, then the same folder again: the first one gets another name.
        for number in (1, 2):
            job = self.job(2, program("loop"), 20, env={**env, "PAPAYA_OUTPUT": "records/"}, cwd=work)
            self.check_right(job, 2, quiet=False)
            self.assertEqual(len(job.said()), 1, job.said())
            self.assertEqual(sorted(os.listdir(work)), ["precious", "records", "records.1"][:number + 1])
            self.assertEqual(len(list(work.glob("records*/report.json"))), number)

    def test_output_shared(self):
        """Jobs that start together with one PAPAYA_OUTPUT: each has its own complete folder."""
        for attempt in range(3):
            shared = self.scratch / f"shared{attempt}"
            started = []
            for number in range(3):
                command, environment, marker, _ = self.launch(2, [program("loop"), 30], "run",
                                                              {"PAPAYA_OUTPUT": str(shared)}, None)
                with open(self.scratch / f"together{number}", "wb") as text:
                    started.append((marker, text.name, subprocess.Popen(
                        command, env=environment, cwd=self.scratch, stdin=subprocess.DEVNULL, stdout=text,
                        stderr=subprocess.STDOUT, start_new_session=True)))
            try:
                for _, text, process in started:
                    self.assertEqual(process.wait(20), 0, pathlib.Path(text).read_text())
            finally:
                for marker, _, process in started:
                    if process.poll() is None:
                        kill_all(marker)
            if native_only:
                continue
            folders = sorted(self.scratch.glob(f"shared{attempt}*"))
            self.assertEqual([path.name for path in folders], [f"shared{attempt}{end}" for end in ("", ".1", ".2")])
            for folder in folders:
                self.assertLessEqual({"README", "papaya.cfg", "rank-00000.pap", "rank-00001.pap", "report.json",
                                      "report.txt"}, set(os.listdir(folder)))
                self.assertIn("MPI_Allreduce", self.papaya("report", folder, code=0))
        self.need_papaya()

    def test_output_other_node(self):
        """On a node with a file system of its own the output folder's name may be taken: nobody's files are touched."""
        self.need_papaya()
        place = self.scratch / "place"
        place.mkdir()
        with self.small_file_system(place, "64m"):
            pass
        shared = self.scratch / "seen"
        mount = f"mount -t tmpfs -o size=64m none {place}"
        runner = [str(build / "papaya"), "run", program("launched")]
        for folder, prepared in ((place / "new", "true"), (place / "old", f"mkdir {place}/old && echo precious > {place}/old/rank-00001.pap"),
                                 (shared, "true")):
            shell = ["unshare", "-m", "sh", "-c",
                     f'{mount} && {prepared} && "$@"; code=$?; cd {place} && ls -d * */* | sed "s/^/there /"; cat old/*; exit $code', "sh"]
            job = self.job(1, *runner, ":", "-n", "1", *shell, *runner, via="",
                           env={"PAPAYA_OUTPUT": str(folder), "PAPAYA_NODE_SIZE": "1"})
            self.check_right(job, 2, quiet=False)
            there = {line.split()[1] for line in job.out.splitlines() if line.startswith("there ")}
            complaints = [line for line in job.said() if "report in" not in line]
            if folder == shared:
                self.assertEqual((there, complaints), (set(), []))
                self.assertTrue((folder / "rank-00001.pap").exists())
            elif folder.name == "new":
                self.assertEqual((there, complaints), ({"new", "new/rank-00001.pap"}, []))
            else:
                self.assertEqual(there, {"old", "old/rank-00001.pap", "old.node1", "old.node1/rank-00001.pap"})
                self.assertIn("precious", job.out)
                self.assertEqual(len(complaints), 1)
                self.assertIn(f"{folder} exists on node 1 and is not this job's", complaints[0])

    def test_signals(self):
        """SIGUSR1 inside MPI_Finalize ends nobody, and the answer to it goes through nobody's link."""
        native = self.job(2, program("launched"), via="native")
        self.check_right(native, 2)
        self.need_papaya()
        victim = self.scratch / "victim"
        victim.write_text("precious")
        job = self.job(2, program("launched"), "planted", victim, "signal")
        self.check_right(job, 2, quiet=False)
        self.assertEqual(job.out.count("finalized"), 2)
        self.assertIn("asked by SIGUSR1", job.err)
        self.assertNotIn("asked.txt", job.err)
        self.assertEqual(victim.read_text(), "precious")

    def test_file_limit(self):
        """ulimit -f: a file made larger than allowed would be SIGXFSZ."""
        compared = 0
        for blocks in (40000, 10000):  # of 512 bytes
            limited = ["sh", "-c", f'ulimit -f {blocks}; exec "$@"', "sh"]
            for profile in ("summary", "trace"):
                if self.job(2, program("calls"), "blocking", via="native", wrapper=limited).code != 0 or native_only:
                    continue
                compared += 1
                env = {**LEADER, "PAPAYA_PROFILE": profile}
                job = self.job(2, program("calls"), "blocking", env=env, wrapper=limited, timeout=20)
                self.check_right(job, 2, quiet=False)
                self.assertIn(len(job.said()), (1, 2), job.said())
                if profile == "trace":  # whose records are larger than either limit
                    self.assertIn("ulimit -f", job.err)
        self.need_papaya()
        if compared == 0:
            self.skipTest(f"{mpi} itself fails with a limit for files")

    def test_rank_unwritable(self):
        """One node cannot write its record: the job goes on without it."""
        rank = {"openmpi": "OMPI_COMM_WORLD_RANK", "mpich": "PMI_RANK"}[mpi]
        limit = 40000  # blocks of 512 bytes
        for bad in (0, 1):
            script = f'if [ "${rank}" = {bad} ]; then trap "" XFSZ; ulimit -f {limit}; fi; exec "$@"'
            words = ["sh", "-c", script, "sh"]
            native = self.job(2, *words, program("calls"), "blocking", via="native")
            if native.code != 0:
                self.skipTest(f"{mpi} itself fails with a limit for files")
            if native_only:
                continue
            env = {**LEADER, "PAPAYA_NODE_SIZE": "1", "PAPAYA_PROFILE": "trace"}
            job = self.job(2, *words, build / "papaya", "run", program("calls"), "blocking", via="", env=env,
                           timeout=20)
            self.check_right(job, 2, quiet=False)
            self.assertEqual(job.counts(), native.counts())
            self.assertIn("1 of 2 ranks", job.err)
            self.assertLessEqual(len(job.said()), 3, job.said())  # also that the algorithm needs one node
        self.need_papaya()

    def test_descriptors(self):
        """The program closes papaya's descriptors and opens files in their place: these are its own."""
        self.compare_all(2, [program("closes")])
        for rank in (0, 1):
            self.assertEqual((self.scratch / f"own.{rank}").read_text(), "before\nafter\n")

    def test_folder_with_space(self):
        """The dynamic loader would not find the library: one sentence and an error instead of a run without it."""
        self.need_papaya()
        for name in ("with space", "with:colon"):
            place = self.scratch / name
            place.mkdir()
            for path in [build / "papaya", *build.glob("libpapaya*.so")]:
                shutil.copy2(path, place)
            done = subprocess.run([str(place / "papaya"), "run", "echo", "it ran"], env=clean_environment(),
                                  cwd=self.scratch, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True, timeout=10, check=False)
            self.assertNotEqual(done.returncode, 0)
            self.assertEqual(done.stdout, "")
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
            self.assertIn(name, done.stderr)

    def test_rank_file_damaged(self):
        job = self.job(3, program("calls"), "blocking")
        self.check_right(job, 3)
        self.need_papaya()

        def copy(name):
            folder = self.scratch / name
            shutil.copytree(job.folder, folder)
            for path in folder.glob("report.*"):
                path.unlink()
            return folder, folder / "rank-00001.pap"

        folder, file = copy("whole")
        self.assertIn("MPI_Allreduce", self.papaya("report", folder, code=0))
        size = file.stat().st_size
        for kept in (0, 7, 100, 8192, size // 2, size - 1):
            folder, file = copy(f"cut{kept}")
            os.truncate(file, kept)
            text = self.papaya("report", folder, code=3)
            self.assertIn("rank-00001.pap", text)
            self.assertIn("MPI_Allreduce", text)
        folder, file = copy("missing")
        file.unlink()
        text = self.papaya("report", folder, code=3)
        self.assertIn("MPI_Allreduce", text)
        folder, file = copy("noise")
        file.write_bytes(bytes(range(256)) * 100)
        self.assertIn("rank-00001.pap", self.papaya("report", folder, code=3))
        folder, file = copy("version")
        with open(file, "r+b") as opened:
            opened.seek(8)  # Header::version
            opened.write(struct.pack("=I", 99))
        text = self.papaya("report", folder, code=4)
        self.assertIn("version", text)
        self.assertIn("rank-00001.pap", text)
        # Offsets and counts that point outside of the file.
        for offset in range(24, 80, 8):
            folder, file = copy(f"offset{offset}")
            with open(file, "r+b") as opened:
                opened.seek(offset)
                opened.write(struct.pack("=Q", 1 << 62))
            self.papaya("report", folder, code=(0, 3))
        (self.scratch / "empty").mkdir()
        self.papaya("report", self.scratch / "empty", code=(1, 2, 3))

    # Shared memory

    def test_shm_limit(self):
        for limit in ("0", "1", "4K", "1M"):
            job = self.job(3, program("calls"), "blocking", env={**LEADER, "PAPAYA_SHM_LIMIT": limit})
            self.check_right(job, 3, quiet=False)
            if native_only:
                continue
            self.check_counts(job)
            # One sentence, as long as there is something that it is too little for.
            said = [line for line in job.complaints() if "names arrival_leader" in line and "PAPAYA_SHM_LIMIT" in line]
            self.assertEqual(job.complaints(), said)
            self.assertEqual(len(said), 0 if limit == "1M" else 1)
            if limit in ("0", "1"):
                rows = [row for row in job.report()["algorithms"] if "Allreduce" in row["collective"]]
                self.assertEqual({row["algorithm"] for row in rows}, {"native"})
                self.assertTrue(all(row["reason"] for row in rows), rows)
        self.need_papaya()
        # Between nodes as well. (Open MPI 4.1 hangs at the end of small windows.)
        for transport in ("mpi", "auto"):
            for limit in ("0", "4K", "100K") if mpi == "openmpi" else ("4K",):
                env = {"PAPAYA_ALLREDUCE": "ring", "PAPAYA_SHM_LIMIT": limit, "PAPAYA_NODE_SIZE": "1", "PAPAYA_TRANSPORT": transport}
                job = self.job(3 if mpi == "openmpi" else 2, program("calls"), "blocking", env=env, timeout=30)
                self.check_right(job, 3 if mpi == "openmpi" else 2, quiet=False)
                self.assertEqual(len(job.complaints()), 1, job.err)
                self.assertIn("PAPAYA_SHM_LIMIT or /dev/shm leaves too little memory", job.complaints()[0])
        job = self.job(2, program("calls"), "blocking", env={"PAPAYA_ALLREDUCE": "ring", "PAPAYA_SHM_LIMIT": "999999G",
                                                             "PAPAYA_NODE_SIZE": "1"})
        self.check_right(job, 2, quiet=False)
        self.assertRegex(job.complaints()[0], "PAPAYA_SHM_LIMIT=999999G: ranks of other nodes get [0-9]+ MiB")

    def test_full_shm(self):
        # Open MPI's own buffers go elsewhere, or it would be the one to fail.
        env = {"OMPI_MCA_btl_vader_backing_directory": str(self.scratch)}
        with self.small_file_system("/dev/shm", "64m") as wrapper:
            native = self.job(2, program("full_shm"), via="native", env=env, wrapper=wrapper)
            if native.code != 0:
                self.skipTest(f"{mpi} itself fails with a full /dev/shm")
            self.need_papaya()
            old_kernel = [*wrapper, str(build / "tests/old_kernel")]
            for choice, wrapped in (("auto", wrapper), ("arrival_leader", wrapper), ("arrival_leader", old_kernel)):
                job = self.job(2, program("full_shm"), env={**env, "PAPAYA_ALLREDUCE": choice}, wrapper=wrapped)
                if job.code == 77:
                    continue  # what this needs is not permitted here
                self.check_right(job, 2, quiet=False)
                self.check_counts(job)

    def test_own_window(self):
        """A small /dev/shm has room for a window of the program's beside what papaya takes of it."""
        with self.small_file_system("/dev/shm", "64m") as wrapper:
            job = self.job(2, build / f"tests/mpi_node_window-{mpi}", "small", via="native", wrapper=wrapper)
            self.assertEqual((job.code, job.out), (0, ""))
            native = self.job(2, program("own_window"), via="native", wrapper=wrapper)
            self.check_right(native, 2)
            self.need_papaya()
            for choice in ("auto", "arrival_tree"):
                job = self.job(2, program("own_window"), env={"PAPAYA_ALLREDUCE": choice}, wrapper=wrapper)
                self.check_right(job, 2, quiet=False)
                self.check_counts(job)
                self.assertGreater(sum(calls for name, calls in job.allreduce_algorithms().items() if name != "native"), 0)

    # Which MPI

    def test_two_mpis(self):
        other = {"openmpi": "libmpich.so.12", "mpich": "libmpi.so.40"}[mpi]
        native = self.job(2, program("two_mpis"), other, via="native")
        if "skipped:" in native.err:
            self.skipTest("the other MPI is not installed")
        self.check_right(native, 2)
        self.need_papaya()
        for way in ("run", "preload"):
            job = self.job(2, program("two_mpis"), other, via=way, env=LEADER)
            self.check_right(job, 2, quiet=False)
            lines = [line for line in job.said() if "two MPI" in line]
            self.assertIn(len(lines), (1, 2), job.said())  # one of each process at most
            self.assertEqual(len(job.said()), len(lines), job.said())

    def test_unknown_mpi(self):
        command = [str(build / "tests/preload/fake_user")]
        expected = "rank 0, code 9321, result 1 2 3\n"
        environment = clean_environment()
        native = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=False)
        self.assertEqual((native.returncode, native.stdout), (0, expected))
        self.need_papaya()
        preloaded = {**environment, "LD_PRELOAD": str(build / "libpapaya.so")}
        for line, env in ((command, preloaded), ([str(build / "papaya"), "run", *command], environment)):
            job = subprocess.run(line, env=env, cwd=self.scratch, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, text=True, timeout=20, check=False)
            self.assertEqual((job.returncode, job.stdout), (0, expected), job.stderr)
            self.assertEqual(len(job.stderr.splitlines()), 1, job.stderr)
            self.assertRegex(job.stderr, r"^papaya: .*MPI")
        self.assertEqual(list(self.scratch.glob("papaya.*")), [])

    def test_device_memory(self):
        devices = {"cuMemcpy": "libcuda.so.1", "hipMemcpy": "libamdhip64.so.6",
                   "zeCommandListAppendMemoryCopy": "libze_loader.so.1"}
        devices = {copy: build / "tests/preload" / library for copy, library in devices.items()}
        env = {**LEADER, "PAPAYA_ALLTOALL": "arrival_alltoall", "PAPAYA_BCAST": "arrival_bcast",
               "PAPAYA_REDUCE": "arrival_tree"}
        vetoed = "device memory, or no memory to deposit in, on one of the ranks"
        for ranks, library in zip((3, 2, 2), devices.values()):
            with self.subTest(library=library.name):
                if ranks == 3 or native_only:
                    self.check_right(self.job(ranks, program("device"), library, via="native"), ranks)
                if native_only:
                    continue
                job = self.job(ranks, program("device"), library, env=env, timeout=20)
                self.check_right(job, ranks)
                self.check_counts(job)
                calls = {(row["collective"], row["algorithm"], row["reason"]): row["calls"]
                         for row in job.report()["algorithms"]}
                self.assertEqual(calls, {("MPI_Allreduce", "arrival_leader", ""): 21 * ranks,
                                         ("MPI_Allreduce", "native", vetoed): 20 * ranks,
                                         ("MPI_Alltoallv", "arrival_alltoall", ""): 10 * ranks,
                                         ("MPI_Alltoallv", "native", vetoed): 10 * ranks})
        self.need_papaya()
        # Copied by the runtime: as it is, or only with a context of CUDA's; at last not at all.
        works, wants_context, has_no_context, answers_in_context, fails = range(5)
        for copy, library in devices.items():
            modes = (wants_context, has_no_context, answers_in_context) if copy == "cuMemcpy" else ()
            for mode in (works, *modes):
                with self.subTest(copy=copy, mode=mode):
                    job = self.job(2, program("device"), library, "copied", mode, env=env, timeout=20)
                    self.check_right(job, 2)
                    self.check_counts(job)
                    natively = {row["reason"] for row in job.report()["algorithms"] if row["algorithm"] == "native"}
                    self.assertEqual(natively, {"the communicator has made too few calls yet"})
            with self.subTest(copy=copy, mode=fails):
                job = self.job(2, program("device"), library, "copied", fails, env=env, timeout=20)
                self.assertNotEqual(job.code, 0)
                said = [line for line in job.said() if copy in line]
                self.assertIn(len(said), (1, 2), job.err)
                self.assertRegex(said[0], f"{copy}.* failed with error [0-9]+.*PAPAYA_DISABLE=1")

    # Threads, progress, communicators

    def test_progress(self):
        modes = {"receive": 3, "send": 2, "chain": 3, "window": 2, "pair": 3}
        for mode, ranks in modes.items():
            self.check_right(self.job(ranks, program("progress"), mode, via="native", timeout=20), ranks)
        self.need_papaya()
        for mode, ranks in modes.items():
            for wait in ("auto", "spin", "yield", "block"):
                job = self.job(ranks, program("progress"), mode, env={**LEADER, "PAPAYA_WAIT": wait}, timeout=20)
                self.check_right(job, ranks)
                self.check_leader(job)

    def test_progress_of_small_operations(self):
        """Operations that need a rank which has been waiting for long do not each wait until it wakes up."""
        for mode in ("sends", "fetches"):
            self.check_right(self.job(2, program("progress"), mode, via="native", timeout=20), 2)
        self.need_papaya()
        across = {"PAPAYA_ALLREDUCE": "dissemination", "PAPAYA_NODE_SIZE": "1"}
        for mode, algorithm, env in (("sends", "arrival_leader", {}), ("fetches", "arrival_leader", {}),
                                     ("sends", "arrival_leader", {"PAPAYA_WAIT": "block"}),
                                     ("fetches", "arrival_leader", {"PAPAYA_WAIT": "block"}), ("sends", "dissemination", across)):
            job = self.job(2, program("progress"), mode, env={**LEADER, **env}, timeout=20)
            self.check_right(job, 2)
            self.assertGreater(job.allreduce_algorithms().get(algorithm, 0), 0)

    def nonblocking(self, ranks, way, node_size=0, env=None, timeout=30, quiet=True):
        """One job of the program of that name. Returns {algorithm or reason: calls} of its nonblocking calls."""
        job = self.job(ranks, program("nonblocking"), way, timeout=timeout,
                       env={**NONBLOCKING, "PAPAYA_NODE_SIZE": str(node_size), **(env or {})})
        self.check_right(job, ranks, quiet)
        self.check_counts(job)
        calls = collections.Counter()
        for row in job.report()["algorithms"]:
            if row["collective"].startswith("MPI_I"):
                calls[row["reason"] or row["algorithm"]] += row["calls"]
        return calls

    def call_sites(self, *words, ranks=2, env=None):
        """{collective: the names of its first call site's frames}, and the sites themselves, of one job."""
        job = self.job(ranks, *words, env=env)
        self.check_right(job, ranks)
        sites = json.loads(self.papaya("report", "--json", job.folder))["call_sites"]
        return {site["name"]: [frame["function"] for frame in site["frames"]] for site in reversed(sites)}, sites, job

    def test_call_sites(self):
        self.need_papaya()
        words = [program("call_sites")]
        names, sites, job = self.call_sites(*words)
        self.assertEqual(names, {"MPI_Allreduce": ["inner"], "MPI_Bcast": ["elsewhere"]})
        source = (pathlib.Path(__file__).parent / "call_sites.c").read_text().splitlines()
        for site in sites:
            frame = site["frames"][0]
            self.assertTrue(frame["file"].endswith("call_sites.c"))
            self.assertIn(f"line of {frame['function']}", source[frame["line"] - 1])
            self.assertEqual((site["calls"], site["compared_calls"]), (40, 20))
            self.assertEqual(os.path.realpath(frame["module"]), os.path.realpath(words[0]))
        bcast = next(site for site in sites if site["name"] == "MPI_Bcast")
        self.assertEqual(bcast["last"][0]["rank"], 1)
        self.assertGreater(bcast["waiting_seconds"], 0.02)
        text = self.papaya("report", job.folder)
        self.assertRegex(text, r"MPI_Bcast .*rank 1, .*\n    elsewhere \(call_sites.c:\d+\)\n")
        # In MPI_Finalize nothing is symbolised.
        self.assertRegex((job.folder / "report.txt").read_text(), r"MPI_Bcast .*rank 1, .*\n    call_sites-\w+\+0x")

        names, sites, job = self.call_sites(*words, env={"PAPAYA_CALLSITES": "3"})
        self.assertEqual(names, {"MPI_Allreduce": ["inner", "outer", "main"],
                                 "MPI_Bcast": ["elsewhere", "main", names["MPI_Bcast"][2]]})
        # The same where a call is replaced, whose record begins within the algorithm.
        again, sites, job = self.call_sites(*words, env={"PAPAYA_CALLSITES": "3", "PAPAYA_ALLREDUCE": "arrival_leader",
                                                         "PAPAYA_BCAST": "arrival_bcast"})
        self.assertEqual(set(job.allreduce_algorithms()), {"arrival_leader"})
        self.assertEqual(again, names)
        self.assertEqual(self.call_sites(*words, env={"PAPAYA_CALLSITES": "0"})[0], {})
        # A program that is no longer what ran.
        changed = self.scratch / "changed"
        shutil.copy(words[0], changed)
        job = self.call_sites(changed)[2]
        shutil.copy(program("loop"), changed)
        text = self.papaya("report", job.folder)
        self.assertIn("changed has changed since the run", " ".join(text.split()))
        self.assertRegex(text, r"MPI_Bcast .*\n    changed\+0x")
        if (build / "tests" / "preload" / f"fortran_mpifh-{mpi}").exists():
            for binding in ("mpifh", "usempi", "f08"):
                names = self.call_sites(build / "tests" / "preload" / f"fortran_{binding}-{mpi}")[0]
                self.assertEqual(names["MPI_Allreduce"], [names["MPI_Bcast"][0]])
                self.assertRegex(names["MPI_Allreduce"][0], "MAIN__|calls|main")

    def stalls(self, mode, *, said, file, code=0, **env):
        """What was said and written, and the job, of a job in which somebody does not come."""
        job = self.job(4, program("stalled"), mode, env={"PAPAYA_STALL_SECONDS": "2", **env})
        texts = [path.read_text() for path in job.folder.glob(file)]
        if len(texts) != 1 or (code is not None and job.code != code):
            self.show(job)
        self.assertEqual(len(texts), 1)
        if code is not None:
            self.assertEqual(job.code, code)
        self.assertEqual(len(re.findall(said, job.err)), 1, job.err)
        self.assertEqual(job.err.count(texts[0]), 1, job.err)
        self.assertRegex(job.err, rf"papaya: .*{said}")
        return texts[0], job

    def test_stalls(self):
        """A rank that does not come is named while the job runs, in MPI's collectives and in papaya's; and a SIGUSR1 asks."""
        self.need_papaya()
        for settings in ({}, {"PAPAYA_ALLREDUCE": "arrival_tree"}, {"PAPAYA_ALLREDUCE": "dissemination", "PAPAYA_NODE_SIZE": "2"},
                         {"PAPAYA_ALLREDUCE": "arrival_tree", "COLD": "1"}):  # the last while the algorithm is set up
            with self.subTest(settings):
                call = 0 if "COLD" in settings else 5
                text, job = self.stalls(
                    "late", said=f"no progress for 2 s in MPI_Allreduce, call {call} on MPI_COMM_WORLD: rank 2 is missing.",
                    file=f"stall-MPI_Allreduce-*-{call}.txt", **settings)
                self.assertRegex(
                    text, rf"^MPI_Allreduce, call {call} on MPI_COMM_WORLD: 3 of 4 ranks wait, for \d+ s \(ranks 0-1, 3, at stalled-")
                self.assertRegex(text, r"\n  Missing: rank 2.\n  rank 2 " + (
                    "has called no collective yet" if call == 0 else "last left MPI_Allreduce, call 4 on MPI_COMM_WORLD, at stalled-"))
                self.check_right(job, 4, quiet=False)
        text, job = self.stalls("differ", said=r"no progress for 2 s in MPI_.*, call 0 on forces: the ranks disagree about the collective.",
                                file="stall-*.txt", code=None)
        self.assertIn("Call 0 on forces: 4 of 4 ranks wait", text)
        self.assertIn("The ranks disagree about the collective: at call 0 on forces, rank 0 called MPI_Allreduce and rank 1 called "
                      "MPI_Barrier.", text)
        self.assertIn("energy() (stalled.c:", self.papaya("report", job.folder, code=3).replace("energy (", "energy() ("))
        text, job = self.stalls("asked", said="asked by SIGUSR1", file="asked.txt", PAPAYA_STALL_SECONDS="0")
        self.assertIn("3 of 4 ranks wait", text)
        self.check_right(job, 4, quiet=False)
        self.assertEqual(list(job.folder.glob("stall-*")), [])
        # The program's own handler, whenever it comes.
        for late in ({}, {"LATE_CLAIM": "1"}):
            job = self.job(2, program("stalled"), "claimed", env=late)
            self.check_right(job, 2)
            self.assertFalse((job.folder / "asked.txt").exists())
        # Without records a stall in an algorithm of papaya's is said as well.
        job = self.job(4, program("stalled"), "slow", env={"PAPAYA_STALL_SECONDS": "2", "PAPAYA_ALLREDUCE": "arrival_tree",
                                                           "PAPAYA_PROFILE": "off"})
        self.check_right(job, 4, quiet=False)
        self.assertRegex(job.err, "call 5 on MPI_COMM_WORLD .*missing: 2")
        # An algorithm of papaya's that MPI_Wait waits for: in its set-up, and with one that is there.
        job = self.job(3, program("stalled"), "chain", env={"PAPAYA_STALL_SECONDS": "2", "PAPAYA_IALLREDUCE": "ring"})
        self.check_right(job, 3)
        for settings, call, whom in (({"COLD": "1"}, 0, "ranks that have not come to it"),
                                     ({"PAPAYA_PROFILE": "off"}, 6, r"what comes from rank \d")):
            job = self.job(4, program("stalled"), "nonblocking", env={"PAPAYA_STALL_SECONDS": "2", "PAPAYA_IALLREDUCE": "ring", **settings})
            self.check_right(job, 4, quiet=False)
            self.assertRegex(job.err, rf"MPI_Iallreduce, call {call} on MPI_COMM_WORLD \(4 ranks\), cannot go on for \d s: rank 0 waits for {whom}")
            self.assertEqual(job.err.count("cannot go on"), 3)

    def test_phases(self):
        """Phases that the program names, and calls that it does not want recorded."""
        for settings in ({}, {"PAPAYA_ALLREDUCE": "arrival_tree"}):
            job = self.job(3, program("phases"), env=settings)
            self.check_right(job, 3)
            self.need_papaya()
            self.assertEqual(job.counts(), {"MPI_Allreduce": 3 * 60})
            report = job.report()
            self.assertEqual({phase["name"]: phase["calls"] for phase in report["phases"]},
                             {"": 3 * 4, "assembly": 3 * 16, "solve": 3 * 20})
            self.assertEqual({phase["name"]: phase["compared_calls"] for phase in report["phases"]},
                             {"": 4, "assembly": 16, "solve": 20})
            self.assertEqual(report["unrecorded_calls"], 3 * 20)
            self.assertEqual(report["compared_calls"], 40)
            self.assertIn("Not recorded, as the program had switched that off by MPI_Pcontrol: 60 calls", " ".join(report["notes"]))
            self.assertNotIn("Not compared", " ".join(report["notes"]))
            self.assertRegex((job.folder / "report.txt").read_text(), r"\nPhases of the program .*\n(.*\n)?  phase .*\n  (solve|assembly|\(none\)) ")
        # The same algorithms, recorded or not.
        self.assertEqual(set(job.allreduce_algorithms()), {"arrival_tree"})

    def test_ranks(self):
        """Only some ranks record, and the report knows."""
        self.need_papaya()
        job = self.job(5, program("phases"), env={"PAPAYA_RANKS": "2-4:2"})
        self.check_right(job, 5)
        self.assertEqual(sorted(path.name for path in job.folder.glob("*.pap")), [f"rank-{rank:05}.pap" for rank in (0, 2, 4)])
        report = job.report()
        self.assertEqual((report["ranks"], report["ranks_read"], report["partial"]), (5, 3, False))
        self.assertEqual(report["compared_calls"], 40)
        self.assertEqual({rank["rank"] for rank in report["late_ranks"]}, {0, 2, 4})
        self.assertIn("PAPAYA_RANKS leaves out 2 of 5 ranks", " ".join(report["notes"]))
        self.assertNotIn("usable record", " ".join(report["notes"]))
        self.papaya("report", job.folder, code=0)
        (job.folder / "rank-00002.pap").unlink()
        self.assertIn("No usable record of rank 2", self.papaya("report", job.folder, code=3))

    def test_trace(self):
        """A run as a table and as a timeline, whole and after it was killed."""
        self.need_papaya()
        job = self.call_sites(program("call_sites"))[2]
        rows = list(csv.DictReader(self.papaya("trace", "--csv", job.folder).splitlines()))
        counts = collections.Counter(row["collective"] for row in rows)
        self.assertEqual(counts, {"MPI_Allreduce": 40, "MPI_Bcast": 40})
        calls = collections.defaultdict(dict)
        for row in rows:
            calls[int(row["call"])][int(row["rank"])] = row
            self.assertLess(float(row["arrival_us"]), float(row["exit_us"]))
            self.assertEqual(row["communicator"], "MPI_COMM_WORLD")
            self.assertRegex(row["site"], r"^(inner|elsewhere) \(call_sites.c:\d+\)$")
        self.assertEqual(sorted(calls), list(range(40)))
        for by_rank in calls.values():
            self.assertEqual(min(float(row["late_us"]) for row in by_rank.values()), 0)
            self.assertLessEqual(sum(int(row["last"]) for row in by_rank.values()), 1)
            if by_rank[0]["collective"] == "MPI_Bcast":
                self.assertEqual(by_rank[1]["root"], "1")
        # Rank 1 sleeps before each; on a busy machine another may be later still now and then.
        late = [by_rank[1]["last"] for by_rank in calls.values() if float(by_rank[1]["late_us"]) > 1000]
        self.assertGreaterEqual(late.count("1"), 10)
        # The timeline: a slice for each call, and in it how long it waited for whom.
        self.papaya("trace", "--chrome", job.folder, "-o", self.scratch / "trace.json")
        events = json.loads((self.scratch / "trace.json").read_text())
        slices = [event for event in events if event["ph"] == "X"]
        self.assertEqual(sum(event["name"] in ("MPI_Allreduce", "MPI_Bcast") for event in slices), 80)
        waits = [event for event in slices if event["name"] == "waits for rank 1" and event["dur"] > 1000]
        self.assertGreaterEqual(len(waits), 10)
        for wait in waits:
            self.assertEqual(wait["pid"], 0)
            self.assertTrue(any(one["name"].startswith("MPI_") and one["pid"] == 0 and one["ts"] == wait["ts"] and
                                one["dur"] >= wait["dur"] for one in slices))
        late = [event for event in events if event["ph"] == "i" and event["pid"] == 1]
        self.assertGreaterEqual(len(late), 10)
        names = {event["args"]["name"] for event in events if event["name"] == "process_name"}
        self.assertEqual(len(names), 2)
        self.papaya("trace", "--csv", "--chrome", job.folder, code=2)
        # A rank that never left a call.
        killed = self.job(2, program("loop"), 40, "kill")
        events = json.loads(self.papaya("trace", "--chrome", killed.folder, code=3))
        self.assertTrue(any(event.get("args", {}).get("never left") for event in events))
        (killed.folder / "rank-00001.pap").unlink()
        self.papaya("trace", "--csv", killed.folder, code=3)

    def test_trace_otf2(self):
        """The same as an archive that OTF2's own tools read; times of each location ascend, and regions nest."""
        self.need_papaya()
        help_text = self.papaya("trace", "--help")
        if shutil.which("otf2-print") is None:
            self.skipTest("no otf2-print here (otf2-tools)")
        job = self.call_sites(program("call_sites"))[2]
        archive = self.scratch / "archive"
        refused = self.papaya("trace", "--otf2", job.folder, code=2)
        if "built with OTF2" in refused:
            self.skipTest("this papaya was built without OTF2 (libopen-trace-format2-dev)")
        self.assertIn("--otf2", help_text)
        self.assertIn("-o FOLDER", refused)

        def printed(*options, folder=archive):
            done = subprocess.run(["otf2-print", *options, str(folder / "traces.otf2")], stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True, check=False)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            return done.stdout

        def check_events(text):
            """Kinds of events and how many; each location's times ascend and its regions nest."""
            kinds, times, regions = collections.Counter(), collections.defaultdict(int), collections.defaultdict(list)
            for kind, location, time_text, rest in re.findall(r"^([A-Z_]+) +(\d+) +(\d+) *(.*)$", text, re.M):
                kinds[kind] += 1
                self.assertGreaterEqual(int(time_text), times[location])
                times[location] = int(time_text)
                if kind == "ENTER":
                    regions[location].append(rest)
                elif kind == "LEAVE":
                    self.assertEqual(regions[location].pop(), rest)
            self.assertEqual(sum(map(len, regions.values())), 0)
            return kinds

        self.papaya("trace", "--otf2", job.folder, "-o", archive)
        text = printed()
        self.assertEqual(check_events(text), {"ENTER": 80, "LEAVE": 80, "MPI_COLLECTIVE_BEGIN": 80, "MPI_COLLECTIVE_END": 80,
                                              "PARAMETER_STRING": 80})
        self.assertEqual(len(re.findall(r"Operation: BCAST, Communicator: \"MPI_COMM_WORLD\" <\d+>, Root: 1 ", text)), 40)
        self.assertEqual(len(re.findall(r"Operation: BCAST.*Sent: 4, Received: 0", text)), 20)
        self.assertEqual(len(re.findall(r"Operation: ALLREDUCE.*Root: NONE, Sent: 4, Received: 4", text)), 40)
        self.assertEqual(len(re.findall(r'"call site" <0>, Value: "elsewhere \(call_sites.c:', text)), 40)
        self.assertEqual(len(re.findall(r'"late_us" <\d+>; DOUBLE; 0\)', text)), 40)  # the first of each call
        self.assertIn('"algorithm" <3>; STRING; "native"', text)
        definitions = printed("-G")
        self.assertRegex(definitions, r"CLOCK_PROPERTIES +Ticks per Seconds: 1000000000, Global Offset: 0,")
        self.assertEqual(len(re.findall(r"^LOCATION_GROUP .*Type: PROCESS, Parent: \"node::", definitions, re.M)), 2)
        self.assertEqual(len(re.findall(r"^LOCATION .*# Events: 200,", definitions, re.M)), 2)
        self.assertRegex(definitions, r'(?m)^COMM .*Name: "MPI_COMM_WORLD"')
        self.assertRegex(definitions, r"(?m)^GROUP .*Type: COMM_GROUP, .*2 Members: 0 .*, 1 ")
        self.assertIn("exists already", self.papaya("trace", "--otf2", job.folder, "-o", archive, code=2))
        # Other collectives, communicators and threads, and a rank that was killed inside a call.
        for number, words in enumerate(([program("calls"), "blocking"], [program("calls"), "nonblocking"], [program("threads")],
                                        [program("loop"), 40, "kill"])):
            other = self.job(3, *words)
            folder = self.scratch / f"archive{number}"
            self.papaya("trace", "--otf2", other.folder, "-o", folder, code=(0, 3))
            kinds = check_events(printed(folder=folder))
            begun = json.loads(self.papaya("report", "--json", other.folder, code=(0, 3)))["events"]["begun"]
            self.assertEqual((kinds["ENTER"], kinds["LEAVE"]), (begun, begun))
            self.assertEqual(kinds["MPI_COLLECTIVE_BEGIN"], kinds["MPI_COLLECTIVE_END"])

    def spilled(self, job, ranks_calls):
        """Each call of a run with more calls than the ring holds is in the table once. Returns its head and its rows."""
        head, *lines = self.papaya("trace", "--csv", job.folder, code=(0, 3)).splitlines()
        names = head.split(",")
        rows = [line.split(",", len(names) - 1) for line in lines]  # quicker than csv, and no name here has a comma
        rank, communicator, call, collective = map(names.index, ("rank", "communicator", "call", "collective"))
        self.assertEqual(len({(row[rank], row[communicator], row[call]) for row in rows}), len(rows))
        counts = collections.Counter((int(row[rank]), row[collective]) for row in rows)
        self.assertEqual(counts, ranks_calls)
        return names, rows

    def many(self, calls, *what, env=None, ways=(1000, 10000, 30000), **more):
        """`many`, the slower the more, until the helper, which has to do with what the machine leaves, gets through in time."""
        for pause in ways:
            job = self.job(2, program("many"), calls, pause, *what, env={"PAPAYA_PROFILE": "trace", **(env or {})}, **more)
            if job.code == 77:
                self.skipTest(job.out.splitlines()[0])
            text = " ".join(self.papaya("report", job.folder, code=(0, 3)).split())
            if "faster than they could be written" not in text:
                break
        return job, text

    def test_trace_spilled(self):
        """More calls than the ring holds: each is in the trace once, whatever happens to the job."""
        self.need_papaya()
        calls = (1 << 20) + 60000
        every = {(0, "MPI_Barrier"): calls, (0, "MPI_Allreduce"): 3, (1, "MPI_Allreduce"): 3}
        job, text = self.many(calls)
        self.check_right(job, 2)
        self.assertNotIn("Dropped", text)
        self.spilled(job, every)
        self.assertIn("reads older calls", " ".join((job.folder / "report.txt").read_text().split()))
        # The file is compressed.
        size = (job.folder / "rank-00000.papz").stat().st_size
        self.assertGreater(size, 80)
        self.assertLess(size, 600000 * 64 / 4)
        # A thread is inside one call all the while.
        job, text = self.many(calls, "long")
        self.check_right(job, 2)
        names, rows = self.spilled(job, {**every, (0, "MPI_Bcast"): 1, (1, "MPI_Bcast"): 1})
        ends = {row[names.index("collective")]: row[names.index("exit_us")] for row in rows if row[0] == "0"}  # each kind's last
        self.assertGreater(float(ends["MPI_Bcast"]), float(ends["MPI_Barrier"]))
        # SIGKILL.
        job, text = self.many(calls, "kill")
        self.assertNotEqual(job.code, 0)
        self.assertNotIn("Dropped", text)
        events = json.loads(self.papaya("report", "--json", job.folder, code=3))["events"]
        self.assertEqual((events["begun"], events["kept"]), (calls + 5, calls + 5))
        # Little room: said at the end of the job and in the report.
        job, text = self.many(calls, env={"PAPAYA_TRACE_LIMIT": "20K"})
        self.check_right(job, 2, quiet=False)
        said = [line for line in job.said() if "PAPAYA_TRACE_LIMIT=20K" in line]
        self.assertEqual(len(said), 1, job.said())
        self.assertIn("1 of 2 ranks", said[0])
        self.assertLessEqual((job.folder / "rank-00000.papz").stat().st_size, 20 << 10)
        dropped = int(re.search(r"Dropped from the trace: ([\d,]+) of", text)[1].replace(",", ""))
        self.assertIn("limit of 20,480 bytes on rank 0; PAPAYA_TRACE_LIMIT", text)
        events = json.loads(self.papaya("report", "--json", job.folder))["events"]
        self.assertEqual((events["begun"], events["kept"]), (calls + 6, calls + 6 - dropped))
        # None: the ring alone.
        job = self.job(2, program("many"), 100, 0, env={"PAPAYA_PROFILE": "trace", "PAPAYA_TRACE_LIMIT": "0"})
        self.check_right(job, 2)
        self.assertEqual(sorted(path.name for path in job.folder.glob("*.papz")), [])

    def test_trace_disk_full(self):
        """A file system that has room for the rings and little more."""
        self.need_papaya()
        place = self.scratch / "small"
        place.mkdir()
        with self.small_file_system(place, 2 * 67739648 + 40000) as wrapper:
            copy = 'mv "$PAPAYA_OUTPUT" "$KEPT"'
            job = self.job(2, program("many"), (1 << 20) + 200000, 1000, wrapper=[*wrapper[:-2], wrapper[-2].replace(
                'exec "$@"', f'{{ "$@"; code=$?; {copy}; exit $code; }}'), "sh"],
                           env={"PAPAYA_PROFILE": "trace", "PAPAYA_OUTPUT": str(place / "out"), "KEPT": str(self.scratch / "kept")})
        self.check_right(job, 2, quiet=False)
        said = [line for line in job.said() if "traces of 1 of 2 ranks could not be written" in line]
        self.assertEqual(len(said), 1, job.said())
        text = " ".join(self.papaya("report", self.scratch / "kept").split())
        self.assertIn("Dropped from the trace", text)
        self.assertIn("No space left on device", text)

    def test_replay(self):
        """Recorded arrivals are a pattern of the benchmark's."""
        self.need_papaya()
        job = self.call_sites(program("call_sites"))[2]
        pattern = self.papaya("replay", "-c", "bcast", job.folder)
        lines = [line for line in pattern.splitlines() if not line.startswith("#")]
        self.assertEqual(len(lines), 20)
        arrivals = [list(map(float, line.split())) for line in lines]
        self.assertTrue(all(len(one) == 2 and min(one) == 0 for one in arrivals))
        self.assertGreaterEqual(sum(one[1] > 1000 for one in arrivals), 10)
        self.assertEqual(len(self.papaya("replay", job.folder).splitlines()), 43)  # three of them say what it is
        self.papaya("replay", "-c", "alltoall", job.folder, code=1)
        self.papaya("replay", "-c", "nosuch", job.folder, code=2)
        self.papaya("replay", "--communicator", "nosuch", job.folder, code=1)
        (self.scratch / "pattern").write_text(pattern)
        bench = self.job(2, build / "papaya", "bench", "bcast", "-m", "8", "-i", "20", "-x", "1", "--pattern",
                         f"replay:{self.scratch / 'pattern'}", via="native")
        self.assertEqual(bench.code, 0, bench.err)
        self.assertIn("arrivals replay", bench.out)

    def doctor(self, *words, env=None, code=0, ranks=None):
        """The checks by name, each [level, finding], of one run."""
        if ranks is None:
            environment = {**clean_environment(), **(env or {})}
            done = subprocess.run([str(build / "papaya"), "doctor", "--json", *map(str, words)], env=environment, cwd=self.scratch,
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                  timeout=60, check=False)
            out, returned = done.stdout, done.returncode
        else:
            job = self.job(ranks, build / "papaya", "doctor", "--json", *words, via="native", env=env)
            out, returned = job.out, job.code
        self.assertEqual(returned, code, out)
        found = json.loads(out[out.index("{"):out.rindex("}") + 1])
        self.assertEqual(found["problems"], sum(check["level"] == "problem" for check in found["checks"]))
        checks = collections.defaultdict(list)
        for check in found["checks"]:
            checks[check["name"]].append([check["level"], check["finding"]])
        return checks, found

    def test_ahead(self):
        """Whom MPI lets leave a bcast or a reduce early waits for nobody, whatever is set up or full meanwhile."""
        most = 4 if mpi == "openmpi" else 3
        for ranks in (2, most):
            for what in ("setup", "far", "behind"):
                with self.subTest(what=what, ranks=ranks):
                    job = self.job(ranks, program("ahead"), what)
                    self.check_right(job, ranks)
                    if native_only or what == "setup":
                        continue
                    rows = [row for row in job.report()["algorithms"] if row["collective"] in ("MPI_Bcast", "MPI_Reduce")]
                    self.assertLessEqual({"arrival_bcast", "arrival_leader"}, {row["algorithm"] for row in rows})
                    if what == "far":
                        self.assertIn("the root was too far ahead, or had no memory to deposit in", {row["reason"] for row in rows})
        if native_only:
            return
        for mode in ("spin", "yield", "block"):
            with self.subTest(wait=mode):
                self.check_right(self.job(2, program("ahead"), "far", env={"PAPAYA_WAIT": mode}), 2)
        # A small window, so that most communicators borrow memory, and there is not enough to borrow.
        settings = {"PAPAYA_SHM_LIMIT": "8M", "PAPAYA_BCAST": "arrival_bcast", "PAPAYA_REDUCE": "arrival_leader"}
        for ranks in (2, 3):
            with self.subTest(what="crowded", ranks=ranks):
                job = self.job(ranks, program("ahead"), "crowded", env=settings)
                self.check_right(job, ranks)
                rows = [row for row in job.report()["algorithms"] if row["collective"] in ("MPI_Bcast", "MPI_Reduce")]
                self.assertNotIn("PAPAYA_SHM_LIMIT or /dev/shm leaves too little memory", {row["reason"] for row in rows})
        # What is verified is left as early.
        job = self.job(2, program("ahead"), "far", env={"PAPAYA_VERIFY": "3"}, timeout=25)
        self.check_right(job, 2, quiet=False)
        self.assertRegex(job.err, r"papaya: \d+ verified results agree")
        for bcast, reduce, order in (("tree_bcast", "arrival_tree", "rank"), ("arrival_bcast", "arrival_chain", "arrival")):
            settings = {"PAPAYA_BCAST": bcast, "PAPAYA_REDUCE": reduce, "PAPAYA_ORDER": order}
            for what in ("setup", "behind"):
                with self.subTest(what=what, **settings):
                    job = self.job(3, program("ahead"), what, env=settings)
                    self.check_right(job, 3)
                    if what == "behind":
                        self.assertLessEqual({bcast, reduce}, {row["algorithm"] for row in job.report()["algorithms"]})
        # Across nodes, where algorithms are set up in calls that all wait in, and what finds no slot goes as messages.
        jobs = [(2, 1, "mpi", "notified_bcast", what) for what in ("setup", "far")]
        jobs += [(most, 2, "mpi", "hierarchical_bcast", what) for what in ("setup", "far", "freed", "behind")]
        if (build / "libpapaya-ucx.so").exists():
            jobs += [(2, 1, "ucx", "notified_bcast", "far"), (most, 2, "ucx", "hierarchical_bcast", "behind")]
        jobs = [(*job, "auto") for job in jobs] + [(2, 1, "mpi", "notified_bcast", "far", mode) for mode in ("spin", "yield", "block")]
        jobs.append((2, 0, "auto", "notified_bcast", "far", "auto"))  # a wire in the node's window
        for ranks, node_size, transport, bcast, what, mode in jobs:
            settings = {"PAPAYA_BCAST": bcast, "PAPAYA_REDUCE": "hierarchical_reduce", "PAPAYA_NODE_SIZE": node_size,
                        "PAPAYA_TRANSPORT": transport, "PAPAYA_WAIT": mode}
            with self.subTest(ranks=ranks, what=what, **settings):
                job = self.job(ranks, program("ahead"), what, env={name: str(value) for name, value in settings.items()}, timeout=30)
                self.check_right(job, ranks)
                rows = job.report()["algorithms"]
                served = {row["algorithm"]: row["calls"] for row in rows if row["collective"] in ("MPI_Bcast", "MPI_Reduce")
                          and row["algorithm"] != "native"}
                self.assertEqual(set(served), {bcast, "hierarchical_reduce"})
                if what == "far":  # all but the first
                    made = ranks * 2 * 3220
                    self.assertGreaterEqual(min(served.values()), made - ranks if node_size else made - 100)
        for node_size in ("1", "0"):
            with self.subTest(what="started", node_size=node_size):
                job = self.job(2, program("ahead"), "started", env={"PAPAYA_IBCAST": "notified_bcast", "PAPAYA_NODE_SIZE": node_size}, timeout=30)
                self.check_right(job, 2)
                rows = [row for row in job.report()["algorithms"] if row["collective"] == "MPI_Ibcast"]
                self.assertEqual([(row["algorithm"], row["calls"]) for row in rows], [("notified_bcast", 2 * 840)])

    def test_dist_graph(self):
        """Papaya makes no nonblocking call on the communicators of the program, and holds none on some ranks only."""
        self.check_right(self.job(4, program("dist_graph"), via="native", timeout=20), 4)
        self.need_papaya()
        for env in ({}, {"PAPAYA_IALLREDUCE": "ring"}):
            with self.subTest(**env):
                self.check_right(self.job(4, program("dist_graph"), env=env, timeout=20), 4)

    def test_early(self):
        """A rank that is late only at the beginning is named, though the record of single calls has lost that part."""
        self.need_papaya()
        for settings in ({}, {"PAPAYA_ALLREDUCE": "arrival_leader", "PAPAYA_CALLSITES": "2"}):
            job = self.job(2, program("early"), env=settings)
            self.check_right(job, 2)
            report = job.report()
            self.assertLess(report["events"]["kept"], report["events"]["begun"])
            whole = report["whole_run"]
            made = 40160 + 64
            # Each communicator's last block may not be whole.
            self.assertLessEqual(whole["calls"] + whole["given_up"], made)
            self.assertGreaterEqual(whole["calls"] + whole["given_up"], made - 16)
            self.assertLess(whole["given_up"], made / 10)
            self.assertEqual(sum(size["calls"] for size in whole["sizes"]), whole["calls"])
            self.assertEqual(sum(one["calls"] for one in whole["communicators"]), whole["calls"])
            self.assertEqual({one["name"] for one in whole["communicators"]}, {"MPI_COMM_WORLD", "dup of MPI_COMM_WORLD"})
            self.assertAlmostEqual(sum(rank["caused_waiting_seconds"] for rank in whole["late_ranks"]), whole["waiting_seconds"])
            text = " ".join(self.papaya("report", job.folder).split())
            self.assertIn("Over the whole run waiting for late ranks costs", text)
            self.assertRegex(text, r"Call sites over the whole run.* assemble.*Call sites \(calls and")
            self.assertNotIn("assemble", text[text.index("Call sites (calls and"):])
            named = json.loads(self.papaya("report", job.folder, "--json"))["whole_run"]["call_sites"]
            assembling = [site for site in named if site["frames"][0]["function"].startswith("assemble")]
            self.assertEqual(len(assembling), 1)
            self.assertEqual(assembling[0]["calls"], 160)
            self.assertEqual(assembling[0]["last"][0]["rank"], 1)
            self.assertGreater(assembling[0]["last"][0]["times_last"], 80)
            self.assertGreater(assembling[0]["last"][0]["caused_waiting_seconds"], 0.08)
            # A root that is there waits for nobody, and nobody for it.
            # Rank 1 comes 64 times a millisecond late; what remains is a root that the machine held up.
            # Should the machine hold it up for long, it does not do so each time.
            for attempt in range(3):
                told = [size["waiting_seconds"] for size in job.report()["whole_run"]["sizes"] if size["name"] == "MPI_Bcast"]
                self.assertEqual(len(told), 1)
                if told[0] < 0.03:
                    break
                self.assertLess(attempt, 2, told)
                job = self.job(2, program("early"), env=settings)
        # Nothing to tell that the single calls do not.
        job = self.job(2, program("phases"))
        self.assertNotIn("whole run", (job.folder / "report.txt").read_text().replace("of the whole run", ""))

    def test_doctor(self):
        self.need_papaya()
        other = {"openmpi": "mpich", "mpich": "openmpi"}[mpi]
        # A mpirun of this MPI comes first.
        first = self.scratch / "first"
        first.mkdir()
        (first / "mpirun").symlink_to(shutil.which(f"mpirun.{mpi}"))
        path = {"PATH": f"{first}:{os.environ['PATH']}"}

        checks, found = self.doctor(env=path)
        self.assertIn(mpi, checks["launcher"][0][1])
        for name in ("papaya", "preloads", "settings", "clock", "shared memory", "single copy", "cores", "libunwind", "output", "overhead"):
            self.assertIn(name, checks)
        self.assertEqual(checks["settings"], [["ok", "All PAPAYA_ variables have their defaults."]])
        overhead = found["overhead_ns"]
        self.assertGreater(overhead["no_frames"], 1)
        self.assertLess(overhead["no_frames"], 20000)
        self.assertGreater(overhead["one_frame"], 1)

        # The program's MPI, and a launcher of another.
        checks, _ = self.doctor(program("calls"), env=path)
        self.assertEqual([checks[name][0][0] for name in ("program", "MPI", "Fortran")], ["ok"] * 3)
        foreign = build / "tests" / "preload" / f"calls-{other}"
        if foreign.exists():
            checks, _ = self.doctor(foreign, env=path, code=1)
            self.assertEqual(checks["MPI"][0][0], "problem")
            self.assertIn(f"mpirun.{other}", checks["MPI"][0][1])
        checks, _ = self.doctor(build / "tests/preload/fake_user", env=path)
        self.assertIn("does not know", checks["MPI"][0][1])
        for binding, says in (("mpifh", "mpif.h or mpi"), ("usempi", "mpif.h or mpi"), ("f08", "mpi_f08")):
            if os.path.exists(program(f"fortran_{binding}")):
                checks, _ = self.doctor(program(f"fortran_{binding}"), env=path)
                self.assertEqual(checks["Fortran"][0][0], "ok")
                self.assertIn(says, checks["Fortran"][0][1])
        checks, _ = self.doctor(shutil.which("cat"), env=path)
        self.assertEqual(checks["MPI"][0][0], "warning")
        self.assertIn("no MPI", checks["MPI"][0][1])

        # What cannot be preloaded into.
        source = self.scratch / "static.c"
        source.write_text("int main(void) { return 0; }\n")
        static = self.scratch / "static"
        if subprocess.run(["cc", "-static", source, "-o", static], stderr=subprocess.DEVNULL, check=False).returncode == 0:
            checks, _ = self.doctor(static, code=1)
            self.assertIn("statically linked", checks["program"][0][1])
        setuid = self.scratch / "setuid"
        shutil.copy(program("calls"), setuid)
        setuid.chmod(0o4755)
        checks, _ = self.doctor(setuid, code=1)
        self.assertIn("setuid", checks["program"][0][1])
        script = self.scratch / "script"
        script.write_text("#!/bin/sh\nexec true\n")
        checks, _ = self.doctor(script, env=path)
        self.assertIn("script", checks["program"][0][1])
        self.doctor(self.scratch / "missing", code=1)
        # A program file cut anywhere, or with wrong bytes, is told from a good one.
        whole = pathlib.Path(program("calls")).read_bytes()
        for keep in (1, 4, 40, 64, 1000, len(whole) // 2):
            (self.scratch / "damaged").write_bytes(whole[:keep])
            self.papaya("doctor", self.scratch / "damaged", code=1)

        # The environment.
        checks, _ = self.doctor(env={"PAPAYA_ALREDUCE": "native", "PAPAYA_ALLREDUCE": "arrival_leder"})
        self.assertEqual({level for level, _ in checks["settings"]}, {"warning"})
        text = " ".join(finding for _, finding in checks["settings"])
        self.assertIn("did you mean PAPAYA_ALLREDUCE?", text)
        self.assertIn("did you mean arrival_leader?", text)
        checks, _ = self.doctor(env={"PAPAYA_SHM_LIMIT": "900G"})
        self.assertEqual(checks["shared memory"][0][0], "warning")
        checks, _ = self.doctor(env={"PAPAYA_OUTPUT": "/proc/none/out"}, code=1)
        self.assertEqual(checks["output"][0][0], "problem")
        # A library that is preloaded but is no tool that papaya knows, and one that has the name of one.
        with tempfile.TemporaryDirectory() as folder:
            tool = pathlib.Path(folder) / "libdarshan.so"
            shutil.copy(build / "tests/preload" / f"libplugin-{mpi}.so", tool)
            checks, _ = self.doctor(env={"LD_PRELOAD": str(tool)})
            self.assertIn("Darshan", checks["preloads"][0][1])

        # In a job: one rank speaks, and sees more ranks than cores.
        ranks = 2 * os.cpu_count()
        if ranks <= 16:
            checks, found = self.doctor(program("calls"), ranks=ranks)
            self.assertEqual((found["ranks"], found["ranks_here"]), (ranks, ranks))
            self.assertEqual(checks["cores"][0][0], "warning")
            self.assertEqual(checks["MPI"][0][0], "ok")
        job = self.job(2, build / "papaya", "doctor", via="native")
        self.assertEqual((job.code, job.out.count("ok       papaya ")), (0, 1), job.out)

    def test_compare(self):
        """What an algorithm saves shows between runs, and nothing does between a run and itself."""
        self.need_papaya()
        words = [build / "examples" / f"imbalanced-{mpi}", "--iterations", "60", "--sleep"]
        runs = []
        for choice in ("native", "arrival_leader"):
            job = self.job(2, *words, env={"PAPAYA_ALLREDUCE": choice})
            self.assertEqual(job.code, 0, job.err)
            runs.append(job.folder)
        native, leader = runs
        found = json.loads(self.papaya("compare", "--json", native, leader))
        self.assertEqual({row["name"] for row in found["collectives"]}, {"MPI_Allreduce", "MPI_Barrier"})
        self.assertEqual(sum(row["calls_before"] for row in found["collectives"] if row["name"] == "MPI_Allreduce"), 120)
        self.assertEqual([row["name"] for row in found["settings"]], ["PAPAYA_ALLREDUCE"])
        self.assertIn("arrival_leader 100 %", found["algorithms"][0]["after"])
        for row in found["collectives"] + found["call_sites"]:
            for change in (row["inside"], row["waiting"], row["excess"]):
                self.assertGreater(change["ratio"], 0)
                if change["low"] is not None:
                    self.assertLessEqual(change["low"], change["high"])
                    self.assertIn(change["outcome"], ("won", "neutral", "lost"))
        same = json.loads(self.papaya("compare", "--json", native, native))
        outcomes = {change["outcome"] for row in same["collectives"] for change in (row["inside"], row["waiting"], row["excess"])}
        self.assertLessEqual(outcomes, {"neutral", "unknown"})
        self.assertTrue(same["verdict"].startswith("Neutral"), same["verdict"])
        several = json.loads(self.papaya("compare", "--json", native, native, "--with", leader, leader))
        self.assertEqual((several["runs_before"], several["runs_after"]), (2, 2))
        self.assertIsNotNone(several["run"]["low"])
        self.assertIn("ratio (95 % interval)", self.papaya("compare", native, leader))
        # An estimate of the same from the native run alone.
        savings = json.loads(self.papaya("report", "--json", native))["savings"]
        self.assertGreater(savings["open_calls"], 100)
        self.assertGreater(savings["no_excess"]["rank_seconds"], 0)
        self.assertIn("arrival_leader", [name for one in savings["candidates"] for name in one["algorithm"].split(", ")])
        # What cannot be compared.
        self.papaya("compare", native, code=2)
        self.papaya("compare", native, self.scratch / "missing", code=2)
        other = self.job(3, *words, env={"PAPAYA_ALLREDUCE": "native"})
        self.assertIn("different numbers of ranks", self.papaya("compare", native, other.folder))
        record = bytearray((leader / "rank-00001.pap").read_bytes())
        record[8] ^= 0xff  # the version
        (leader / "rank-00001.pap").write_bytes(record)
        self.papaya("compare", native, leader, code=(1, 4))
        (leader / "rank-00001.pap").write_bytes(b"nothing")
        self.assertIn("no call in common", self.papaya("compare", native, leader, code=1))

    def test_nonblocking(self):
        # MPICH's ranks keep their cores while they wait: few of them, and natively no more than there are cores.
        few = 3 if mpi == "openmpi" else 2
        for way in ("results", "waits"):
            self.check_right(self.job(few, program("nonblocking"), way, via="native"), few)
        self.need_papaya()
        for ranks, node_size in ((2, 0), (2, 1), (3, 2), (5, 2)) if mpi == "openmpi" else ((2, 0), (2, 1), (3, 2)):
            for way in ("results", "waits"):
                calls = self.nonblocking(ranks, way, node_size)
                self.assertGreater(calls["ring"], 0)
                self.assertEqual(way == "results", calls["notified_bcast"] > 0 and calls["dissemination"] > 0)
        transports = ["mpi"] + (["ucx"] if (build / "libpapaya-ucx.so").exists() else [])
        for transport in transports:
            calls = self.nonblocking(2, "results", 1, {"PAPAYA_TRANSPORT": transport})
            self.assertGreater(calls["ring"], 0)
        for name in ("rsa", "dissemination", "0-1K:dissemination,1K-:native"):
            calls = self.nonblocking(2, "results", 1, {"PAPAYA_IALLREDUCE": name})
            self.assertGreater(calls[re.sub(r".*:(\w+),.*", r"\1", name)], 0)
        # Ranks that find no memory, or no window, run it natively, in the order of the calls.
        calls = self.nonblocking(2, "results", 0, {"PAPAYA_SHM_LIMIT": "64K"})
        self.assertGreater(calls["PAPAYA_SHM_LIMIT or /dev/shm leaves too little memory"], calls["ring"] + calls["notified_bcast"])
        calls = self.nonblocking(2, "waits", 1, {"PAPAYA_SHM_LIMIT": "64K"})
        self.assertGreater(calls["PAPAYA_SHM_LIMIT or /dev/shm leaves too little memory"], calls["ring"])
        calls = self.nonblocking(2, "results", 0, {name: "native" for name in NONBLOCKING})
        self.assertEqual(dict(calls), {})

    def test_nonblocking_exact(self):
        """What stays MPI's is the very call of the program, and moves papaya's operations on nevertheless."""
        native = self.job(4, program("nonblocking"), "exact", via="native")
        self.check_right(native, 4)
        self.need_papaya()
        for wait in ("auto", "spin", "yield", "block"):
            env = {"PAPAYA_WAIT": wait}
            if wait == "auto":
                job = self.job(4, program("nonblocking"), "exact", env={**NONBLOCKING, **env})
                self.check_right(job, 4)
                self.check_counts(job)
                self.assertEqual(re.findall("thread level .", native.out), re.findall("thread level .", job.out))
            self.assertGreater(self.nonblocking(2, "waits", 1, {**env, "PAPAYA_TRANSPORT": "mpi"})["ring"], 0)

    def test_nonblocking_local(self):
        """No start, test or early leaver waits for ranks that are not in MPI."""
        transports = ["mpi"] + (["ucx"] if (build / "libpapaya-ucx.so").exists() else [])
        for way in ("local", "early"):
            self.check_right(self.job(2, program("nonblocking"), way, via="native"), 2)
            if native_only:
                continue
            jobs = [{"PAPAYA_NODE_SIZE": "1", "PAPAYA_TRANSPORT": transport} for transport in transports]
            jobs += [{"PAPAYA_NODE_SIZE": "0", "PAPAYA_WAIT": "block"}]
            for env in jobs:
                env = {**env, "PAPAYA_BCAST": "notified_bcast", "PAPAYA_REDUCE": "hierarchical_reduce" if env["PAPAYA_NODE_SIZE"] == "1" else "native"}
                calls = self.nonblocking(2, way, 1, env)
                self.assertEqual(way == "local", calls["ring"] > 0 and calls["notified_bcast"] > 0 and calls["dissemination"] > 0)
        self.need_papaya()

    def test_nonblocking_over_tcp(self):
        """UCX moves nothing by itself: a rank that is through must not leave others without what it owes them."""
        if native_only or not (build / "libpapaya-ucx.so").exists():
            self.skipTest("there is no libpapaya-ucx.so: built without UCX, or native only")
        tcp = {"PAPAYA_TRANSPORT": "ucx", "UCX_TLS": "tcp,self"}
        missing = "no transport between the nodes to be had"
        # While some are still connecting to it, a rank that is through with that keeps UCX going. (MPICH goes over TCP
        # too then, and hangs in MPI_Finalize of three ranks, natively too.)
        if mpi == "openmpi":
            self.assertEqual(self.nonblocking(3, "results", 1, tcp)[missing], 0)
        # A send that UCX has not let go when the operation is through.
        slow = {**tcp, "SLOW_TURNS": "40", "LD_PRELOAD": str(build / "tests" / "preload" / "libslow_links.so")}
        calls = self.nonblocking(2, "leaves", 1, slow)
        self.assertEqual((calls["ring"], calls["notified_bcast"], calls["dissemination"]), (20, 20, 20))

    def test_nonblocking_threads(self):
        native = self.job(2, program("nonblocking"), "threads", via="native")
        if native.code == 77:
            self.skipTest(native.out.splitlines()[0])
        self.check_right(native, 2)
        self.need_papaya()
        for ranks, node_size in ((2, 0), (3, 2)):
            self.assertGreater(self.nonblocking(ranks, "threads", node_size)["ring"], 0)

    def test_nonblocking_fortran(self):
        for binding in ("mpifh", "f08"):
            path = program(f"fortran_{binding}")
            if not os.path.exists(path):
                self.skipTest(f"no Fortran compiler for {mpi} when this was configured")
            job = self.job(3, path, env=NONBLOCKING)
            self.check_right(job, 3)
            self.check_counts(job)

    def test_threads(self):
        self.check_program(2, program("threads"), ways=("run",))
        job = self.job(3, program("threads"), env=LEADER)
        self.check_right(job, 3)
        self.check_counts(job)
        self.check_leader(job)

    def test_communicators(self):
        # More than MPICH's 2048 contexts; Open MPI takes long to make a communicator where cores are busy.
        self.check_program(2, program("comm_churn"), {"openmpi": 500, "mpich": 1200}[mpi], ways=("run",))
        job = self.job(3, program("comm_churn"), 120, env=LEADER)
        self.check_right(job, 3)
        self.check_counts(job)

    def test_deposits(self):
        """Every communicator is served, however many there are and whatever the sizes of their messages."""
        env = {"PAPAYA_ALLREDUCE": "0-65536:arrival_leader,65537-:arrival_tree", "PAPAYA_ALLGATHER": "arrival_allgather",
               "PAPAYA_ALLTOALL": "arrival_alltoall", "PAPAYA_BCAST": "arrival_bcast",
               "PAPAYA_REDUCE": "0-65536:arrival_leader,65537-:arrival_tree"}
        for ranks, words in ((2, (120, 1, 1, 8)), (3, (8, 2, 4, 8))):
            job = self.job(ranks, program("deposits"), *words, env=env)
            if job.code == 77:
                continue
            self.check_right(job, ranks)
            self.check_counts(job)
            rows = job.report()["algorithms"]
            rooted = ("MPI_Bcast", "MPI_Reduce")
            natively = [row for row in rows if row["algorithm"] == "native" and row["collective"] not in rooted]
            self.assertEqual(natively, [])
            # All but those that each of three set-ups of a communicator takes, at most four.
            for collective in rooted:
                calls = {kind: sum(row["calls"] for row in rows
                                   if row["collective"] == collective and (row["algorithm"] == "native") == kind)
                         for kind in (False, True)}
                print(collective, "served", calls[False], "native", calls[True])
                self.assertGreater(calls[False], 1.5 * calls[True])

    def test_flat(self):
        """Memory, descriptors and windows stay where they are over 100,000 calls and 10,000 communicators."""
        for which in (0, -1):
            # A small window, which is soon full of what is not given back.
            env = {"PAPAYA_SHM_LIMIT": "4M"}
            for collective in COLLECTIVES:
                names = [name for name, order in variants(collective) if order == "rank"]
                env[f"PAPAYA_{collective.upper()}"] = names[which]
            job = self.job(2, program("flat"), 100000, 10000, env=env)
            print(job.err)
            self.check_right(job, 2)
            self.assertEqual(sum(job.counts().values()), 2 * (100000 + 2 * 10000 + 6 * 20 * 2))
            self.need_papaya()
            self.check_counts(job)
            natively = {row["collective"] for row in job.report()["algorithms"] if row["algorithm"] == "native"}
            self.assertLessEqual(natively, {"MPI_Bcast", "MPI_Reduce"}, "these set up without waiting, after some calls")

    def test_background(self):
        words = [build / "examples" / f"background_coordination-{mpi}", "--seconds", "0.3", "--rounds", "1"]
        for way, env in (("native", {}), ("run", {}), ("preload", LEADER)):
            job = self.job(2, *words, via=way, env=env)
            if job.code != 0:
                self.show(job)
            self.assertEqual(job.code, 0)
            self.assertRegex(job.out, r"(?m)^computing speed left: \d+\.\d\d$")
            self.assertNotIn("wrong", job.out)
            self.assertEqual(job.complaints(), [])
            if way != "native" and not native_only:
                self.assertGreater(sum(job.allreduce_algorithms().values()), 10)
        self.need_papaya()

    def horovod_calls(self, ranks, *words, env=None, via="run"):
        """A job of the example or of the library made from it, with all it has to say of its calls checked."""
        job = self.job(ranks, *words, env=env, via=via)
        done = re.findall(r"(?m)^horovod_calls: rank \d+ of \d+, (\d+) negotiations, (\d+) sums of gradients$", job.out)
        if job.code != 0 or len(done) != ranks or job.complaints():
            self.show(job)
        self.assertEqual((job.code, len(done), job.complaints()), (0, ranks, []))
        if via != "native" and not native_only:
            self.assertEqual(sum(job.allreduce_algorithms().values()), sum(int(n) + int(s) for n, s in done))
        return job

    def test_horovod_calls(self):
        words = [build / "examples" / f"horovod_calls-{mpi}", "--steps", "3", "--shrink", "8", "--layer-us", "1000"]
        self.horovod_calls(2, *words, via="native")
        self.horovod_calls(2, *words, "--half", via="native")
        self.need_papaya()
        for extra in ([], ["--half"]):
            self.horovod_calls(2, *words, *extra)
            for order in ("rank", "arrival"):
                env = {"PAPAYA_ALLREDUCE": "arrival_tree", "PAPAYA_BCAST": "arrival_bcast", "PAPAYA_ORDER": order}
                job = self.horovod_calls(3 if mpi == "openmpi" else 2, *words, *extra, env=env, via="preload")
                self.assertEqual(set(job.allreduce_algorithms()), {"arrival_tree"})
        report = self.papaya("report", job.folder)
        self.assertNotIn("Horovod", report)
        names = {row["name"]: row["calls"] for row in job.report()["communicators"]}
        self.assertGreater(names["dup of MPI_COMM_WORLD #2"], 0)
        self.assertEqual(names["dup of MPI_COMM_WORLD"], 0)

    def test_horovod(self):
        """Calls out of a library as Horovod's are shown in its terms."""
        self.need_papaya()
        library = self.scratch / "horovod" / "torch" / "mpi_lib_v2.cpython-311-x86_64-linux-gnu.so"
        library.parent.mkdir(parents=True)
        shutil.copy(build / "tests" / "preload" / f"mpi_lib_v2-{mpi}.so", library)
        job = self.horovod_calls(2, build / "tests" / "preload" / "plugin_host", library)
        # Without the names of functions, then with them.
        for report, text in ((job.report(), (job.folder / "report.txt").read_text()),
                             (json.loads(self.papaya("report", "--json", job.folder)), self.papaya("report", job.folder))):
            self.assertEqual(report["horovod"], library.name)
            names = {row["name"]: row["calls"] for row in report["communicators"]}
            self.assertGreater(names["Horovod global (dup of MPI_COMM_WORLD)"], 0)
            uses = collections.defaultdict(list)
            for site in report["call_sites"]:
                uses[site["horovod"]].append(site)
            self.assertEqual(set(uses) - {"names"}, {"negotiation", "gradients", "broadcast"})
            (negotiation,), (gradients,) = uses["negotiation"], uses["gradients"]
            self.assertEqual(negotiation["bytes"], 16 * negotiation["calls"])
            self.assertGreater(gradients["bytes"] / gradients["calls"], 1024)
            self.assertIn("gradients, summed in tensor-fusion buffers", text)
            self.assertRegex(text, r"\n    Horovod negotiation: ")
        self.assertEqual(negotiation["frames"][0]["function"], "horovod::common::MPIController::CrossRankBitwiseAnd()")
        self.assertEqual({site["name"] for site in uses["names"]}, {"MPI_Gather", "MPI_Gatherv", "MPI_Bcast"})
        threads = [event for event in json.loads(self.papaya("trace", "--chrome", job.folder))
                   if event["name"] == "thread_name"]
        self.assertEqual([(event["pid"], event["args"]["name"]) for event in threads],
                         [(rank, "Horovod background thread") for rank in range(2)])

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

    def test_errors(self):
        """Wrong arguments: the same error classes, from the same handlers, as natively."""
        native = self.job(2, program("errors"), via="native")
        self.assertEqual(native.code, 0)
        expected = sorted(native.out.splitlines())
        self.assertGreater(len(expected), 100)
        self.need_papaya()
        for env in ({"PAPAYA_ALLREDUCE": "native"}, {}, LEADER):
            for way in ("run", "preload"):
                job = self.job(2, program("errors"), via=way, env=env)
                self.assertEqual(job.code, native.code)
                self.assertEqual(sorted(job.out.splitlines()), expected)


def main():
    global build, mpi, native_only
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path)
    parser.add_argument("--mpi", choices=("openmpi", "mpich"))
    parser.add_argument("--case", action="append", help="several may be given; all if none is")
    parser.add_argument("--native", action="store_true")
    parser.add_argument("--list", action="store_true")
    arguments = parser.parse_args()
    names = [name[len("test_"):] for name in unittest.defaultTestLoader.getTestCaseNames(Preload)]
    if arguments.list:
        print("\n".join(names))
        return 0
    if arguments.build is None or arguments.mpi is None:
        parser.error("--build and --mpi are needed")
    unknown = [case for case in arguments.case or [] if case not in names]
    if unknown:
        parser.error(f"unknown case: {', '.join(unknown)}")
    build, mpi, native_only = arguments.build.resolve(), arguments.mpi, arguments.native

    suite = unittest.TestSuite(Preload(f"test_{case}") for case in arguments.case or names)
    result = unittest.TextTestRunner(stream=sys.stdout, verbosity=2).run(suite)
    for _, reason in result.skipped:
        print(f"skipped: {reason}")
    if not result.wasSuccessful() or result.testsRun == 0:
        return 1
    if native_only:
        return 0
    return 77 if len(result.skipped) == result.testsRun else 0


if __name__ == "__main__":
    sys.exit(main())
