"""Single calls as a table, as a timeline and as an archive."""

import collections
import csv
import json
import re
import shutil
import subprocess

from harness import Preload
from marks import quick, time_limit, timed


class Trace(Preload):
    def check_extract(self, job, rows):
        """A part of the run whose trace has these rows: the same rows, of some ranks and some time."""
        arrivals = sorted(float(row["arrival_us"]) for row in rows)
        begin, end = arrivals[len(arrivals) // 4] + 0.01, arrivals[len(arrivals) // 2] + 0.01
        part = list(csv.DictReader(self.papaya("trace", "--csv", "--from", begin / 1e6, "--to", end / 1e6, "--ranks", 1,
                                               job.folder).splitlines()))
        self.assertEqual(part, [row for row in rows if row["rank"] == "1" and float(row["arrival_us"]) <= end
                                and float(row["exit_us"]) >= begin])
        self.assertNotIn(len(part), (0, len(rows)))
        self.assertIn("no call lies between", self.papaya("trace", "--csv", "--from", 2, "--to", 1, job.folder, code=2))
        self.assertIn("is no list of ranks", self.papaya("trace", "--csv", "--ranks", "one", job.folder, code=2))

    @quick
    @timed
    def test_trace(self):
        """A run as a table and as a timeline, whole and after it was killed."""
        self.need_papaya()
        job = self.call_sites(self.program("call_sites"))[2]
        rows = list(csv.DictReader(self.papaya("trace", "--csv", job.folder).splitlines()))
        counts = collections.Counter(row["collective"] for row in rows)
        self.assertEqual(counts, {"MPI_Allreduce": 40, "MPI_Bcast": 40})
        self.check_extract(job, rows)
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
        killed = self.job(2, self.program("loop"), 40, "kill")
        events = json.loads(self.papaya("trace", "--chrome", killed.folder, code=3))
        self.assertTrue(any(event.get("args", {}).get("never left") for event in events))
        (killed.folder / "rank-00001.pap").unlink()
        self.papaya("trace", "--csv", killed.folder, code=3)

    @timed
    def test_trace_otf2(self):
        """The same as an archive that OTF2's own tools read; times of each location ascend, and regions nest."""
        self.need_papaya()
        help_text = self.papaya("trace", "--help")
        if shutil.which("otf2-print") is None:
            self.skipTest("no otf2-print here (otf2-tools)")
        job = self.call_sites(self.program("call_sites"))[2]
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
        rows = list(csv.DictReader(self.papaya("trace", "--csv", job.folder).splitlines()))
        first = sum(float(row["late_us"]) == 0 for row in rows)
        self.assertGreaterEqual(first, 40)  # one of each call, or both where they arrived in the same nanosecond
        self.assertEqual(len(re.findall(r'"late_us" <\d+>; DOUBLE; 0\)', text)), first)
        self.assertRegex(text, r'"algorithm" <\d+>; STRING; "native"')
        definitions = printed("-G")
        self.assertRegex(definitions, r"CLOCK_PROPERTIES +Ticks per Seconds: 1000000000, Global Offset: 0,")
        self.assertEqual(len(re.findall(r"^LOCATION_GROUP .*Type: PROCESS, Parent: \"node::", definitions, re.M)), 2)
        self.assertEqual(len(re.findall(r"^LOCATION .*# Events: 200,", definitions, re.M)), 2)
        self.assertRegex(definitions, r'(?m)^COMM .*Name: "MPI_COMM_WORLD"')
        self.assertRegex(definitions, r"(?m)^GROUP .*Type: COMM_GROUP, .*2 Members: 0 .*, 1 ")
        self.assertIn("exists already", self.papaya("trace", "--otf2", job.folder, "-o", archive, code=2))
        # Other collectives, communicators and threads, and a rank that was killed inside a call.
        for number, words in enumerate(([self.program("calls"), "blocking"], [self.program("calls"), "nonblocking"], [self.program("threads")],
                                        [self.program("loop"), 40, "kill"])):
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
            job = self.job(2, self.program("many"), calls, pause, *what, env={"PAPAYA_PROFILE": "trace", **(env or {})}, **more)
            if job.code == 77:
                self.skipTest(job.out.splitlines()[0])
            text = " ".join(self.papaya("report", job.folder, code=(0, 3)).split())
            if "faster than they could be written" not in text:
                break
        return job, text

    @time_limit(120)
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
        self.check_died(job.code)
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
        job = self.job(2, self.program("many"), 100, 0, env={"PAPAYA_PROFILE": "trace", "PAPAYA_TRACE_LIMIT": "0"})
        self.check_right(job, 2)
        self.assertEqual(sorted(path.name for path in job.folder.glob("*.papz")), [])

    def test_trace_disk_full(self):
        """A file system that has room for the rings and little more."""
        self.need_papaya()
        place = self.scratch / "small"
        place.mkdir()
        job = self.job(2, self.program("many"), 10, 10, env={"PAPAYA_PROFILE": "trace"})
        record = -(-(job.folder / "rank-00000.pap").stat().st_size // 4096) * 4096
        with self.small_file_system(place, 2 * record + 40000) as wrapper:
            copy = 'mv "$PAPAYA_OUTPUT" "$KEPT"'
            job = self.job(2, self.program("many"), (1 << 20) + 200000, 1000, wrapper=[*wrapper[:-2], wrapper[-2].replace(
                'exec "$@"', f'{{ "$@"; code=$?; {copy}; exit $code; }}'), "sh"],
                           env={"PAPAYA_PROFILE": "trace", "PAPAYA_OUTPUT": str(place / "out"), "KEPT": str(self.scratch / "kept")})
        self.check_right(job, 2, quiet=False)
        said = [line for line in job.said() if "traces of 1 of 2 ranks could not be written" in line]
        self.assertEqual(len(said), 1, job.said())
        text = " ".join(self.papaya("report", self.scratch / "kept").split())
        self.assertIn("Dropped from the trace", text)
        self.assertIn("No space left on device", text)
