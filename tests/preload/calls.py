"""Collectives through mpi4py, each a known number of times, results checked; prints the counts for the runner."""

import sys
from array import array

from mpi4py import MPI

world = MPI.COMM_WORLD
rank, ranks = world.Get_rank(), world.Get_size()
total = ranks * (ranks - 1) // 2
failures = 0
counts = {}


def check(condition, what):
    global failures
    if not condition:
        failures += 1
        print("failed:", what, file=sys.stderr)


def counted(name, times=1):
    counts[name] = counts.get(name, 0) + times


for i in range(2):
    world.Barrier()
    counted("MPI_Barrier")

for i in range(3):
    root = i % ranks
    buffer = array("i", [i if rank == root else -1] * 4)
    world.Bcast([buffer, MPI.INT], root)
    counted("MPI_Bcast")
    check(list(buffer) == [i] * 4, "Bcast")

for i in range(5):
    send, receive = array("d", [rank + i] * 4), array("d", [0.0] * 4)
    world.Allreduce([send, MPI.DOUBLE], [receive, MPI.DOUBLE], MPI.SUM)
    counted("MPI_Allreduce")
    check(list(receive) == [float(total + i * ranks)] * 4, "Allreduce")

for i in range(7):
    receive = array("q", [rank + i] * 4)
    world.Allreduce(MPI.IN_PLACE, [receive, MPI.LONG_LONG], MPI.MAX)
    counted("MPI_Allreduce")
    check(list(receive) == [ranks - 1 + i] * 4, "Allreduce in place")

# An operation written in Python.
larger = MPI.Op.Create(lambda a, b, kind: b.__setitem__(slice(None), max(bytes(a), bytes(b))), commute=True)
for i in range(4):
    send, receive = bytearray([rank + i] * 3), bytearray(3)
    world.Allreduce([send, MPI.BYTE], [receive, MPI.BYTE], larger)
    counted("MPI_Allreduce")
    check(receive == bytearray([ranks - 1 + i] * 3), "Allreduce with an own operation")
larger.Free()

for i in range(6):
    root = i % ranks
    send, receive = array("i", [rank]), array("i", [-1])
    world.Reduce([send, MPI.INT], [receive, MPI.INT], MPI.SUM, root)
    counted("MPI_Reduce")
    check(rank != root or receive[0] == total, "Reduce")

for i in range(8):
    send, receive = array("i", [10 * rank + r for r in range(ranks)]), array("i", [-1] * ranks)
    world.Alltoall([send, MPI.INT], [receive, MPI.INT])
    counted("MPI_Alltoall")
    check(list(receive) == [10 * r + rank for r in range(ranks)], "Alltoall")

half = world.Split(rank % 2, rank)
for i in range(9):
    receive = array("i", [1])
    half.Allreduce(MPI.IN_PLACE, [receive, MPI.INT], MPI.SUM)
    counted("MPI_Allreduce")
    check(receive[0] == half.Get_size(), "Allreduce on a half")
half.Free()

# One write: print() writes the end of the line by itself, and ranks share the output.
line = " ".join(["counts", *(f"{name}={number}" for name, number in counts.items()), *(["FAILED"] if failures else [])])
sys.stdout.write(line + "\n")
sys.stdout.flush()
sys.exit(1 if failures else 0)
