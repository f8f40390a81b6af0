"""Data-parallel training with the communication of Horovod, in a few hundred lines that can be read.

  mpirun -n 2 python3 examples/training.py [--steps N] [--hidden N] [--layers N] [--fp16] [--slow-rank R] ...

Every rank trains the same network on samples of its own. As with Horovod

  - a background thread makes all MPI calls, MPI_Init_thread and MPI_Finalize too;
  - a hook of each parameter tells it that the gradient is there, while backward goes on with the layers before;
  - once a cycle (1 ms) the ranks agree which gradients are there on all of them: one bit each, MPI_Allreduce with BAND;
    a gradient that is new to one of them is agreed on by name (Gather, Gatherv, Bcast) and has a bit from then on;
  - what is ready everywhere is copied into a tensor-fusion buffer and summed by one MPI_Allreduce;
  - parameters are broadcast from rank 0 at the start.

Needs PyTorch, NumPy and mpi4py (Debian: python3-torch, python3-numpy, python3-mpi4py). Ends with exit code 1 if the
loss has not fallen or the ranks have come to different networks.
"""

import argparse
import os
import sys
import threading
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")  # a rank for each core

import mpi4py  # noqa: E402  after OMP_NUM_THREADS
import numpy as np  # noqa: E402  after OMP_NUM_THREADS
import torch  # noqa: E402  after OMP_NUM_THREADS

mpi4py.rc.initialize = False  # the background thread does
mpi4py.rc.finalize = False
from mpi4py import MPI  # noqa: E402  mpi4py reads mpi4py.rc when its MPI is imported

LEAVING, NOTHING_NEW, NOTHING_INVALID = 1, 2, 4  # the bits of the status; those of the gradients follow
STATUS_BITS = 3


def add_half(source, target, _type):
    """The sum of 16-bit floats, for which MPI has no type: a user-defined operation on pairs of bytes."""
    total = np.frombuffer(target, dtype=np.float16)
    np.add(np.frombuffer(source, dtype=np.float16), total, out=total)


class Background(threading.Thread):
    """Owns MPI. The training thread hands gradients over with `ready` and waits for their averages in `synchronize`."""

    def __init__(self, parameters, cycle_seconds, fusion_bytes, half):
        super().__init__(name="background")
        self.parameters = list(parameters)
        self.cycle_seconds = cycle_seconds
        self.half = half
        self.fusion_buffer = np.empty(fusion_bytes // (2 if half else 4), np.float16 if half else np.float32)
        self.has_bit = [False] * len(self.parameters)  # agreed on by name before
        words = (STATUS_BITS + len(self.parameters) + 63) // 64
        self.bits = np.zeros(max(words, 2), np.int64)
        self.lock = threading.Lock()
        self.waiting = set()  # gradients of this rank that have not been summed yet
        self.averaged = [threading.Event() for _ in self.parameters]
        self.started = threading.Event()
        self.leaving = False
        self.negotiations = self.sums = 0
        self.error = None

    # What the training thread calls

    def ready(self, index):
        with self.lock:
            self.averaged[index].clear()
            self.waiting.add(index)

    def synchronize(self):
        """Until all gradients are the averages over all ranks."""
        for averaged in self.averaged:
            while not averaged.wait(1):
                if self.error is not None:
                    raise self.error

    def shut_down(self):
        self.leaving = True
        self.join()

    # The thread

    def run(self):
        try:
            self.initialize()
            self.broadcast_parameters()
            self.started.set()
            while self.run_cycle():
                time.sleep(self.cycle_seconds)
            self.compare_parameters()
            MPI.Finalize()
        except Exception as error:  # for the thread that waits
            self.error = error
            self.started.set()
            raise

    def initialize(self):
        if MPI.Init_thread(MPI.THREAD_MULTIPLE) < MPI.THREAD_MULTIPLE:
            raise RuntimeError("this MPI has no MPI_THREAD_MULTIPLE")
        self.context = MPI.COMM_WORLD.Dup()
        self.all = MPI.COMM_WORLD.Dup()
        self.rank, self.ranks = self.all.Get_rank(), self.all.Get_size()
        self.local = self.all.Split_type(MPI.COMM_TYPE_SHARED)
        self.cross = self.all.Split(self.local.Get_rank(), self.rank)
        self.half_type = MPI.BYTE.Create_contiguous(2).Commit()
        self.half_sum = MPI.Op.Create(add_half, commute=True)

    def broadcast_parameters(self):
        for parameter in self.parameters:
            self.all.Bcast(parameter.detach().numpy(), root=0)

    def run_cycle(self):
        """False when all ranks are leaving."""
        with self.lock:
            here = sorted(self.waiting)
        all_leave, everywhere = self.negotiate(here)
        for group in self.fusion_groups(everywhere):
            self.sum_gradients(group)
        return not all_leave

    def negotiate(self, here):
        """The gradients that are ready on all ranks, of those that are ready here."""
        new = [index for index in here if not self.has_bit[index]]
        flags = (LEAVING if self.leaving and not here else 0) | (0 if new else NOTHING_NEW) | NOTHING_INVALID
        ones = flags | sum(1 << (STATUS_BITS + index) for index in here if self.has_bit[index])
        for word in range(len(self.bits)):
            self.bits[word] = np.uint64(ones >> (64 * word) & 0xFFFFFFFFFFFFFFFF).astype(np.int64)
        self.all.Allreduce(MPI.IN_PLACE, [self.bits, MPI.LONG_LONG], op=MPI.BAND)
        self.negotiations += 1
        common = int.from_bytes(self.bits.tobytes(), sys.byteorder)
        everywhere = [index for index in here if common >> (STATUS_BITS + index) & 1]
        if not common & NOTHING_NEW:
            everywhere += self.negotiate_by_name(new)
        return bool(common & LEAVING), everywhere

    def negotiate_by_name(self, new):
        """Rank 0 collects which new gradients each rank has, and tells all which of them everybody has."""
        mine = np.array(new, np.int32)
        counts = np.empty(self.ranks, np.int32)
        self.all.Gather(np.array([len(mine)], np.int32), counts, root=0)
        gathered = np.empty(counts.sum(), np.int32) if self.rank == 0 else None
        self.all.Gatherv(mine, [gathered, counts] if self.rank == 0 else None, root=0)
        length = np.empty(1, np.int32)
        if self.rank == 0:
            indices, times = np.unique(gathered, return_counts=True)
            common = indices[times == self.ranks].astype(np.int32)
            length[0] = len(common)
        self.all.Bcast(length, root=0)
        if self.rank != 0:
            common = np.empty(length[0], np.int32)
        self.all.Bcast(common, root=0)
        for index in common:
            self.has_bit[index] = True
        return [int(index) for index in common]

    def fusion_groups(self, indices):
        """In equal order on all ranks, as many as fit the fusion buffer at a time."""
        group, used = [], 0
        for index in indices:
            size = self.parameters[index].numel()
            if group and used + size > self.fusion_buffer.size:
                yield group
                group, used = [], 0
            group.append(index)
            used += size
        if group:
            yield group

    def sum_gradients(self, group):
        gradients = [self.parameters[index].grad.numpy().reshape(-1) for index in group]
        used = sum(gradient.size for gradient in gradients)
        if used > self.fusion_buffer.size:  # one, larger than the buffer
            self.fusion_buffer = np.empty(used, self.fusion_buffer.dtype)
        fused = self.fusion_buffer[:used]
        np.concatenate(gradients, out=fused, casting="same_kind")
        if self.half:
            self.all.Allreduce(MPI.IN_PLACE, [fused, used, self.half_type], op=self.half_sum)
        else:
            self.all.Allreduce(MPI.IN_PLACE, fused, op=MPI.SUM)
        self.sums += 1
        begin = 0
        for index, gradient in zip(group, gradients):
            np.divide(fused[begin:begin + gradient.size], self.ranks, out=gradient)
            begin += gradient.size
            with self.lock:
                self.waiting.discard(index)
            self.averaged[index].set()

    def compare_parameters(self):
        mine = np.array([float(parameter.detach().double().sum()) for parameter in self.parameters])
        lowest, highest = mine.copy(), mine.copy()
        self.all.Allreduce(MPI.IN_PLACE, lowest, op=MPI.MIN)
        self.all.Allreduce(MPI.IN_PLACE, highest, op=MPI.MAX)
        self.equal = bool((lowest == highest).all())


def hook_gradients(parameters, ready):
    """ready(index) when the gradient of a parameter has been accumulated, inside backward."""
    nodes = []  # kept: a hook lives as long as its node
    for index, parameter in enumerate(parameters):
        node = parameter.expand_as(parameter).grad_fn.next_functions[0][0]
        node.register_hook(lambda *_, index=index: ready(index))
        nodes.append(node)
    return nodes


def network(layers, hidden, inputs, classes):
    sizes = [inputs] + [hidden] * layers
    parts = []
    for before, after in zip(sizes, sizes[1:]):
        parts += [torch.nn.Linear(before, after), torch.nn.ReLU()]
    return torch.nn.Sequential(*parts, torch.nn.Linear(sizes[-1], classes))


def samples(generator, count, directions):
    """Points, and which of some directions each lies furthest along."""
    points = torch.randn(count, directions.shape[1], generator=generator)
    return points, (points @ directions.T).argmax(1)


def options():
    parser = argparse.ArgumentParser(description="Data-parallel training with the communication of Horovod.")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--hidden", type=int, default=512, help="width of the hidden layers")
    parser.add_argument("--layers", type=int, default=4, help="hidden layers")
    parser.add_argument("--batch", type=int, default=64, help="samples of each rank in a step")
    parser.add_argument("--cycle-ms", type=float, default=1, help="sleep between negotiations (HOROVOD_CYCLE_TIME)")
    parser.add_argument("--fusion-mib", type=float, default=16, help="size of the buffer (HOROVOD_FUSION_THRESHOLD)")
    parser.add_argument("--fp16", action="store_true", help="sum gradients in 16 bits")
    parser.add_argument("--slow-rank", type=int, default=-1, help="this rank reads its samples slowly")
    parser.add_argument("--slow-ms", type=float, default=20, help="by so much a step")
    chosen = parser.parse_args()
    least = min(chosen.steps, chosen.hidden, chosen.layers, chosen.batch)
    if least < 1 or chosen.cycle_ms < 0 or chosen.fusion_mib <= 0:
        parser.error("sizes and steps must be positive")
    return chosen


def main():
    chosen = options()
    torch.set_num_threads(1)
    torch.manual_seed(1)
    inputs, classes = 64, 10
    directions = torch.randn(classes, inputs)
    model = network(chosen.layers, chosen.hidden, inputs, classes)
    parameters = list(model.parameters())
    background = Background(parameters, chosen.cycle_ms / 1000, int(chosen.fusion_mib * (1 << 20)), chosen.fp16)
    background.start()
    background.started.wait()
    if background.error is not None:
        return 1
    nodes = hook_gradients(parameters, background.ready)
    optimizer = torch.optim.Adam(parameters, lr=0.001)
    generator = torch.Generator().manual_seed(100 + background.rank)
    losses = []
    begin = time.monotonic()
    for _ in range(chosen.steps):
        if background.rank == chosen.slow_rank:
            time.sleep(chosen.slow_ms / 1000)
        points, labels = samples(generator, chosen.batch, directions)
        optimizer.zero_grad(set_to_none=False)
        loss = torch.nn.functional.cross_entropy(model(points), labels)
        loss.backward()
        background.synchronize()
        optimizer.step()
        losses.append(loss.item())
    seconds = time.monotonic() - begin
    del nodes
    background.shut_down()
    few = max(1, chosen.steps // 10)
    first, last = sum(losses[:few]) / few, sum(losses[-few:]) / few
    line = (f"training: rank {background.rank} of {background.ranks}, {chosen.steps} steps in {seconds:.1f} s, "
            f"{background.negotiations} negotiations, {background.sums} sums of gradients, "
            f"loss {first:.3f} to {last:.3f}")
    fine = background.error is None and background.equal and last < 0.8 * first
    sys.stdout.write(line + ("" if fine else ": FAILED") + "\n")
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
