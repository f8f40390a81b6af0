"""MPI's own messages go on while ranks wait."""

from harness import WAITS, Preload
from marks import quick, time_limit


class Progress(Preload):
    def in_every_mode(self, ranks, *modes):
        """In every wait mode, within and across nodes."""
        self.check_right(self.job(ranks, self.program("progress"), *modes, via="native", timeout=20), ranks)
        self.need_papaya()
        for place, env in self.places().items():
            algorithm = "arrival_leader" if place == "within" else "dissemination"
            for wait in WAITS:
                with self.subTest(place=place, wait=wait):
                    job = self.job(ranks, self.program("progress"), *modes, timeout=30,
                                   env={**env, "PAPAYA_ALLREDUCE": algorithm, "PAPAYA_WAIT": wait})
                    self.check_right(job, ranks)
                    self.assertGreater(job.allreduce_algorithms().get(algorithm, 0), 0)

    @quick
    def test_progress(self):
        """A rank that waits receives, sends and serves its window; small operations do not each wait until it wakes up."""
        self.in_every_mode(2, "receive", "send", "window", "sends", "fetches")

    @time_limit(90)
    def test_progress_of_others(self):
        """The same where the rank that waits is not the one that is needed last, and ranks outnumber cores."""
        self.in_every_mode(3, "chain", "pair")
