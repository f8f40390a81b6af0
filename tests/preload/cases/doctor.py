"""papaya doctor."""

import collections
import json
import os
import pathlib
import shutil
import subprocess
import tempfile

from harness import Preload
from launchers import clean_environment
from marks import quick


class Doctor(Preload):
    def doctor(self, *words, env=None, code=0, ranks=None):
        """The checks by name, each [level, finding], of one run."""
        if ranks is None:
            environment = {**clean_environment(), **(env or {})}
            done = subprocess.run([str(self.build / "papaya"), "doctor", "--json", *map(str, words)], env=environment, cwd=self.scratch,
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                  timeout=60, check=False)
            out, returned = done.stdout, done.returncode
        else:
            job = self.job(ranks, self.build / "papaya", "doctor", "--json", *words, via="native", env=env)
            out, returned = job.out, job.code
        self.assertEqual(returned, code, out)
        found = json.loads(out[out.index("{"):out.rindex("}") + 1])
        self.assertEqual(found["problems"], sum(check["level"] == "problem" for check in found["checks"]))
        checks = collections.defaultdict(list)
        for check in found["checks"]:
            checks[check["name"]].append([check["level"], check["finding"]])
        return checks, found

    @quick
    def test_doctor(self):
        self.need_papaya()
        other = {"openmpi": "mpich", "mpich": "openmpi"}[self.mpi]
        # A mpirun of this MPI comes first.
        first = self.scratch / "first"
        first.mkdir()
        (first / "mpirun").symlink_to(shutil.which(f"mpirun.{self.mpi}"))
        path = {"PATH": f"{first}:{os.environ['PATH']}"}

        checks, found = self.doctor(env=path)
        self.assertIn(self.mpi, checks["launcher"][0][1])
        for name in ("papaya", "preloads", "settings", "clock", "shared memory", "single copy", "cores", "libunwind", "output", "overhead"):
            self.assertIn(name, checks)
        self.assertEqual(checks["settings"], [["ok", "All PAPAYA_ variables have their defaults."]])
        overhead = found["overhead_ns"]
        self.assertGreater(overhead["no_frames"], 1)
        self.assertLess(overhead["no_frames"], 20000)
        self.assertGreater(overhead["one_frame"], 1)

        # The program's MPI, and a launcher of another.
        checks, _ = self.doctor(self.program("calls"), env=path)
        self.assertEqual([checks[name][0][0] for name in ("program", "MPI", "Fortran")], ["ok"] * 3)
        foreign = self.build / "tests" / "preload" / f"calls-{other}"
        if foreign.exists():
            for level, where in (("warning", {"env": path}), ("problem", {"ranks": 2, "code": 1})):
                checks, _ = self.doctor(foreign, **where)
                self.assertEqual(checks["MPI"][0][0], level)
                self.assertIn(f"mpirun.{other}", checks["MPI"][0][1])
        checks, _ = self.doctor(self.build / "tests/preload/fake_user", env=path)
        self.assertIn("does not know", checks["MPI"][0][1])
        for binding, says in (("mpifh", "mpif.h or mpi"), ("usempi", "mpif.h or mpi"), ("f08", "mpi_f08")):
            if os.path.exists(self.program(f"fortran_{binding}")):
                checks, _ = self.doctor(self.program(f"fortran_{binding}"), env=path)
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
        shutil.copy(self.program("calls"), setuid)
        setuid.chmod(0o4755)
        checks, _ = self.doctor(setuid, code=1)
        self.assertIn("setuid", checks["program"][0][1])
        script = self.scratch / "script"
        script.write_text("#!/bin/sh\nexec true\n")
        checks, _ = self.doctor(script, env=path)
        self.assertIn("script", checks["program"][0][1])
        self.doctor(self.scratch / "missing", code=1)
        # A program file cut anywhere, or with wrong bytes, is told from a good one.
        whole = pathlib.Path(self.program("calls")).read_bytes()
        for keep in (1, 4, 40, 64, 1000, len(whole) // 2):
            (self.scratch / "damaged").write_bytes(whole[:keep])
            self.papaya("doctor", self.scratch / "damaged", code=1)

        # The environment.
        checks, _ = self.doctor(env={"PAPAYA_ALREDUCE": "native", "PAPAYA_ALLREDUCE": "arrival_leder"})
        self.assertEqual({level for level, _ in checks["settings"]}, {"warning"})
        text = " ".join(finding for _, finding in checks["settings"])
        self.assertIn("did you mean PAPAYA_ALLREDUCE?", text)
        self.assertIn("did you mean arrival_leader?", text)
        checks, _ = self.doctor(self.program("calls"), env={**path, "PAPAYA_EXCLUDE": f"/calls-{self.mpi}$"})
        self.assertIn("PAPAYA_EXCLUDE leaves out", checks["filter"][0][1])
        checks, _ = self.doctor(self.program("calls"), env={**path, "PAPAYA_INCLUDE": "/calls-", "PAPAYA_EXCLUDE": "["})
        self.assertNotIn("filter", checks)
        self.assertIn("PAPAYA_EXCLUDE=[: must be an extended regular expression", checks["settings"][0][1])
        checks, _ = self.doctor(self.program("calls"), env={**path, "PAPAYA_INCLUDE": "["})
        self.assertIn("PAPAYA_INCLUDE leaves out", checks["filter"][0][1])
        # With the program's arguments, which may look like options, and through a link.
        link = self.scratch / "linked"
        link.symlink_to(self.program("calls"))
        for words, is_left_out in ((["--json", "input 1"], True), (["input", "1"], True), (["input", "2"], False), ([], False)):
            checks, _ = self.doctor(link, *words, env={**path, "PAPAYA_EXCLUDE": f"/calls-{self.mpi} (--json )?input 1$"})
            self.assertEqual("filter" in checks, is_left_out, words)
        self.papaya("doctor", "--jsn", link, code=2)
        checks, _ = self.doctor(env={"PAPAYA_SHM_LIMIT": "900G"})
        self.assertEqual(checks["shared memory"][0][0], "warning")
        checks, _ = self.doctor(env={"PAPAYA_OUTPUT": "/proc/none/out"}, code=1)
        self.assertEqual(checks["output"][0][0], "problem")
        # A library that is preloaded but is no tool that papaya knows, and one that has the name of one.
        with tempfile.TemporaryDirectory() as folder:
            tool = pathlib.Path(folder) / "libdarshan.so"
            shutil.copy(self.build / "tests/preload" / f"libplugin-{self.mpi}.so", tool)
            checks, _ = self.doctor(env={"LD_PRELOAD": str(tool)})
            self.assertRegex(checks["preloads"][0][1], "Darshan .* none of the calls that papaya replaces")
            # By what it defines: none papaya knows, still an MPI tool.
            nameless = shutil.copy(self.build / f"tests/preload/libtool_pmpi-{self.mpi}.so", pathlib.Path(folder) / "libown.so")
            checks, _ = self.doctor(env={"LD_PRELOAD": str(nameless)})
            self.assertRegex(checks["preloads"][0][1], "An MPI tool that papaya does not know .*comes behind papaya")
            # In front of papaya, and behind it.
            tool = shutil.copy(tool, pathlib.Path(folder) / "libmpiP.so")
            library = self.build / "libpapaya.so"
            checks, _ = self.doctor(env={"LD_PRELOAD": f"{tool}:{library}"})
            self.assertRegex(checks["preloads"][0][1], "mpiP .* comes before papaya: both see each call")
            for preloads in (tool, f"{library} {tool}"):
                checks, _ = self.doctor(env={"LD_PRELOAD": str(preloads)})
                self.assertEqual(checks["preloads"][0][0], "warning")
                self.assertIn(f"LD_PRELOAD={tool}:{library} in place of papaya run", checks["preloads"][0][1])
        checks, _ = self.doctor(self.program("tooled"), env=path)
        self.assertRegex(checks["other tools"][0][1], "linked into the program, .*both see each call")

        # In a job: one rank speaks, and sees more ranks than cores.
        ranks = 2 * os.cpu_count()
        if ranks <= 16:
            checks, found = self.doctor(self.program("calls"), ranks=ranks)
            self.assertEqual((found["ranks"], found["ranks_here"]), (ranks, ranks))
            self.assertEqual(checks["cores"][0][0], "warning")
            self.assertEqual(checks["MPI"][0][0], "ok")
        job = self.job(2, self.build / "papaya", "doctor", via="native")
        self.assertEqual((job.code, job.out.count("ok       papaya ")), (0, 1), job.out)
