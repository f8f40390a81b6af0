"""Rank 1 computes in a function with a name until papaya has said in PAPAYA_OUTPUT that it is missing."""
import array
import glob
import os

from mpi4py import MPI

COMM = MPI.COMM_WORLD


def is_said():
    return any(os.path.getsize(file) > 0 for file in glob.glob(os.path.join(os.environ["PAPAYA_OUTPUT"], "stall-*")))


def compute_forces():
    force = 1.0
    while not is_said():
        for _ in range(1000000):
            force = force * 1.0000001  # line of compute_forces
    return force


def energy():
    total = array.array("i", [1])
    COMM.Allreduce(MPI.IN_PLACE, total)  # line of energy
    return total[0]


for _ in range(5):
    energy()
if COMM.rank == 1:
    compute_forces()
assert energy() == COMM.size
