"""Horovod's communication, in the example and out of a library of its name."""

import collections
import json
import re
import shutil

from harness import Preload
from marks import time_limit


class Horovod(Preload):
    def horovod_calls(self, ranks, *words, env=None, via="run"):
        """A job of the example or of the library made from it, with all it has to say of its calls checked."""
        job = self.job(ranks, *words, env=env, via=via)
        done = re.findall(r"(?m)^horovod_calls: rank \d+ of \d+, (\d+) negotiations, (\d+) sums of gradients$", job.out)
        if job.code != 0 or len(done) != ranks or job.complaints():
            self.show(job)
        self.assertEqual((job.code, len(done), job.complaints()), (0, ranks, []))
        if via != "native" and not self.native_only:
            self.assertEqual(sum(job.allreduce_algorithms().values()), sum(int(n) + int(s) for n, s in done))
        return job

    @time_limit(120)
    def test_horovod_calls(self):
        words = [self.build / "examples" / f"horovod_calls-{self.mpi}", "--steps", "3", "--shrink", "8", "--layer-us", "1000"]
        self.horovod_calls(2, *words, via="native")
        self.horovod_calls(2, *words, "--half", via="native")
        self.need_papaya()
        for extra in ([], ["--half"]):
            self.horovod_calls(2, *words, *extra)
            for order in ("rank", "arrival"):
                env = {"PAPAYA_ALLREDUCE": "arrival_tree", "PAPAYA_BCAST": "arrival_bcast", "PAPAYA_ORDER": order}
                job = self.horovod_calls(3 if self.mpi == "openmpi" else 2, *words, *extra, env=env, via="preload")
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
        shutil.copy(self.build / "tests" / "preload" / f"mpi_lib_v2-{self.mpi}.so", library)
        job = self.horovod_calls(2, self.build / "tests" / "preload" / "plugin_host", library)
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
