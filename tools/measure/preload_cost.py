#!/usr/bin/env python3
"""What libpapaya.so costs a process that never calls MPI: /bin/true with it and without, in turn.

  preload_cost.py LIBRARY [RUNS]
"""
import os
import statistics
import sys
import time


def microseconds(environment):
    begin = time.perf_counter_ns()
    os.waitpid(os.posix_spawn("/bin/true", ["true"], environment), 0)
    return (time.perf_counter_ns() - begin) / 1e3


def main():
    library, runs = os.path.abspath(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1000
    pairs = [(microseconds({}), microseconds({"LD_PRELOAD": library})) for _ in range(runs)]
    without, preloaded = (statistics.median(times) for times in zip(*pairs))
    print(f"{without:.0f} us without, {preloaded:.0f} us with it, {preloaded - without:.0f} us more")


main()
