"""Each rank adds to a sum that all share, and goes on with one that is at most four calls old."""

import time

import numpy
import papaya

rank = papaya.init().rank  # or mpi4py's
gradient, total = numpy.ones(1000), numpy.empty(1000)
waited = 0
with papaya.ssp_accumulate(None, gradient.size, "float64", slack=4) as sum_of_all:
    if rank == 0:
        print(sum_of_all.info)
    for call in range(1, 101):
        time.sleep(0.0005 if call % 10 == rank else 0.0001)  # now and then a rank is late
        status = sum_of_all(gradient, total)
        waited += status.waited
print(f"rank {rank}: the last sum is {total[0]:.0f}, of contributions from call {status.oldest} on; "
      f"waited {waited * 1e3:.1f} ms")
