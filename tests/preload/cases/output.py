"""The output folder."""

import json
import os
import pathlib
import shutil
import subprocess

from harness import LEADER, VARIABLES, Preload
from launchers import kill_all
from marks import quick, time_limit


class Output(Preload):
    @quick
    def test_default_output(self):
        job = self.job(2, self.program("calls"), "blocking", env={"PAPAYA_OUTPUT": None}, cwd=self.scratch)
        self.check_right(job, 2, quiet=False)
        self.need_papaya()
        folders = list(self.scratch.glob("papaya.*"))
        self.assertEqual(len(folders), 1)
        self.assertRegex(folders[0].name, rf"^papaya\.calls-{self.mpi}\.2\.[^.]+$")
        self.assertLessEqual({"README", "papaya.cfg", "rank-00000.pap", "rank-00001.pap", "report.txt", "report.json"},
                             set(os.listdir(folders[0])))
        settings = (folders[0] / "papaya.cfg").read_text()
        for name in VARIABLES:
            self.assertIn(name, settings)
        self.assertIn("MPI_Allreduce", (folders[0] / "report.txt").read_text())
        self.assertIn("MPI_Allreduce", self.papaya("report", folders[0]))

    @quick
    def test_output_exists(self):
        folder = self.scratch / "results"
        folder.mkdir()
        (folder / "precious").write_text("keep me")
        for _ in range(3):
            job = self.job(2, self.program("calls"), "blocking", env={"PAPAYA_OUTPUT": str(folder)})
            self.check_right(job, 2, quiet=False)
            self.check_counts(job)
        self.assertFalse((folder / "precious").exists())
        kept = [path for path in self.scratch.rglob("precious")]
        self.assertEqual([path.read_text() for path in kept], ["keep me"])
        self.assertEqual(len(list(self.scratch.rglob("report.json"))), 3)

    @quick
    def test_output_umask(self):
        """One that the program sets after MPI_Init holds for its own files; who may read the folder may read all of it."""
        for umask in (0o022, 0o077):
            old = os.umask(umask)
            try:
                job = self.job(2, self.program("lifecycle"), "umask")
            finally:
                os.umask(old)
            self.check_right(job, 2)
            self.need_papaya()
            self.check_counts(job)
            modes = {file.name: file.stat().st_mode & 0o777 for file in job.folder.iterdir()}
            self.assertIn("report.txt", modes)
            self.assertEqual({mode & 0o644 for mode in modes.values()}, {0o644 & ~umask}, modes)

    @quick
    def test_output_file_limit(self):
        """One that the program sets after MPI_Init: the records are there, and the report is made later."""
        for env in ({}, {"PAPAYA_PROFILE": "trace"}):
            job = self.job(2, self.program("lifecycle"), "file_limit", env=env)
            self.check_right(job, 2, quiet=False)
            self.need_papaya()
            [said] = job.said()
            self.assertIn("the report could not be written", said)
            rows = json.loads(self.papaya("report", "--json", job.folder))["collectives"]
            self.assertEqual({row["name"]: row["calls"] for row in rows}, {"MPI_Allreduce": 200})

    def test_output_unwritable(self):
        for place in ("/dev/null/x", "/proc/papaya-test"):
            # The records go to the folder for temporary files then.
            job = self.job(2, self.program("calls"), "blocking",
                           env={**LEADER, "PAPAYA_OUTPUT": place, "TMPDIR": str(self.scratch)})
            self.check_right(job, 2, quiet=False)
            if not self.native_only:
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
                    job = self.job(2, self.program("calls"), "blocking", env=env, wrapper=wrapper)
                    self.check_right(job, 2, quiet=False)
                    if not self.native_only:
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
                job = self.job(2, self.program("loop"), 20, env={**env, "PAPAYA_OUTPUT": str(place)}, cwd=work)
                self.check_right(job, 2, quiet=False)
                self.assertEqual((file.read_text(), (work / "precious").read_text()), ("keep me", "keep me"))
                if self.native_only:
                    continue
                warnings = [line for line in job.said() if not line.startswith("papaya: report in ")]
                self.assertEqual(len(warnings), 1, job.said())
                self.assertEqual(os.listdir(work), ["precious"])
                self.assertEqual(sorted(os.listdir(self.scratch)), ["notes", "outer", "temporary"])
                reports = list(temporary.rglob("report.json"))
                # "." and ".." are no names for a folder elsewhere.
                self.assertEqual(len(reports), 1)
                for report in reports:
                    shutil.rmtree(report.parent)
        self.need_papaya()
        # A trailing slash, then the same folder again: the first one gets another name.
        for number in (1, 2):
            job = self.job(2, self.program("loop"), 20, env={**env, "PAPAYA_OUTPUT": "records/"}, cwd=work)
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
                command, environment, marker, _ = self.launch(2, [self.program("loop"), 30], "run",
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
            if self.native_only:
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
        runner = [str(self.build / "papaya"), "run", self.program("launched")]
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

    @quick
    def test_output_on_network(self):
        """The report has what the ranks of other nodes have recorded, which a network file system need not show yet."""
        self.need_papaya()
        job = self.job(3, self.program("calls"), "blocking", env={"PAPAYA_NODE_SIZE": "1", **self.network_files()})
        self.check_right(job, 3)
        self.check_counts(job)

    def test_file_limit(self):
        """ulimit -f: a file made larger than allowed would be SIGXFSZ."""
        compared = 0
        for blocks in (40000, 10000):  # of 512 bytes
            limited = ["sh", "-c", f'ulimit -f {blocks}; exec "$@"', "sh"]
            for profile in ("summary", "trace"):
                if self.job(2, self.program("calls"), "blocking", via="native", wrapper=limited).code != 0 or self.native_only:
                    continue
                compared += 1
                env = {**LEADER, "PAPAYA_PROFILE": profile}
                job = self.job(2, self.program("calls"), "blocking", env=env, wrapper=limited, timeout=20)
                self.check_right(job, 2, quiet=False)
                self.assertIn(len(job.said()), (1, 2), job.said())
                if profile == "trace":  # whose records are larger than either limit
                    self.assertIn("ulimit -f", job.err)
        self.need_papaya()
        if compared == 0:
            self.skipTest(f"{self.mpi} itself fails with a limit for files")

    @quick
    def test_rank_unwritable(self):
        """One node cannot write its record: the job goes on without it."""
        rank = {"openmpi": "OMPI_COMM_WORLD_RANK", "mpich": "PMI_RANK"}[self.mpi]
        limit = 40000  # blocks of 512 bytes
        for bad in (0, 1):
            script = f'if [ "${rank}" = {bad} ]; then trap "" XFSZ; ulimit -f {limit}; fi; exec "$@"'
            words = ["sh", "-c", script, "sh"]
            native = self.job(2, *words, self.program("calls"), "blocking", via="native")
            if native.code != 0:
                self.skipTest(f"{self.mpi} itself fails with a limit for files")
            if self.native_only:
                continue
            env = {**LEADER, "PAPAYA_NODE_SIZE": "1", "PAPAYA_PROFILE": "trace"}
            job = self.job(2, *words, self.build / "papaya", "run", self.program("calls"), "blocking", via="", env=env,
                           timeout=20)
            self.check_right(job, 2, quiet=False)
            self.assertEqual(job.counts(), native.counts())
            self.assertIn("1 of 2 ranks", job.err)
            self.assertLessEqual(len(job.said()), 3, job.said())  # also that the algorithm needs one node
        self.need_papaya()

    @time_limit(90)
    def test_output_cut(self):
        """Files of records are cut short, as a file system does that fails: the job goes on, and a sentence says so."""
        self.need_papaya()
        for env in ({}, {"PAPAYA_PROFILE": "trace"}):
            with self.running(3, self.program("loop"), 1500, env=env) as (process, _, folder, err):
                for rank in (0, 2):
                    os.truncate(folder / f"rank-0000{rank}.pap", 0)
                self.assertEqual(process.wait(40), 0, err.read_text())
                self.assertEqual(err.with_suffix(".out").read_text().count("counts MPI_Allreduce=1500"), 3)
                said = [line for line in err.read_text().splitlines() if line.startswith("papaya: ")]
                self.assertEqual(len(said), 2, said)
                self.assertRegex(said[0], rf"the file system of {folder} has failed, or files there have been cut, ")
            self.assertIn("rank-00002.pap", self.papaya("report", folder, code=3))
