"""As much of MPI as this program needs, by mpi4py or, as Debian's mpi4py is Open MPI's, for MPICH by ctypes."""

import ctypes
import os

import papaya


class OpenMpi:
    """MPI_COMM_WORLD by mpi4py, with MPI_THREAD_MULTIPLE, which partial allreduces need across nodes."""

    name, library = "Open MPI", "libpapaya-weak-openmpi.so.0"

    def __init__(self):
        from mpi4py import MPI
        self.mpi, self.comm = MPI, MPI.COMM_WORLD
        self.rank, self.size = self.comm.Get_rank(), self.comm.Get_size()
        self.operations = {"sum": MPI.SUM, "max": MPI.MAX, "min": MPI.MIN}

    def allreduce(self, array, operation="sum"):
        """In place; returns the array."""
        self.comm.Allreduce(self.mpi.IN_PLACE, array, op=self.operations[operation])
        return array

    def abort(self):
        self.comm.Abort(1)


class Mpich:
    """The same by ctypes; handles are those of MPICH's ABI."""

    name, library = "MPICH", "libpapaya-weak-mpich.so.0"
    comm = ctypes.c_int(0x44000000)
    types = {"float32": ctypes.c_int(0x4C00040A), "float64": ctypes.c_int(0x4C00080B)}
    operations = {"max": ctypes.c_int(0x58000001), "min": ctypes.c_int(0x58000002), "sum": ctypes.c_int(0x58000003)}
    in_place = ctypes.c_void_p(-1)

    def __init__(self):
        self.rank, self.size = papaya.init(threads=True)
        self.mpi = ctypes.CDLL(None)  # also what papaya, preloaded, has in its place

    def allreduce(self, array, operation="sum"):
        self.mpi.MPI_Allreduce(self.in_place, ctypes.c_void_p(array.ctypes.data), ctypes.c_int(array.size),
                               self.types[array.dtype.name], self.operations[operation], self.comm)
        return array

    def abort(self):
        self.mpi.MPI_Abort(self.comm, ctypes.c_int(1))


def connect():
    """MPICH's launcher sets PMI_RANK."""
    return Mpich() if "PMI_RANK" in os.environ and "OMPI_COMM_WORLD_RANK" not in os.environ else OpenMpi()
