"""Rank 1 computes in a function with a name, or sleeps there, until papaya has said in PAPAYA_OUTPUT that it is missing.

  stalled.py compute_forces|wait_for_data [LIBRARY]     with MPICH's library by ctypes, else with mpi4py
"""
import array
import ctypes
import glob
import os
import sys
import time


class Mpi4py:
    def __init__(self):
        from mpi4py import MPI
        self.in_place, self.comm = MPI.IN_PLACE, MPI.COMM_WORLD
        self.rank, self.size = self.comm.rank, self.comm.size

    def allreduce(self, total):
        self.comm.Allreduce(self.in_place, total)  # line that calls MPI

    def finalize(self):
        pass  # at exit


class Mpich:
    COMM_WORLD, INT, SUM, IN_PLACE = 0x44000000, 0x4c000405, 0x58000003, ctypes.c_void_p(-1)

    def __init__(self, library):
        ctypes.CDLL(library, ctypes.RTLD_GLOBAL)
        # As the program's own symbols, which a preloaded library may take; to be initialised with the interpreter's lock held.
        ctypes.PyDLL(None).MPI_Init(None, None)
        self.library = ctypes.CDLL(None)
        self.rank, self.size = (self.number_of(function) for function in (self.library.MPI_Comm_rank, self.library.MPI_Comm_size))

    def number_of(self, function):
        number = ctypes.c_int()
        function(self.COMM_WORLD, ctypes.byref(number))
        return number.value

    def allreduce(self, total):
        address = ctypes.c_void_p(total.buffer_info()[0])
        self.library.MPI_Allreduce(self.IN_PLACE, address, 1, self.INT, self.SUM, self.COMM_WORLD)  # line that calls MPI

    def finalize(self):
        self.library.MPI_Finalize()


def is_said():
    return any(os.path.getsize(file) > 0 for file in glob.glob(os.path.join(os.environ["PAPAYA_OUTPUT"], "stall-*")))


def compute_forces():
    force = 1.0
    while not is_said():
        for _ in range(1000000):
            force = force * 1.0000001  # line of compute_forces


def wait_for_data():
    while not is_said():
        time.sleep(0.5)  # line of wait_for_data


def energy():
    total = array.array("i", [1])
    MPI.allreduce(total)  # line of energy
    return total[0]


MPI = Mpich(sys.argv[2]) if len(sys.argv) > 2 else Mpi4py()
for _ in range(5):
    energy()
if MPI.rank == 1:
    globals()[sys.argv[1]]()
assert energy() == MPI.size
MPI.finalize()
