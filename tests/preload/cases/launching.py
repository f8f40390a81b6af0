"""What is preloaded into which process: launchers, shells, children, other MPIs, ranks without papaya."""

import fcntl
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time
import uuid

from harness import LEADER, Job, Preload
from launchers import clean_environment, kill_all
from marks import quick, time_limit


class Launching(Preload):
    def partly(self, libraries, *arguments, cut=False, again=3):
        """A started job whose rank N has LD_PRELOAD=libraries[N]; `cut`: the launcher seems to put each rank on a node of its own."""
        words = []
        for library in libraries:
            words += [*([":", "-n", "1"] if words else []), "env", f"LD_PRELOAD={library}"]
            if cut:
                words += ["OMPI_COMM_WORLD_LOCAL_SIZE=1", "MPI_LOCALNRANKS=1"]
            words += [self.program("launched"), *arguments]
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
            job = Job(code, out.read_text(), err.read_text(), 0, folder)
            # Two faults of Open MPI 4.1 on a loaded machine, after MPI_Finalize: its event thread calls into a component
            # that MPI_Finalize has unloaded already (opal_progress_thread_finalize waits for it), with papaya out of the
            # way; and mpirun may learn that a process has ended before it learns that it has finalized.
            ended = job.out.count("counts") == len(libraries)
            if self.mpi == "openmpi" and ended and again > 0 and (
                    code == 128 + signal.SIGSEGV or (code == 1 and "exiting improperly" in job.err)):
                return self.partly(libraries, *arguments, cut=cut, again=again - 1)()
            return job

        return end

    def test_partly(self):
        """Ranks without papaya, with one that cannot load its flavour, with another version, build or tool: the job goes on
        natively and says why. They wait for the others, so all run at once."""
        self.need_papaya()
        name = f"libpapaya-{self.mpi}.so"
        flavour = (self.build / name).read_bytes()
        version = subprocess.run([self.build / "papaya", "--version"], stdout=subprocess.PIPE, check=True).stdout.split()[1]
        notes = subprocess.run(["readelf", "-nW", self.build / name], stdout=subprocess.PIPE, text=True, check=True).stdout
        build_id = bytes.fromhex(re.search(r"Build ID: (\w+)", notes)[1])
        whole = self.build / "libpapaya.so"
        copies = {}
        for kind, content in (("bare", None), ("older", flavour.replace(version + b"\0", b"0" * len(version) + b"\0")),
                              ("other", flavour.replace(build_id, bytes(len(build_id))))):
            self.assertNotEqual(content, flavour)
            (self.scratch / kind).mkdir()
            copies[kind] = shutil.copy(whole, self.scratch / kind)
            if content is not None:
                (self.scratch / kind / name).write_bytes(content)
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
        self.check_died(job.code)
        self.assertRegex(job.err, "papaya: rank 0 runs without papaya on another node, or does not answer")
        job = everywhere()
        self.check_right(job, 3)
        self.check_counts(job)

    @quick
    @time_limit(30)
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
            self.check_right(self.job(2, self.program("launched")), 2)
            self.assertEqual([name.exists() for name in names], [True, False, True])

    def test_namespaces(self):
        """A rank to whom the machine seems started an hour earlier takes part; one with a /dev/shm of its own says so."""
        self.need_papaya()
        rank_1 = 'test ${PMI_RANK:-$OMPI_COMM_WORLD_RANK} = 1 && exec unshare %s "$@"; exec "$@"'
        shifted = "--time --monotonic 3600 --boottime 3600 --fork --kill-child"
        apart = "--mount sh -c 'mount -t tmpfs none /dev/shm && exec \"$@\"' sh"
        if subprocess.run(f"unshare {shifted} true && unshare {apart} true", shell=True, stdin=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL, check=False).returncode != 0:
            self.skipTest("no permission to make namespaces here (unshare)")

        def start(options, before=(), **env):
            return self.job(3, *before, "sh", "-c", rank_1 % options, "sh", self.build / "papaya", "run",
                            self.program("launched"), via="", env={**LEADER, **env})

        # A kernel that does not keep time by the processor's counter: then arrivals are by CLOCK_MONOTONIC.
        source = self.scratch / "clocksource"
        source.write_text("kvm-clock\n", encoding="utf-8")
        no_counter = ("unshare", "--mount", "sh", "-c", 'mount --bind "$0" "$1" && shift && exec "$@"', source,
                      "/sys/devices/system/clocksource/clocksource0/current_clocksource")
        for before in ((), no_counter):
            job = start(shifted, before)
            self.check_right(job, 3)
            self.check_counts(job)
            self.check_leader(job)
            self.assertLess(job.report()["whole_run"]["most_us"], 60e6)
        if self.mpi == "openmpi":  # MPICH itself needs the ranks' /dev/shm to be one
            # Its own shared memory would have all ranks send mpirun the same warning, which can crash its collector of these.
            job = start(apart, OMPI_MCA_btl="tcp,self")
            self.check_right(job, 3, quiet=False)
            self.assertRegex("\n".join(job.said()), r"rank 1 runs .* without the /dev/shm of the others")

    def test_full_output(self):
        """An output folder on a full file system: one sentence, and the records go elsewhere, or nowhere."""
        self.need_papaya()
        small = self.scratch / "small"
        small.mkdir()
        out = small / "out"
        full = f"papaya: cannot make the output folder {out} (No space left on device)"
        with self.small_file_system(small, "64k") as within:
            for elsewhere, node_size in ((small, 0), (self.scratch, 0), (self.scratch, 1)):
                # Open MPI's launcher itself needs room in its TMPDIR.
                job = self.job(3, "env", f"TMPDIR={elsewhere}", self.build / "papaya", "run", self.program("launched"),
                               via="", wrapper=within,
                               env={**LEADER, "PAPAYA_OUTPUT": str(out), "PAPAYA_NODE_SIZE": str(node_size)})
                self.check_right(job, 3, quiet=False)
                if elsewhere == small:
                    self.assertEqual(len(job.said()), 1, job.said())
                    self.assertRegex(job.said()[0], f"^{re.escape(full)}, nor {small}/papaya.*; nothing is recorded\\. Set PAPAYA_OUTPUT")
                else:
                    self.assertIn(f"{full}; the records go to {self.scratch}/papaya.", "\n".join(job.said()))
                    reports = list(self.scratch.glob("papaya.*/report.json"))
                    self.assertEqual(len(reports), 1)
                    self.assertEqual(len(list(reports[0].parent.glob("rank-*.pap"))), 3)
                    shutil.rmtree(reports[0].parent)
        # Room, but not for files of that size.
        limit = ["sh", "-c", 'trap "" XFSZ; ulimit -f 100000; exec "$@"', "sh"]
        if self.job(3, *limit, self.program("launched"), via="native").code != 0:
            self.skipTest(f"{self.mpi} itself fails with a limit for files")
        job = self.job(3, *limit, self.build / "papaya", "run", self.program("launched"), via="",
                       env={**LEADER, "PAPAYA_OUTPUT": str(self.scratch / "out"), "PAPAYA_PROFILE": "trace"})
        self.check_right(job, 3, quiet=False)
        self.assertEqual(job.said(), [f"papaya: 3 of 3 ranks cannot write their records to {self.scratch}/out: larger than the limit for files (ulimit -f); "
                                      "nothing is recorded."])

    @time_limit(30)
    def test_relative_preload(self):
        """LD_PRELOAD names the library by a relative path, and the program enters another folder before MPI_Init: there
        are libraries of the same names."""
        elsewhere = self.scratch / "elsewhere"
        (elsewhere / "lib").mkdir(parents=True)
        for name in ("openmpi", "mpich"):
            (elsewhere / "lib" / f"libpapaya-{name}.so").write_text("not papaya's")
        (self.scratch / "lib").symlink_to(self.build)
        job = self.job(2, "env", "LD_PRELOAD=lib/libpapaya.so", self.program("launched"), "chdir", elsewhere, via="")
        self.need_papaya()
        self.check_right(job, 2)
        self.check_counts(job)

    @quick
    def test_children(self):
        native = self.job(2, self.program("children"), via="native")
        self.check_right(native, 2)
        self.need_papaya()
        under_run = self.job(2, self.program("children"), via="run")
        self.check_right(under_run, 2)
        self.check_counts(under_run)
        self.assertEqual(sorted(under_run.out.splitlines()), sorted(native.out.splitlines()),
                         "what papaya run preloads stays in the program itself")
        preloaded = self.job(2, self.program("children"), via="preload")
        self.check_right(preloaded, 2)
        self.check_counts(preloaded)
        self.assertEqual(len(preloaded.out.splitlines()), len(native.out.splitlines()))

    def test_launcher(self):
        """LD_PRELOAD exported in the shell: mpirun and its helpers get the library too."""
        job = self.job(2, self.program("calls"), "blocking", via="launcher", env=LEADER)
        self.check_right(job, 2)
        self.check_counts(job)

    @time_limit(30)
    def test_shell(self):
        self.need_papaya()
        commands = [["sh", "-c", "echo ok; sh -c 'echo inner'"], ["bash", "-c", "echo ok | cat"], ["ls", "/"],
                    ["sh", "-c", "ls /proc/$$/fd; cat /proc/$$/task/*/comm; env | grep -v -e LD_PRELOAD -e ^_="],
                    [sys.executable, "-c", "import subprocess; subprocess.run(['echo', 'ok'])"]]
        for command in commands:
            results = []
            for preload in (None, str(self.build / "libpapaya.so")):
                environment = clean_environment()
                if preload:
                    environment["LD_PRELOAD"] = preload
                results.append(subprocess.run(command, env=environment, cwd=self.scratch, stdin=subprocess.DEVNULL,
                                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False))
            self.assertEqual((results[1].returncode, results[1].stdout, results[1].stderr),
                             (results[0].returncode, results[0].stdout, results[0].stderr))
        passed_on = subprocess.run(["sh", "-c", "exec sh -c 'echo $LD_PRELOAD'"], env=environment, stdout=subprocess.PIPE,
                                   text=True, check=True).stdout
        self.assertEqual(passed_on, f"{self.build / 'libpapaya.so'}\n")
        self.assertEqual(os.listdir(self.scratch), [])

    @quick
    @time_limit(30)
    def test_left_out(self):
        """PAPAYA_INCLUDE and PAPAYA_EXCLUDE, by the path of the program's file and by its arguments."""
        self.need_papaya()
        program, folder = self.program("launched"), self.build / "tests" / "preload"
        for env, is_recorded in (({"PAPAYA_EXCLUDE": "/launched-[a-z]+( |$)"}, False),
                                 ({"PAPAYA_INCLUDE": "/[l]mp$|/gromacs"}, False),
                                 ({"PAPAYA_INCLUDE": f"^{folder}/[^ ]+ named$"}, True),
                                 ({"PAPAYA_INCLUDE": "launched", "PAPAYA_EXCLUDE": " na(me)+d"}, False),
                                 ({"PAPAYA_EXCLUDE": ""}, True)):
            job = self.job(2, program, "named", via="preload", env=env)
            self.check_right(job, 2)
            self.assertEqual(job.folder.exists(), is_recorded, env)
            self.assertEqual(len(job.said()), is_recorded, env)  # no word where nothing is recorded
        # A bad expression counts as absent, after one warning; papaya run means what it is given.
        job = self.job(2, program, via="preload", env={"PAPAYA_EXCLUDE": "launched|("})
        self.check_right(job, 2, quiet=False)
        self.check_counts(job)
        self.assertRegex("".join(job.complaints()), r"^papaya: PAPAYA_EXCLUDE=launched\|\(: must be an extended regular expression")
        # What is to be included cannot be known then, so papaya stays out of all.
        bad = {"PAPAYA_INCLUDE": "launched|("}
        job = self.job(2, program, via="preload", env=bad)
        self.check_right(job, 2, quiet=False)
        self.assertFalse(job.folder.exists())
        [said] = job.said()
        self.assertRegex(said, r"rank 0: PAPAYA_INCLUDE=launched\|\(: must be an extended regular expression.*nothing is recorded")
        job = self.job(2, program, env=bad)
        self.check_right(job, 2, quiet=False)
        self.check_counts(job)
        self.assertRegex("".join(job.complaints()), r"^papaya: PAPAYA_INCLUDE=launched\|\(: .* expression; it is ignored\.$")
        job = self.job(2, program, env={"PAPAYA_EXCLUDE": "launched"})
        self.check_right(job, 2)
        self.check_counts(job)
        # One program of a job: all go on natively, and why is said.
        preload = f"LD_PRELOAD={self.build / 'libpapaya.so'}"
        job = self.job(1, "env", preload, program, ":", "-n", "1", "env", preload, "PAPAYA_EXCLUDE=launched", program, via="")
        self.check_right(job, 2, quiet=False)
        self.assertEqual(sorted(line.split(":")[1] for line in job.said()), [
            " rank 1", " rank 1 cannot use papaya, so on all ranks every call goes straight to MPI, nothing is recorded."])
        self.assertIn("papaya: rank 1: PAPAYA_EXCLUDE leaves this program out.", job.err)
        self.assertFalse(job.folder.exists())

    @quick
    def test_other_launcher(self):
        """Each process is a job of its own, which is said once."""
        self.need_papaya()
        launcher = shutil.which({"openmpi": "mpirun.mpich", "mpich": "mpirun.openmpi"}[self.mpi])
        if launcher is None:
            self.skipTest("needs both MPIs")
        many = ["--oversubscribe"] if self.mpi == "mpich" else []

        def start(*words):
            return subprocess.run([launcher, *many, "-n", "2", *map(str, words)], env=clean_environment(), cwd=self.scratch,
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                  timeout=60, check=False)

        native = start(self.program("launched"))
        if native.returncode != 0:
            self.skipTest(f"{self.mpi} does not start under the other's launcher: {native.stderr[-400:]}")
        done = start(self.build / "papaya", "run", self.program("launched"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.count("counts MPI_Allreduce=20 "), 2)
        self.assertEqual(done.stderr.count("the launcher has started 2 processes, and each is a job of its own"), 1, done.stderr)

    def test_spawn(self):
        native = self.job(1, self.program("spawn"), via="native")
        if native.code != 0 and "MPI_Comm_spawn" in native.err:
            self.skipTest(f"MPI_Comm_spawn fails natively with this {self.mpi}")
        self.check_right(native, 3)
        self.need_papaya()
        for way in ("run", "preload"):
            job = self.job(1, self.program("spawn"), via=way, env=LEADER)
            self.check_right(job, 3, quiet=False)
            self.assertIn("MPI_Comm_spawn has started processes", " ".join(job.report()["notes"]))

    def test_connect(self):
        """Groups that meet by a port: the same results, counts and bytes."""
        for ranks in (2, 5):
            native = self.job(ranks, self.program("connect"), via="native")
            if native.code != 0 and re.search("MPI_(Open_port|Comm_accept|Comm_connect)", native.err):
                self.skipTest(f"MPI_Comm_accept and MPI_Comm_connect fail natively with this {self.mpi}")
            self.check_right(native, ranks)
            self.need_papaya()
            job = self.job(ranks, self.program("connect"), env=LEADER)
            self.check_right(job, ranks)
            self.check_counts(job)

    @quick
    @time_limit(30)
    def test_what_is_preloaded(self):
        """Brings no library with it that the program may have in another version, and shows none of those within it."""
        self.need_papaya()
        for name, own in (("libpapaya.so", ""), (f"libpapaya-{self.mpi}.so", "hwloc|stdc\\+\\+|gcc_s|m")):
            dynamic = subprocess.run(["readelf", "-dW", self.build / name], check=True, capture_output=True, text=True).stdout
            for needed in re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic):
                self.assertRegex(needed, rf"^(ld-linux.*|lib(c|dl|pthread{own and '|' + own})\.so.*)$", name)
            symbols = subprocess.run(["nm", "-DC", "--defined-only", self.build / name], check=True, capture_output=True,
                                     text=True).stdout
            self.assertIn("papaya", symbols)
            self.assertNotRegex(symbols, r"\b(fmt|nlohmann|CLI)::", name)

    @time_limit(30)
    def test_folder_with_space(self):
        """The dynamic loader would not find the library: one sentence and an error instead of a run without it."""
        self.need_papaya()
        for name in ("with space", "with:colon"):
            place = self.scratch / name
            place.mkdir()
            for path in [self.build / "papaya", *self.build.glob("libpapaya*.so")]:
                shutil.copy2(path, place)
            done = subprocess.run([str(place / "papaya"), "run", "echo", "it ran"], env=clean_environment(),
                                  cwd=self.scratch, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True, timeout=10, check=False)
            self.assertNotEqual(done.returncode, 0)
            self.assertEqual(done.stdout, "")
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
            self.assertIn(name, done.stderr)

    @quick
    def test_two_mpis(self):
        other = {"openmpi": "libmpich.so.12", "mpich": "libmpi.so.40"}[self.mpi]
        native = self.job(2, self.program("two_mpis"), other, via="native")
        if "skipped:" in native.err:
            self.skipTest("the other MPI is not installed")
        self.check_right(native, 2)
        self.need_papaya()
        for way in ("run", "preload"):
            job = self.job(2, self.program("two_mpis"), other, via=way, env=LEADER)
            self.check_right(job, 2, quiet=False)
            lines = [line for line in job.said() if "two MPI" in line]
            self.assertIn(len(lines), (1, 2), job.said())  # one of each process at most
            self.assertEqual(len(job.said()), len(lines), job.said())

    @time_limit(30)
    def test_unknown_mpi(self):
        command = [str(self.build / "tests/preload/fake_user")]
        expected = "rank 0, code 9321, result 1 2 3\n"
        environment = clean_environment()
        native = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=False)
        self.assertEqual((native.returncode, native.stdout), (0, expected))
        self.need_papaya()
        preloaded = {**environment, "LD_PRELOAD": str(self.build / "libpapaya.so")}
        for line, env in ((command, preloaded), ([str(self.build / "papaya"), "run", *command], environment)):
            job = subprocess.run(line, env=env, cwd=self.scratch, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, text=True, timeout=20, check=False)
            self.assertEqual((job.returncode, job.stdout), (0, expected), job.stderr)
            self.assertEqual(len(job.stderr.splitlines()), 1, job.stderr)
            self.assertRegex(job.stderr, r"^papaya: .*MPI")
        self.assertEqual(list(self.scratch.glob("papaya.*")), [])
