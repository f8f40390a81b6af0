"""Weakly consistent collectives on numpy arrays: papaya_weak.h says what each does.

    from mpi4py import MPI
    import papaya

    total = papaya.ssp_allreduce(MPI.COMM_WORLD, 1000, "float64", "sum", slack=4)
    status = total(gradient, result)
    total.free()

Communicators are mpi4py's, or integers, which are Fortran's handles; None is MPI_COMM_WORLD. Without mpi4py init()
initialises MPI. Errors that MPI's error handler lets return raise papaya.Error.
"""

import atexit
import collections
import ctypes
import os
import pathlib

import numpy

__all__ = ["Collective", "Error", "Status", "ssp_allreduce", "ssp_accumulate", "threshold_bcast", "threshold_reduce",
           "sparse_allreduce", "partial_allreduce",
           "group_allreduce", "init", "IN_PLACE"]

IN_PLACE = object()  # as the contribution: it is taken from the result


class Error(Exception):
    """What a function of papaya's had to say; `code` is MPI's."""

    def __init__(self, code, sentence):
        super().__init__(sentence)
        self.code = code


class Status(ctypes.Structure):
    """What a call had to work with."""

    _fields_ = [("clock", ctypes.c_longlong), ("oldest", ctypes.c_longlong), ("own", ctypes.c_longlong),
                ("unused", ctypes.c_longlong), ("ranks", ctypes.c_int), ("elements", ctypes.c_longlong),
                ("share", ctypes.c_double), ("residual", ctypes.c_double), ("waited", ctypes.c_double)]

    def __repr__(self):
        return "Status(" + ", ".join(f"{name}={getattr(self, name)}" for name, _ in self._fields_) + ")"


def _mpi_of_this_process():
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
        text = maps.read()
    if "/libmpi.so" in text or "/libopen-pal.so" in text:
        return "openmpi"
    if "/libmpich.so" in text or "/libmpi.so.12" in text:
        return "mpich"
    raise ImportError("this process has not loaded Open MPI or MPICH: import mpi4py.MPI or call papaya.init() first")


def _load(file):
    """From where the dynamic loader looks, else from the installation that this file is in."""
    try:
        return ctypes.CDLL(file)
    except OSError:
        for folder in pathlib.Path(__file__).resolve().parents[1:5]:
            for path in [folder / file, *folder.glob(f"*-linux-gnu/{file}")]:
                if path.exists():
                    return ctypes.CDLL(str(path))
        raise


World = collections.namedtuple("World", "rank size")


def init(threads=False):
    """Initialises the MPI that has launched this process, for programs without mpi4py; it is finalized at exit. With
    `threads` it is asked for MPI_THREAD_MULTIPLE, as partial and group allreduces need it across nodes. Returns this
    process's rank in MPI_COMM_WORLD and the number of ranks."""
    if "OMPI_COMM_WORLD_RANK" in os.environ:
        mpi = ctypes.CDLL("libmpi.so.40", ctypes.RTLD_GLOBAL)
        world = ctypes.byref(ctypes.c_byte.in_dll(mpi, "ompi_mpi_comm_world"))
    else:
        mpi = ctypes.CDLL("libmpich.so.12", ctypes.RTLD_GLOBAL)
        world = ctypes.c_int(0x44000000)
    rank, size = ctypes.c_int(), ctypes.c_int()
    # Those of a preloaded libpapaya.so, if there is one. With the interpreter's lock held, so that it can find out
    # where in the program calls come from.
    functions = ctypes.PyDLL(None)
    if threads:
        functions.MPI_Init_thread(None, None, 3, ctypes.byref(ctypes.c_int()))  # MPI_THREAD_MULTIPLE in both MPIs
    else:
        functions.MPI_Init(None, None)
    atexit.register(functions.MPI_Finalize)
    functions.MPI_Comm_rank(world, ctypes.byref(rank))
    functions.MPI_Comm_size(world, ctypes.byref(size))
    return World(rank.value, size.value)


class _Library:
    """Loaded at the first use, for the MPI that the process has by then."""

    def __init__(self):
        self._functions = None

    def __getattr__(self, name):
        if self._functions is None:
            file = f"libpapaya-weak-{_mpi_of_this_process()}.so.0"
            self._functions = _load(file)
            self._functions.papaya_error.restype = ctypes.c_char_p
            # Before MPI_Finalize, which mpi4py and init() call later.
            atexit.register(self._functions.papaya_weak_end_threads)
        return getattr(self._functions, name)


_library = _Library()


def _check(code):
    if code != 0:
        raise Error(code, _library.papaya_error().decode())


def _handle(name):
    number = _library.papaya_handle_f(str(name).encode())
    if number == -1:
        raise ValueError(f"{name} is no communicator, type or operation of papaya's")
    return number


def _communicator(comm):
    if comm is None:
        return _handle("world")
    return comm if isinstance(comm, int) else comm.py2f()


def _buffer(array, dtype, count, writes):
    if array is None:
        return None
    if not isinstance(array, numpy.ndarray) or array.dtype != dtype or array.size != count:
        raise ValueError(f"needs a numpy array of {count} elements of {dtype}")
    if not array.flags.c_contiguous or (writes and not array.flags.writeable):
        raise ValueError("needs an array that is contiguous" + (" and writeable" if writes else ""))
    return ctypes.c_void_p(array.ctypes.data)


class Collective:
    """A weakly consistent collective; the functions below create it."""

    def __init__(self, create, comm, count, dtype, *arguments):
        self.dtype = numpy.dtype(dtype)
        self.count = count
        self._handle = ctypes.c_void_p()
        self._buffers = None
        _check(getattr(_library, create)(ctypes.c_int(_communicator(comm)), ctypes.c_longlong(count),
                                         ctypes.c_int(_handle(self.dtype.name)), *arguments,
                                         ctypes.byref(self._handle)))

    def __call__(self, contribution, result):
        """One call; `contribution` may be IN_PLACE, and what does not count on this rank None. Returns its Status."""
        self.start(contribution, result)
        return self.wait()

    def start(self, contribution, result):
        """Begins a call; both arrays belong to it until it is done."""
        put = _buffer(result, self.dtype, self.count, True)
        if contribution is IN_PLACE:
            _check(_library.papaya_weak_start_in_place(self._handle, put))
        else:
            taken = _buffer(contribution, self.dtype, self.count, False)
            _check(_library.papaya_weak_start(self._handle, taken, put))
        self._buffers = (contribution, result)

    def wait(self, seconds=-1.0):
        """The call's Status, or None if it is not done after so many seconds; less than 0: it waits for it."""
        flag, status = ctypes.c_int(), Status()
        _check(_library.papaya_weak_wait(self._handle, ctypes.c_double(seconds), ctypes.byref(flag),
                                         ctypes.byref(status)))
        if not flag.value:
            return None
        self._buffers = None
        return status

    def test(self):
        """As wait(0)."""
        return self.wait(0.0)

    def set_limit(self, seconds):
        """Calls and free wait so long at most; 0: as long as it takes."""
        _check(_library.papaya_weak_set_limit(self._handle, ctypes.c_double(seconds)))

    @property
    def info(self):
        """What is in force: "ALGORITHM:parameter=value,... over PLACE"."""
        text = ctypes.create_string_buffer(256)
        _check(_library.papaya_weak_get_info(self._handle, text, len(text)))
        return text.value.decode()

    def flush(self):
        """The next call of a sparse allreduce sends all that has been kept."""
        _check(_library.papaya_weak_flush(self._handle))

    def withdraw(self, contributions):
        """After the last call of a partial allreduce: puts there what is left, and returns of how many calls it is."""
        calls = ctypes.c_longlong()
        _check(_library.papaya_weak_withdraw(self._handle, _buffer(contributions, self.dtype, self.count, True),
                                             ctypes.byref(calls)))
        return calls.value

    def free(self):
        """Collective."""
        _check(_library.papaya_weak_free(ctypes.byref(self._handle)))

    def __enter__(self):
        return self

    def __exit__(self, *error):
        if error == (None, None, None):
            self.free()


def _text(algorithm):
    return None if algorithm is None else algorithm.encode()


def ssp_allreduce(comm, count, dtype, operation="sum", slack=0, algorithm=None):
    """Stale synchronous parallel allreduce: of every rank one contribution, at most `slack` calls old."""
    return Collective("papaya_ssp_allreduce_create_f", comm, count, dtype, ctypes.c_int(_handle(operation)),
                      ctypes.c_int(slack), _text(algorithm))


def ssp_accumulate(comm, count, dtype, operation="sum", slack=0, algorithm=None):
    """The same with contributions that add up."""
    return Collective("papaya_ssp_accumulate_create_f", comm, count, dtype, ctypes.c_int(_handle(operation)),
                      ctypes.c_int(slack), _text(algorithm))


def threshold_bcast(comm, count, dtype, threshold, of_ranks=False, root=0):
    """Broadcast of a share of the data, or to a share of the ranks: contribution at the root, result elsewhere."""
    return Collective("papaya_threshold_bcast_create_f", comm, count, dtype, ctypes.c_double(threshold),
                      ctypes.c_int(of_ranks), ctypes.c_int(root))


def threshold_reduce(comm, count, dtype, operation="sum", threshold=1.0, of_ranks=False, root=0):
    """Reduction of a share of the data, or of a share of the ranks."""
    return Collective("papaya_threshold_reduce_create_f", comm, count, dtype, ctypes.c_int(_handle(operation)),
                      ctypes.c_double(threshold), ctypes.c_int(of_ranks), ctypes.c_int(root))


def sparse_allreduce(comm, count, dtype, share):
    """Sum of the largest elements of each rank, with error feedback."""
    return Collective("papaya_sparse_allreduce_create_f", comm, count, dtype, ctypes.c_double(share))


def partial_allreduce(comm, count, dtype, operation="sum", algorithm=None):
    """Sum of what the ranks have brought so far; what comes too late for its call is in the next."""
    return Collective("papaya_partial_allreduce_create_f", comm, count, dtype, ctypes.c_int(_handle(operation)),
                      _text(algorithm))


def group_allreduce(comm, count, dtype, operation="sum", group=4, period=10):
    """Allreduce in groups that change from call to call; every `period` calls one of all ranks."""
    return Collective("papaya_group_allreduce_create_f", comm, count, dtype, ctypes.c_int(_handle(operation)),
                      ctypes.c_int(group), ctypes.c_int(period))
