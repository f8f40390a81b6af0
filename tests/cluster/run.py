#!/usr/bin/env python3
"""Tests on the cluster in a box.

  run.py --build DIR --mpi openmpi|mpich --case NAME    one case; exit code 77 if it cannot be run here
"""
import argparse
import csv
import json
import os
import pathlib
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import unittest
import uuid

HERE = pathlib.Path(__file__).resolve().parent
SKIPPED = 77
TIMED_OUT = 124
MIB = 1 << 20

build = None
mpi = None


def box(*options):
    return [str(HERE / "box"), "--build", str(build), "--mpi", mpi, "--quiet", *options, "--"]


def run(command, seconds=60, **environment):
    """Exit code and output; a box that cannot be had here skips the test."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=seconds,
                          env={**os.environ, **environment}, check=False)
    if done.returncode == SKIPPED:
        raise unittest.SkipTest(done.stdout.strip())
    return done.returncode, done.stdout


def run_to_result(command, result, seconds=60, **environment):
    """The same for a program that has said all when result(output) is true. MPICH 4.0 over UCX and TCP may stay in
    MPI_Finalize for ever, natively too: there it gets three seconds from then on."""
    if mpi != "mpich":
        return run(command, seconds, **environment)
    with tempfile.TemporaryFile("w+") as file:
        def output():
            return pathlib.Path(f"/proc/self/fd/{file.fileno()}").read_text()

        with subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT, env={**os.environ, **environment}) as job:
            try:
                if eventually(lambda: job.poll() is not None or result(output()), seconds) and job.returncode is None:
                    eventually(lambda: job.poll() is not None, 3)
            finally:
                ended = job.poll() is not None
                job.kill()  # a box that is killed leaves nothing
        code = job.returncode if ended else 0 if result(output()) else TIMED_OUT
        if code == TIMED_OUT and result(output()):
            code = 0
        if code == SKIPPED:
            raise unittest.SkipTest(output().strip())
        return code, output()


def processes_with(word):
    """Processes whose command line has this word, and the namespaces they are in."""
    found = {}
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if word.encode() in (folder / "cmdline").read_bytes():
                found[folder.name] = {os.readlink(folder / "ns" / kind) for kind in ("net", "pid", "ipc", "mnt", "uts")}
        except OSError:  # it has just ended
            pass
    return found


def held_namespaces():
    held = set()
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        for kind in ("net", "pid", "ipc", "mnt", "uts"):
            try:
                held.add(os.readlink(folder / "ns" / kind))
            except OSError:
                pass
    return held


def links():
    return set(os.listdir("/sys/class/net"))


def eventually(condition, seconds=10):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.nodes = str(build / "tests" / "cluster" / f"nodes-{mpi}")

    def figures(self, *options, ranks="2"):
        """Microseconds of a round trip of 8 bytes and of 8 MiB and back, from node1 to node2."""
        pattern = r"round trip ([0-9.]+) us, 8 MiB ([0-9.]+) us, 0 failures"
        code, output = run_to_result(box("--ranks", ranks, "--timeout", "10", *options) + [self.nodes, ranks],
                                     lambda text: re.search(pattern, text))
        self.assertEqual(code, 0, output)
        return [float(figure) for figure in re.search(pattern, output).groups()]

    def test_nodes(self):
        """Nodes differ, memory is shared inside one, data goes over the links between them, and takes its time."""
        stats = self.folder / "stats"
        for _ in range(4):  # a launcher that did not end has been ended, and the box with it, before it wrote them
            round_trip_us, _ = self.figures("--nodes", "3", "--delay", "2ms", "--stats", str(stats))
            if stats.exists():
                break
        self.assertGreaterEqual(round_trip_us, 4000)
        sent = {node: counts["sent"]["bytes"] for node, counts in json.loads(stats.read_text()).items()}
        # 8 MiB from node1 to node2, and as much inside each node that nobody sees.
        self.assertGreater(sent["node1"], 8 * MIB, sent)
        self.assertLess(sent["node1"], 10 * MIB, sent)
        self.assertLess(sent["node2"], 2 * MIB, sent)
        self.assertLess(sent["node3"], 2 * MIB, sent)

    def test_rate(self):
        """8 MiB at 200 Mbit/s take a third of a second."""
        _, large_us = self.figures("--delay", "10us", "--rate", "200mbit", ranks="1")
        self.assertGreater(large_us, 8 * MIB * 8 / 200)

    def test_killed(self):
        """A box that is killed leaves nothing."""
        before = links()
        token = "papaya-box-" + uuid.uuid4().hex
        job = subprocess.Popen(box("--nodes", "2", "--ranks", "2") + [self.nodes, "2", token],
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        try:
            line = job.stdout.readline()
            if "skipped" in line:
                job.wait()
                self.skipTest(line.strip())
            self.assertEqual(line, "running\n")
            running = processes_with(token)
            own = {os.readlink(f"/proc/self/ns/{kind}") for kind in ("net", "pid", "ipc", "mnt", "uts")}
            namespaces = set().union(*running.values()) - own
            # The box, its first process, the launcher and 4 ranks; the namespaces of two nodes and the head.
            self.assertGreaterEqual(len(running), 7)
            self.assertGreaterEqual(len(namespaces), 3 * 5)
        finally:
            job.send_signal(signal.SIGKILL)
            job.wait()
            job.stdout.close()
        self.assertTrue(eventually(lambda: not processes_with(token)), processes_with(token))
        self.assertTrue(eventually(lambda: not namespaces & held_namespaces()))
        self.assertTrue(eventually(lambda: links() <= before), links() - before)
        self.assertFalse(os.path.exists(f"/dev/shm/{token}"))
        self.assertFalse(os.path.exists("/run/netns/node1"))

    def across(self, collective, *transport):
        """Every algorithm that works across nodes, measured with its results checked: that they ran, and are right."""
        listed = subprocess.run([str(build / "tests" / "mpi_variants"), collective, "across"], check=True,
                                stdout=subprocess.PIPE, text=True).stdout.splitlines()
        wanted = {line.split()[0] for line in listed if line.endswith(" rank") and ":" not in line}
        self.assertTrue(wanted)
        result = self.folder / f"{collective}.json"
        code, text = run_to_result(
            box("--nodes", "2", "--ranks", "2", "--timeout", "20", *transport) + [
                str(build / "papaya"), "bench", collective, "--sizes", "4K:8K", "-i", "4", "-x", "1", "--rounds", "1",
                "--algorithms", ",".join(sorted(wanted)), "--json", str(result)], lambda text: result.exists())
        self.assertEqual(code, 0, text)
        measured = json.loads(result.read_text())
        self.assertEqual(measured["nodes"], 2)
        self.assertEqual(measured["ranks"], 4)
        rows = [row for row in measured["rows"] if row["algorithm"] != "native"]
        self.assertEqual({row["algorithm"] for row in rows}, wanted)
        for row in rows:
            self.assertEqual(row["replaced"], 1, row)
            if collective != "barrier":
                self.assertGreater(row["checked_results"], 0, row)
            self.assertEqual(row["wrong_results"], 0, row)

    def test_across(self):
        """papaya's algorithms on nodes that share no memory."""
        # Debian's MPICH uses UCX by itself.
        transport = ["--transport", "ucx"] if mpi == "openmpi" else []
        for collective in ("allreduce", "reduce", "bcast", "allgather", "alltoall", "barrier"):
            with self.subTest(collective):
                self.across(collective, *transport)

    def lost(self, algorithm, *how):
        for after in (0.5, 2, 8):  # the last for a busy machine, on which the job needs that long to start
            begin = time.monotonic()
            code, text = run(box("--nodes", "2", "--ranks", "2", "--after", str(after), "--timeout", "40", *how) +
                             [str(build / "papaya"), "run", self.nodes, "2", "lost"],
                             PAPAYA_ALLREDUCE=algorithm, PAPAYA_OUTPUT=str(self.folder / algorithm))
            if "running" in text:
                break
        self.assertIn("running", text)
        self.assertNotIn(code, (0, TIMED_OUT), text)
        self.assertLess(time.monotonic() - begin, after + 20, text)

    def test_node_killed(self):
        """The processes of a node die in the middle of a collective: the job ends, as natively."""
        for algorithm in ("native", "ring", "rabenseifner"):
            with self.subTest(algorithm):
                self.lost(algorithm, "--kill-node", "2")

    def test_node_cut_off(self):
        """First its link goes. MPICH's launcher then never hears of it, and waits for ever, natively too."""
        if mpi == "mpich":
            self.skipTest("MPICH itself does not end when a node cannot be reached any more")
        for algorithm in ("native", "ring", "rabenseifner"):
            with self.subTest(algorithm):
                self.lost(algorithm, "--cut-node", "2", "--kill-node", "2")

    def test_segment_death(self):
        """A rank of a segment dies, on another node: the others find out by what carries their data, and go on. MPICH
        only: Open MPI's messages do not tell."""
        places = {"mpi": "MPI's messages"}
        if (build / "libpapaya-ucx.so").exists():
            places["ucx"] = "UCX"
        for transport, place in places.items():
            with self.subTest(transport):
                _, text = run(box("--nodes", "3", "--ranks", "1", "--timeout", "25", "--mpirun=-disable-auto-cleanup") +
                              ["env", f"PAPAYA_TRANSPORT={transport}",
                               str(build / "tests" / "api" / f"api_segment_deaths-{mpi}"), "death", place])
                for rank in (0, 1):
                    self.assertIn(f"rank {rank} goes on", text)

    def test_clocks(self):
        """Clocks that differ and drift by 100 ppm from node to node: arrivals as papaya tells them against those the
        program noted by the one clock that the machine has. They are as near as the report says."""
        stamps = self.folder / "stamps"
        stamps.mkdir()
        output = self.folder / "run"
        tests = build / "tests" / "cluster"
        code, text = run_to_result(
            box("--nodes", "4", "--ranks", "1", "--timeout", "40", "--delay", "50us") +
            ["env", f"LD_PRELOAD={tests / 'libskewed_clock.so'}:{build / 'libpapaya.so'}",
             str(tests / f"arrivals-{mpi}"), str(stamps), "3"],
            lambda text: (output / "report.json").exists(), PAPAYA_OUTPUT=str(output), SKEW_NS="40e6", SKEW_PPM="100")
        self.assertEqual(code, 0, text)
        report = json.loads((output / "report.json").read_text())
        self.assertEqual(report["nodes"], 4)
        noted = [[int(line) for line in (stamps / str(rank)).read_text().split()] for rank in range(4)]
        told = [[] for _ in noted]
        for row in csv.DictReader(subprocess.run([str(build / "papaya"), "trace", "--csv", str(output)], check=False,
                                                 stdout=subprocess.PIPE, text=True).stdout.splitlines()):
            if row["collective"] == "MPI_Barrier":
                told[int(row["rank"])].append(float(row["arrival_us"]))
        barriers = len(noted[0])
        self.assertGreater(barriers, 50)
        self.assertEqual([len(arrivals) for arrivals in told], [barriers] * 4)
        # Without the correction they would differ by 40 ms and more, and at the end by 300 us less than at the
        # beginning.
        worst = 0
        for rank in range(1, 4):
            errors = [told[rank][i] - told[0][i] - (noted[rank][i] - noted[0][i]) / 1e3 for i in range(barriers)]
            # Of a tenth of the run each, the median: a rank may lose its core between the two stamps.
            tenth = barriers // 10
            parts = [statistics.median(errors[i:i + tenth]) for i in range(0, barriers - tenth, tenth)]
            worst = max([worst, *map(abs, parts)])
        sys.stderr.write(f"arrivals of nodes are wrong by up to {worst:.2f} us, said to be within "
                         f"{report['clock_error_us']:.2f} us, or {report['clock_bound_us']:.2f} us for unlike ways "
                         f"... ")
        self.assertLess(worst, report["clock_error_us"])
        self.assertLess(worst, report["clock_bound_us"])
        self.assertIn("between nodes to within", (output / "report.txt").read_text())


def main():
    global build, mpi
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--build", required=True, type=pathlib.Path)
    parser.add_argument("--mpi", required=True, choices=["openmpi", "mpich"])
    parser.add_argument("--case", required=True)
    chosen = parser.parse_args()
    build, mpi = chosen.build.resolve(), chosen.mpi
    result = unittest.TextTestRunner(verbosity=2).run(Case("test_" + chosen.case))
    if not result.wasSuccessful():
        return 1
    return SKIPPED if result.skipped else 0


if __name__ == "__main__":
    sys.exit(main())
