"""Call sites: rules of the tuning file that are for one, and trials of each (docs/architecture/deciding.md)."""

import json
import pathlib
import re
import tempfile

from harness import Preload
from marks import quick, time_limit, timed

LINES = (pathlib.Path(__file__).parent.parent / "sites.c").read_text().splitlines()


def line_of(letter):
    return next(number for number, text in enumerate(LINES, 1) if f"/* site {letter} */" in text)


class Sites(Preload):
    def run_sites(self, ranks, *phases, rules=(), quiet=True, **env):
        """The job, with rules for the allreduces and bcasts of sites: (collective, algorithm, letter or place, or None)."""
        rows = [{"collective": collective, "algorithm": algorithm,
                 **({} if site is None else {"site": site if len(site) > 1 else f"sites.c:{line_of(site)}"})}
                for collective, algorithm, site in rules]
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump({"version": 1, "rules": rows}, file)
            file.flush()
            job = self.job(ranks, self.program("sites"), *phases, env={"PAPAYA_TUNING": file.name, "PAPAYA_LOG": "info", **env})
        self.check_right(job, ranks, quiet=False)
        return job

    def served(self, job, algorithm, collective="MPI_Allreduce"):
        """Calls, of a rank, that the algorithm has served."""
        report = job.report()
        return sum(row["calls"] for row in report["algorithms"]
                   if row["algorithm"] == algorithm and row["collective"] == collective) / report["ranks"]

    def phases(self, job):
        """Of each phase whether a rule for b came to serve the calls from there, and no others."""
        return re.findall(r"phase \d+: (\w+)", job.out)

    @quick
    @time_limit(60)
    @timed
    def test_site_rules(self):
        """A rule for a call site serves its calls and no others, whether or not algorithms are tried, by any of its names."""
        self.need_papaya()
        rules = (("allreduce", "arrival_tree", "b"), ("allreduce", "native", None))
        job = self.run_sites(3, "aab:50000", rules=rules, PAPAYA_ADAPT="off")
        self.assertEqual(self.phases(job), ["right"], job.err)
        self.assertGreater(self.served(job, "arrival_tree"), 20, job.report()["algorithms"])
        self.assertIn("their call sites have a period of 3", job.err)
        # The report says of the site what serves it.
        trial = next(row for row in job.report()["trials"] if row["call_site"])
        self.assertEqual((trial["algorithm"], trial["name"]), ("arrival_tree", "MPI_Allreduce"))
        shown = json.loads(self.papaya("report", "--json", job.folder))["trials"]
        self.assertEqual([row["call_site"][0]["line"] for row in shown if row["call_site"]], [line_of("b")])
        self.assertRegex(self.papaya("report", job.folder), rf"from \w+ \(sites\.c:{line_of('b')}\)")
        # All calls from there, by the offset, without debug information; only rank 0 is there.
        frame = trial["call_site"][0]
        place = f"{frame['module'].split('/')[-1]}+{frame['offset']}"
        job = self.run_sites(3, "b/a:50000", rules=(("allreduce", "arrival_tree", place), ("allreduce", "native", None)), PAPAYA_ADAPT="off")
        self.assertEqual(self.phases(job), ["right"], job.err)

    @time_limit(60)
    @timed
    def test_sites_change(self):
        """Sites whose order changes, that ranks do not agree on, or that come in none: results stay right, and so do rules."""
        self.need_papaya()
        rules = (("allreduce", "arrival_tree", "b"), ("allreduce", "native", None))
        # One call more, and the places lie otherwise; one site; none that is named.
        job = self.run_sites(2, "aab:50000", "a:1", "aab:50000", "b:50000", "a:50000", rules=rules, PAPAYA_ADAPT="off")
        self.assertEqual([self.phases(job)[i] for i in (0, 2, 3, 4)], ["right"] * 4, job.err)
        # Each rank by lot: nothing is known of the next call, nor is anything told apart any more.
        job = self.run_sites(2, "ab:50000", "?:50000", rules=rules, PAPAYA_ADAPT="off")
        self.assertEqual(self.phases(job)[0], "right", job.err)
        self.assertIn("are not told apart any more", job.err)
        # Rank 0 is at b twice in three calls, rank 1 never.
        job = self.run_sites(2, "abb/aaa:50000", rules=rules, PAPAYA_ADAPT="off")
        self.assertEqual(self.phases(job), ["right"], job.err)

    @time_limit(60)
    @timed
    def test_sites_of_early_leavers(self):
        """Broadcasts of two sites, whose root leaves them early: the allreduce between them agrees."""
        self.need_papaya()
        rules = (("bcast", "tree_bcast", "y"), ("bcast", "native", None), ("allreduce", "native", None))
        job = self.run_sites(2, "xya:600", rules=rules, PAPAYA_ADAPT="off")
        self.assertTrue(100 < self.served(job, "tree_bcast", "MPI_Bcast") < 200, job.report()["algorithms"])

    @time_limit(60)
    @timed
    def test_sites_tried(self):
        """After a trial of all calls, those of each place have their own."""
        self.need_papaya()
        job = self.run_sites(2, "aabc:3000", "ab:1000", "abc/acb:2000", PAPAYA_ADAPT="100%")
        self.assertRegex(job.err, r"MPI_Allreduce of up to 32 bytes on a communicator of 2 ranks: their call sites have a period of 4, and are told apart")
        self.assertTrue(re.search(r"period of 2", job.err), job.err)
        lines = {row["call_site"][0]["line"] for row in json.loads(self.papaya("report", "--json", job.folder))["trials"] if row["call_site"]}
        self.assertLessEqual({line_of(letter) for letter in "abc"}, lines)

    @quick
    @time_limit(60)
    def test_site_failure(self):
        """The algorithm that a rule names for a call site finds no memory: what serves then is in the report as a change."""
        self.need_papaya()
        job = self.run_sites(2, "aab:3000", rules=(("allreduce", "arrival_tree", "b"),), PAPAYA_ADAPT="100%", PAPAYA_SHM_LIMIT="24K")
        row, = (row for row in job.report()["trials"] if row["call_site"])
        self.assertEqual({one["algorithm"]: one["state"] for one in row["tried"]}["arrival_tree"], "cannot_serve")
        self.assertEqual((row["algorithm"], row["change_count"]), ("native", 1), row)
        change, = row["last_changes"]
        self.assertEqual((change["from"], change["to"]), ("arrival_tree", "native"))
        self.assertLess(change["after_calls"], 24)  # no trial had begun
