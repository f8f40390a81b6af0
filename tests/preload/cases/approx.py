"""PAPAYA_APPROX: results of unmodified programs that may be approximate, and that nobody can overlook it."""

import json

from harness import HERE, Preload
from marks import quick, time_limit


def approx(rules, **more):
    return {"PAPAYA_APPROX": rules, **more}


class Approx(Preload):
    def run_approx(self, mode, rules, ranks=3, calls=20, **more):
        job = self.job(ranks, self.program("approx"), mode, calls, env=approx(rules, **more))
        self.check_right(job, ranks, quiet=False)
        self.need_papaya()
        return job

    def rows(self, job):
        return [(row["name"], row["approximate_calls"], row["calls"]) for row in job.report()["approximate"]]

    @quick
    @time_limit(60)
    def test_approx(self):
        """By a communicator's name; the report's first lines and a line on standard error say so."""
        job = self.run_approx("stale", "allreduce@gradients=ssp_sharded:slack=2")
        self.assertEqual(job.complaints(), ["papaya: PAPAYA_APPROX: MPI_Allreduce for communicator \"gradients\" returns "
                                            "approximate results (ssp_sharded, slack 2)."])
        self.assertEqual(self.rows(job), [("MPI_Allreduce", 60, 60)])
        report = " ".join((job.folder / "report.txt").read_text().split())
        self.assertRegex(report, r"^PAPAYA_APPROX: 60 of 60 MPI_Allreduce on communicator \"gradients\" returned "
                                 r"approximate results \(ssp_sharded, slack 2; used data up to [012] calls? old\)")
        self.assertEqual(self.papaya("report", job.folder).splitlines()[0][:14], "PAPAYA_APPROX:")
        # The others are MPI's, and only they are.
        self.assertEqual([row["calls"] for row in job.report()["collectives"] if row["name"] == "MPI_Allreduce"], [60])
        # They are recorded with where the program makes them.
        sites = job.report()["weak_collectives"][0]["call_sites"]
        self.assertEqual([(site["calls"], site["frames"][0]["module"].split("/")[-1]) for site in sites],
                         [(60, f"approx-{self.mpi}")])
        self.run_approx("in_place", "allreduce@gradients=ssp_ring:slack=2", PAPAYA_NODE_SIZE="2")

    @time_limit(60)
    def test_approx_exact(self):
        """Slack 0 is exact; so is what no weak collective serves, and what the ranks do not name alike."""
        self.run_approx("exact", "allreduce@\"gradients\"=ssp_hypercube")
        job = self.run_approx("odd", "allreduce@gradients=ssp_hypercube:slack=0,bcast@gradients|nobody=threshold_bcast,"
                                     "allreduce@gradient=ssp_ring")
        self.assertEqual(self.rows(job), [("MPI_Allreduce", 21, 39), ("MPI_Bcast", 0, 0), ("MPI_Allreduce", 0, 0)])
        self.assertEqual(job.report()["approximate"][0]["why_exact"], "a call without data")
        said = "\n".join(job.complaints())
        self.assertIn("by different names", said)
        self.assertIn("no call of MPI_Bcast was on communicators \"gradients\", \"nobody\"; rank 0 made no such call", said)
        self.assertIn("no call of MPI_Allreduce was on communicator \"gradient\"; rank 0 made calls of the rules' collectives on \"", said)
        self.assertIn("\"gradients\"", said.split("collectives on")[1])
        self.assertIn("no call of MPI_Bcast", (job.folder / "report.txt").read_text().split("papaya: who")[0])

    @time_limit(60)
    def test_approx_churn(self):
        """A program that makes communicators in a loop gets no line of standard error for each."""
        job = self.run_approx("churn", "allreduce@gradients=ssp_hypercube:slack=0,bcast@gradients=threshold_bcast",
                              ranks=2, calls=350)
        self.assertEqual(self.rows(job), [("MPI_Allreduce", 2 * 2 * 256, 2 * 2 * 315), ("MPI_Bcast", 0, 0)])
        said = "\n".join(job.complaints())
        self.assertEqual(said.count("by different names"), 1)
        self.assertEqual(said.count("stay exact: a rank has 256 such collectives"), 1)
        self.assertIn("256 such collectives", job.report()["approximate"][0]["why_exact"])

    @time_limit(60)
    def test_approx_threads(self):
        """Threads that answer for ranks of other nodes end before MPI does."""
        job = self.run_approx("threads", "allreduce@gradients=wait_avoiding_group", ranks=4, calls=5,
                              PAPAYA_NODE_SIZE="1")
        self.assertEqual(self.rows(job), [("MPI_Allreduce", 20, 20)])

    @time_limit(60)
    def test_approx_cycle(self):
        """Calls of one size that mean different things are kept apart if the user says so."""
        job = self.run_approx("layers", "allreduce@gradients=ssp_hypercube:slack=4,cycle=2", PAPAYA_NODE_SIZE="2")
        self.assertEqual(self.rows(job), [("MPI_Allreduce", 120, 120)])

    @time_limit(60)
    def test_approx_rooted(self):
        job = self.run_approx("rooted", "reduce@solver=threshold_reduce:threshold=0.25,"
                                        "bcast@solver=threshold_bcast:threshold=0.25", calls=8)
        self.assertEqual(self.rows(job), [("MPI_Reduce", 24, 24), ("MPI_Bcast", 48, 48)])

    @time_limit(60)
    def test_approx_sites(self):
        """By a call site, as the report names it with and without debug information; not all ranks are at it."""
        lines = (HERE / "approx.c").read_text().splitlines()
        line = next(number for number, text in enumerate(lines, 1) if "/* approximate site */" in text)
        for calls in (23, 25):  # ends with an approximate call
            job = self.run_approx("sites", f"allreduce@approx.c:{line}=ssp_hypercube:slack=2", calls=calls)
            approximate = 3 * 2 * sum(call % 5 not in (2, 4) for call in range(1, calls + 1))
            self.assertEqual(self.rows(job), [("MPI_Allreduce", approximate, approximate)])
        job = self.run_approx("sites", "allreduce@nowhere.c:1=ssp_ring,bcast@approx.c:1=threshold_bcast", calls=5)
        self.assertEqual(self.rows(job), [("MPI_Allreduce", 0, 0), ("MPI_Bcast", 0, 0)])
        places = {f"{frame['module'].split('/')[-1]}+{frame['offset']}"
                  for site in json.loads(self.papaya("report", "--json", job.folder))["call_sites"]
                  for frame in site["frames"] if frame["line"] == line}
        job = self.run_approx("sites", f"allreduce@{'|'.join(places)}=ssp_sharded:slack=1", calls=7)
        self.assertEqual(self.rows(job), [("MPI_Allreduce", 24, 24)])
        job = self.run_approx("sites", f"allreduce@approx.c:{line}=ssp_ring:slack=2", calls=12, PAPAYA_VERIFY="3")
        self.assertGreater(job.report()["approximate"][0]["verified"], 0)
        self.assertEqual(job.report()["approximate"][0]["largest_error"], 0)

    @time_limit(60)
    def test_approx_wrong(self):
        """A value that cannot be used, or that not all ranks have: one sentence, and all results are exact."""
        for rules, what in (("allreduce@gradients=ssp_hypercub", "did you mean ssp_hypercube?"),
                            ("allreduce@gradients=ssp_hypercube:slack=-1", "slack must be from 0 to 1048576")):
            job = self.run_approx("exact", rules, ranks=2, calls=2)
            self.assertEqual(len(job.complaints()), 1, job.err)
            self.assertRegex(job.complaints()[0], r"PAPAYA_APPROX=.*[Aa]ll results are exact\.$")
            self.assertIn(what, job.complaints()[0])
            self.assertEqual((job.report()["approximate"], job.report()["settings"].get("PAPAYA_APPROX", "")), ([], ""))
        runner = [str(self.build / "papaya"), "run", self.program("approx"), "exact", "4"]
        job = self.job(1, "env", "PAPAYA_APPROX=allreduce@gradients=ssp_hypercube:slack=2", *runner, ":", "-n", "1",
                       "env", "PAPAYA_APPROX=allreduce@gradients=ssp_hypercube:slack=3", *runner, via="")
        self.check_right(job, 2, quiet=False)
        self.assertIn("its value differs between the ranks", "\n".join(job.complaints()))

    @time_limit(60)
    def test_approx_verified(self):
        """PAPAYA_VERIFY tells the error; exact results have none."""
        job = self.run_approx("exact", "allreduce@gradients=ssp_hypercube", PAPAYA_VERIFY="5")
        row = job.report()["approximate"][0]
        self.assertEqual((row["verified"], row["median_error"], row["largest_error"]), (12, 0, 0))
        job = self.run_approx("rooted", "reduce@solver=threshold_reduce:threshold=0.25,"
                                        "bcast@solver=threshold_bcast:threshold=0.25", calls=2, PAPAYA_VERIFY="2")
        reduce, bcast = job.report()["approximate"]
        # Three quarters of the elements are the root's own, call + root, of 3 call + 3.
        self.assertEqual(reduce["verified"], 1)
        self.assertAlmostEqual(reduce["largest_error"], 0.75 ** 0.5 * (9 - 4) / 9, places=9)
        # Of 50 elements that are 2, 36 are -1 at rank 0.
        self.assertEqual(bcast["verified"], 5)
        self.assertAlmostEqual(bcast["largest_error"], (36 * 9 / (50 * 4)) ** 0.5, places=9)
        self.assertNotIn("verified results differ", job.err)
