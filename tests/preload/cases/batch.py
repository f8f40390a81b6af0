"""Jobs that a batch system starts."""

import contextlib
import getpass
import os
import shutil
import socket
import subprocess
import time
import uuid

from harness import Job, Preload
from launchers import clean_environment, kill_all
from marks import time_limit

CONFIGURATION = """\
ClusterName=papaya
SlurmctldHost={host}(127.0.0.1)
SlurmUser={user}
SlurmdUser={user}
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
AuthType=auth/munge
AuthInfo=socket={place}/munge.socket
CredType=cred/munge
StateSaveLocation={place}/state
SlurmdSpoolDir={place}/spool
SlurmctldPidFile={place}/slurmctld.pid
SlurmdPidFile={place}/slurmd.pid
SlurmctldLogFile={place}/slurmctld.log
SlurmdLogFile={place}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
MpiDefault=none
NodeName={host} NodeAddr=127.0.0.1 CPUs=4 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES State=UP
"""


def free_ports(count):
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


class Batch(Preload):
    def slurm(self):
        """The environment of srun, for a Slurm of this test's own with one node of four CPUs, which is this machine."""
        daemons = [shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin") for name in ("munged", "slurmctld", "slurmd")]
        if None in (*daemons, shutil.which("srun")):
            self.skipTest("no Slurm here (packages munge, slurmctld, slurmd, slurm-client)")
        if os.geteuid() != 0:
            self.skipTest("slurmd wants to be started as root")
        place = self.scratch / "slurm"
        for name in ("state", "spool", "munge"):
            (place / name).mkdir(parents=True)
        key = place / "munge" / "key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o600)
        configuration = place / "slurm.conf"
        configuration.write_text(CONFIGURATION.format(place=place, host=socket.gethostname().split(".")[0],
                                                      user=getpass.getuser(), ports=free_ports(2)), encoding="utf-8")
        self.marker = f"PRELOAD_TEST_JOB={uuid.uuid4()}"
        environment = {**clean_environment(), "SLURM_CONF": str(configuration)}
        environment.update([self.marker.split("=")])
        self.addCleanup(kill_all, self.marker)
        files = [f"--{kind}={place}/munge/{kind}" for kind in ("pid-file", "log-file", "seed-file")]
        for command in ([daemons[0], "--foreground", "--force", f"--key-file={key}", f"--socket={place}/munge.socket", *files],
                        [daemons[1], "-D"], [daemons[2], "-D"]):
            subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL, start_new_session=True)
            if command[0] == daemons[0]:
                self.wait_for(lambda: (place / "munge.socket").exists())
        self.wait_for(lambda: "idle" in self.says(["sinfo", "-h", "-o", "%T"], environment))
        return environment

    def wait_for(self, condition):
        deadline = time.monotonic() + 20
        while not condition():
            if time.monotonic() > deadline:
                self.skipTest(f"Slurm does not come up here: {self.logs()}")
            time.sleep(0.05)

    def logs(self):
        lines = [line for log in sorted((self.scratch / "slurm").glob("**/*log*")) if log.is_file()
                 for line in log.read_text(errors="replace").splitlines() if "error" in line.lower()]
        return "; ".join(lines[-3:]) or "its logs name no error"

    def says(self, command, environment):
        return subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=10, check=False).stdout

    def srun(self, environment, options, words):
        folder = self.scratch / f"out{next(self.numbers)}"
        begin = time.monotonic()
        done = subprocess.run(["srun", "-n", "2", *options, *map(str, words)], env={**environment, "PAPAYA_OUTPUT": str(folder)},
                              cwd=self.scratch, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True, timeout=30, check=False)
        return Job(done.returncode, done.stdout, done.stderr, time.monotonic() - begin, folder)

    @time_limit(60)
    def test_slurm(self):
        """srun with PMI2 (MPICH) or PMIx (Open MPI): `papaya run`, --export and a TaskProlog give the report of mpirun."""
        self.need_papaya()
        environment = self.slurm()
        interface = {"mpich": "pmi2", "openmpi": "pmix"}[self.mpi]
        if interface not in self.says(["srun", "--mpi=list"], environment):
            self.skipTest(f"this Slurm has no {interface}")
        program = [self.program("calls"), "blocking"]
        library = self.build / "libpapaya.so"
        prolog = self.scratch / "prolog"
        prolog.write_text(f"#!/bin/sh\necho export LD_PRELOAD={library}\n", encoding="utf-8")
        prolog.chmod(0o755)
        expected = self.job(2, *program)
        self.check_right(expected, 2)
        for options, words in (([], [self.build / "papaya", "run", *program]),
                               ([f"--export=ALL,LD_PRELOAD={library}"], program),
                               ([f"--task-prolog={prolog}"], program)):
            job = self.srun(environment, [f"--mpi={interface}", *options], words)
            self.check_right(job, 2)
            self.check_counts(job)
            calls, wanted = ({row["name"]: (row["calls"], row["bytes"]) for row in one.report()["collectives"]}
                             for one in (job, expected))
            self.assertEqual(calls, wanted, options)
        # Nothing of the environment but what --export names: without the library there is no report.
        job = self.srun(environment, [f"--mpi={interface}", "--export=NONE"], program)
        self.check_right(job, 2)
        self.assertEqual([job.folder.exists(), *self.scratch.glob("papaya.*")], [False])
