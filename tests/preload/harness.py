"""What the cases in cases/*.py share: how a job is started, and what must hold for it."""

import collections
import concurrent.futures
import contextlib
import dataclasses
import itertools
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import time
import unittest
import uuid

from launchers import clean_environment, kill_all, launcher_forgets, starts_several_programs

HERE = pathlib.Path(__file__).resolve().parent
VARIABLES = re.findall(r'^PAPAYA_VARIABLE\(\w+, "(PAPAYA_\w+)"',
                       (HERE.parents[1] / "base" / "variables.def").read_text(encoding="utf-8"), re.MULTILINE)
LEADER = {"PAPAYA_ALLREDUCE": "arrival_leader"}
# For programs that look at their memory: Meson sets MALLOC_PERTURB_, so malloc fills its blocks, and what was only
# reserved becomes resident.
MEASURES_MEMORY = {"MALLOC_PERTURB_": None}
NONBLOCKING = {"PAPAYA_IALLREDUCE": "ring", "PAPAYA_IBCAST": "notified_bcast", "PAPAYA_IBARRIER": "dissemination"}
WAITS = ("auto", "spin", "yield", "block")
COLLECTIVES = ("allreduce", "reduce", "bcast", "alltoall", "allgather", "barrier", "gather", "scatter",
               "reduce_scatter", "reduce_scatter_block")  # that can be replaced


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

    def done(self):
        """What the ranks said that came to their end."""
        return [line for line in self.out.splitlines() if line.startswith("counts")]

    def counts(self, column=0):
        """Calls the program says it made, or (column 1) their bytes, if it says those, summed over its ranks."""
        total = collections.Counter()
        for line in self.out.splitlines():
            if line.startswith("counts"):
                for word in line.split()[1:]:
                    if "=" in word:
                        name, numbers = word.split("=")
                        total.update({name: int(number) for number in numbers.split(":")[column:column + 1]})
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
    """Base of the classes in cases/*.py, where a method test_NAME is the case NAME."""

    # Set by run.py.
    build = None  # the build folder
    mpi = None  # "openmpi" or "mpich"
    native_only = False

    maxDiff = None

    def program(self, name):
        return str(self.build / "tests" / "preload" / f"{name}-{self.mpi}")

    def variants(self, collective, which="few"):
        """[algorithm, order] of every algorithm of the registry; "across": of those that work across nodes."""
        command = [str(self.build / "tests" / "mpi_variants"), collective, which]
        found = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
        return [line.split() for line in found.splitlines()
                if not line.startswith("auto ") and (which == "few" or (":" not in line and line.endswith(" rank")))]

    def setUp(self):
        self.scratch = pathlib.Path(tempfile.mkdtemp(prefix="papaya-test-"))
        self.addCleanup(shutil.rmtree, self.scratch, ignore_errors=True)
        self.sessions = pathlib.Path(tempfile.mkdtemp(prefix="papaya-jobs-"))  # of Open MPI, a folder for each job
        self.addCleanup(shutil.rmtree, self.sessions, ignore_errors=True)
        self.numbers = itertools.count(1)  # of jobs, which threads may start

    # How jobs are started

    def launch(self, ranks, words, via, env, cwd, wrapper=()):
        """The command, its environment and the output folder of one job."""
        environment = clean_environment()
        folder = self.scratch / f"out{next(self.numbers)}"
        if via != "native":
            environment["PAPAYA_OUTPUT"] = str(folder)
        environment.update(env or {})
        for name in [name for name, value in environment.items() if value is None]:
            del environment[name]
        marker = f"PRELOAD_TEST_JOB={uuid.uuid4()}"
        environment.update([marker.split("=")])
        folder = pathlib.Path(environment.get("PAPAYA_OUTPUT", folder))

        if ":" in words and not starts_several_programs(self.mpi):
            self.skipTest("mpirun of this Open MPI crashes where several programs are to be one job")
        if self.native_only:
            via = "native"
        library = str(self.build / "libpapaya.so")
        if self.mpi == "openmpi":
            # Its launchers make and remove one folder for all jobs of a user; two that do so at once may fail.
            environment.setdefault("OMPI_MCA_orte_tmpdir_base", tempfile.mkdtemp(dir=self.sessions))
            command = ["mpirun.openmpi", "--oversubscribe", "--bind-to", "none"]
            preload = ["-x", f"LD_PRELOAD={library}"]
        else:
            command = ["mpirun.mpich"]
            if ranks > len(os.sched_getaffinity(0)):  # ten times as fast
                command = [str(self.build / "tests" / "turns"), "100", *command]
            preload = ["-genv", "LD_PRELOAD", library]
        if via == "preload":
            command += preload
        command += ["-n", str(ranks)]
        if via == "run":
            command += [str(self.build / "papaya"), "run"]
        if via == "launcher":
            environment["LD_PRELOAD"] = library
            environment.pop("OMPI_MCA_pml")  # one job as Open MPI comes
        return [*wrapper, *command, *map(str, words)], environment, marker, folder

    def job(self, ranks, *words, via="run", env=None, timeout=50, cwd=None, wrapper=()):
        """Runs a job to its end and returns it; fails if it does not end in time."""
        command, environment, marker, folder = self.launch(ranks, words, via, env, cwd, wrapper)
        # Hydra's cuts what a rank prints into pieces of 128 bytes, between which come those of others.
        own = pathlib.Path(tempfile.mkdtemp(dir=self.sessions))
        if self.mpi == "mpich":
            command[command.index("mpirun.mpich") + 1:command.index("mpirun.mpich") + 1] = ["-outfile-pattern", str(own / "%r")]
        begin = time.monotonic()
        # Into files: a process left behind that still holds a pipe would keep communicate() waiting.
        with tempfile.TemporaryFile(dir=self.scratch) as out, tempfile.TemporaryFile(dir=self.scratch) as err:
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
                texts.append(file.read().decode(errors="replace").replace("\0", ""))  # PRRTE's may begin with that
            texts[0] += "".join(file.read_text(errors="replace") for file in sorted(own.iterdir()))
        shown = " ".join(f"{k}={v}" for k, v in (env or {}).items()) + " " + " ".join(command)
        print(f"{shown}: {process.returncode} after {seconds:.1f} s")
        result = Job(process.returncode, texts[0], texts[1], seconds, folder)
        if not ended:
            self.show(result)
            self.fail(f"did not end within {timeout} s: {shown}")
        return result

    def together(self, *runs, width=3):
        """Runs the functions, `width` at a time: for jobs that mostly wait for a clock. Begins no more after a failure."""
        with concurrent.futures.ThreadPoolExecutor(width) as pool:
            try:
                for done in concurrent.futures.as_completed([pool.submit(one) for one in runs]):
                    done.result()
            finally:
                pool.shutdown(cancel_futures=True)

    def show(self, job):
        print(f"--- standard output\n{job.out[-4000:]}\n--- standard error\n{job.err[-4000:]}\n---")

    def network_files(self):
        """The variables for a job whose output folder is on a network file system; each rank must be on a node of its own."""
        return {"LD_PRELOAD": str(self.build / "tests" / "preload" / "libnetwork_files.so")}

    def need_papaya(self):
        if self.native_only:
            self.skipTest("native only: the job itself passed")

    # What must hold for a job

    def check_died(self, code):
        """What the launcher gives where ranks have not ended well."""
        if not (self.mpi == "mpich" and launcher_forgets()):
            self.assertNotEqual(code, 0)

    def check_same_end(self, job, native):
        if not (self.mpi == "mpich" and launcher_forgets() and 0 in (job.code, native.code)):
            self.assertEqual(job.code, native.code)

    def check_right(self, job, ranks, quiet=True):
        """Ended well, every rank found its results right, papaya had nothing to complain about."""
        done = job.done()
        if job.code != 0 or len(done) != ranks or "FAILED" in job.out or (quiet and job.complaints()):
            self.show(job)
        self.assertEqual(job.code, 0)
        self.assertEqual(len(done), ranks, "ranks that came to their end")
        self.assertNotIn("FAILED", job.out)
        if quiet:
            self.assertEqual(job.complaints(), [])

    def check_counts(self, job):
        """The report has each call of the program exactly once, and its bytes."""
        self.need_papaya()
        reported = collections.Counter()
        reported_bytes = collections.Counter()
        for row in job.report()["collectives"]:
            if row["calls"] > 0:
                reported[row["name"]] += row["calls"]
                reported_bytes[row["name"]] += row["bytes"]
        expected = {name: calls for name, calls in job.counts().items() if calls > 0}
        self.assertEqual(dict(reported), expected)
        expected_bytes = job.counts(column=1)
        if expected_bytes:
            self.assertEqual(dict(reported_bytes), expected_bytes)
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

    # What cases need

    def transports(self):
        """Those between nodes that papaya was built with."""
        return ["mpi"] + (["ucx"] if (self.build / "libpapaya-ucx.so").exists() else [])

    def places(self):
        """{name: settings}: the ranks on one node, and each as if on its own."""
        across = {f"across, {transport}": {"PAPAYA_NODE_SIZE": "1", "PAPAYA_TRANSPORT": transport}
                  for transport in self.transports()}
        return {"within": {"PAPAYA_NODE_SIZE": "0"}, **across}

    def papaya(self, *words, code=0, env=None):
        """One run of the command; returns standard output and standard error together."""
        done = subprocess.run([str(self.build / "papaya"), *map(str, words)], env={**clean_environment(), **(env or {})},
                              cwd=self.scratch, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=30, check=False)
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
        if {"openmpi": "Open MPI", "mpich": "MPICH"}[self.mpi] not in found.stdout:
            self.skipTest(f"mpi4py here is not built for {self.mpi}")
        return found.stdout.splitlines()[-1]

    def need_known_python(self, python):
        """One whose frames papaya can walk (profiler/record/python_frames.cpp)."""
        version = subprocess.run([python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"], text=True,
                                 stdout=subprocess.PIPE, check=True).stdout.strip()
        source = (HERE.parents[1] / "profiler" / "record" / "python_frames.cpp").read_text(encoding="utf-8")
        if f'{{"{version}.", ' not in source:
            self.skipTest(f"papaya does not know the frames of CPython {version}")

    def compare(self, ranks, words, envs=({}, LEADER), **more):
        """The job with papaya ends as without, with the same calls in its report; False if it fails without."""
        native = self.job(ranks, *words, via="native", timeout=20)
        if native.code != 0 or len(native.done()) != ranks:
            print(f"{' '.join(map(str, words))}: {self.mpi} itself fails")
            return False
        self.check_right(native, ranks)
        if self.native_only:
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
            self.skipTest(f"{self.mpi} itself fails, or native only")

    @contextlib.contextmanager
    def running(self, ranks, *words, via="run", env=None):
        """A job that does not end by itself: its pids, its marker, its folder and its standard error."""
        command, environment, marker, folder = self.launch(ranks, words, via, env, None)
        out, err = self.scratch / f"{marker[-36:]}.out", self.scratch / f"{marker[-36:]}.err"
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

    def nonblocking(self, ranks, way, node_size=0, env=None, timeout=30, quiet=True, starter=()):
        """One job of the program of that name. Returns {algorithm or reason: calls} of its nonblocking calls."""
        job = self.job(ranks, *starter, self.program("nonblocking"), *way.split(), timeout=timeout,
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
