"""Who is late, and by how much: the delays of eager-SGD's experiments, which are sleeps."""

import random
import time

KINDS = ("none", "fixed", "rotating", "random")


class Straggler:
    def __init__(self, kind, delay_ms, seed, world):
        self.kind, self.seconds, self.seed = kind, delay_ms / 1000, seed
        self.rank, self.ranks = world.rank, world.size

    def of_step(self, step):
        """The rank that is late; all ranks know it. -1: none."""
        if self.kind == "fixed":
            return self.ranks - 1
        if self.kind == "rotating":
            return step % self.ranks
        if self.kind == "random":
            return random.Random(f"{self.seed} {step}").randrange(self.ranks)
        return -1

    def delay(self, step):
        if self.of_step(step) == self.rank:
            time.sleep(self.seconds)
