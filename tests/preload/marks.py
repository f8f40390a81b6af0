"""How the cases in cases/*.py are marked."""

import contextlib
import functools


def time_limit(seconds):
    """The seconds a case may take on an idle machine; 60 without this, which is some jobs of a second each."""
    def mark(case):
        case.seconds = seconds
        return case
    return mark


def quick(case):
    """Of the suite `quick`: what a wrong change breaks first, in a second or a few."""
    case.is_quick = True
    return case


def timed(case):
    """Claims something about times: others, which have the machine's cores at that moment, may spoil it twice."""
    @functools.wraps(case)
    def up_to_three(self):
        for _ in range(2):
            with contextlib.suppress(self.failureException):
                return case(self)
            print("again: it depends on times, and the machine may have been busy", flush=True)
        return case(self)
    return up_to_three


def needs(feature):
    """For MPIs with "mpi4", "large_counts" or "persistent_collectives" only, as mpi4.h has them."""
    def mark(case):
        case.needs = feature
        return case
    return mark
