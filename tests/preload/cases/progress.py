"""MPI's own messages go on while ranks wait."""

from harness import LEADER, Preload, quick, time_limit


class Progress(Preload):
    @time_limit(120)
    def test_progress(self):
        modes = {"receive": 3, "send": 2, "chain": 3, "window": 2, "pair": 3}
        for mode, ranks in modes.items():
            self.check_right(self.job(ranks, self.program("progress"), mode, via="native", timeout=20), ranks)
        self.need_papaya()
        for mode, ranks in modes.items():
            for wait in ("auto", "spin", "yield", "block"):
                job = self.job(ranks, self.program("progress"), mode, env={**LEADER, "PAPAYA_WAIT": wait}, timeout=20)
                self.check_right(job, ranks)
                self.check_leader(job)

    @quick
    def test_progress_of_small_operations(self):
        """Operations that need a rank which has been waiting for long do not each wait until it wakes up."""
        for mode in ("sends", "fetches"):
            self.check_right(self.job(2, self.program("progress"), mode, via="native", timeout=20), 2)
        self.need_papaya()
        across = {"PAPAYA_ALLREDUCE": "dissemination", "PAPAYA_NODE_SIZE": "1"}
        for mode, algorithm, env in (("sends", "arrival_leader", {}), ("fetches", "arrival_leader", {}),
                                     ("sends", "arrival_leader", {"PAPAYA_WAIT": "block"}),
                                     ("fetches", "arrival_leader", {"PAPAYA_WAIT": "block"}), ("sends", "dissemination", across)):
            job = self.job(2, self.program("progress"), mode, env={**LEADER, **env}, timeout=20)
            self.check_right(job, 2)
            self.assertGreater(job.allreduce_algorithms().get(algorithm, 0), 0)
