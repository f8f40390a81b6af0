"""Data-parallel stochastic gradient descent on one rank, and what there is to know about it afterwards."""

import time

import numpy
import torch


class Network:
    """A multilayer perceptron whose parameters, and gradients, lie in one array each: that is what is summed up."""

    def __init__(self, inputs, hidden, classes):
        self.layers = torch.nn.Sequential(torch.nn.Linear(inputs, hidden), torch.nn.ReLU(),
                                          torch.nn.Linear(hidden, classes))
        parameters = list(self.layers.parameters())
        flat = torch.nn.utils.parameters_to_vector(parameters).detach().clone()
        gradient = torch.zeros_like(flat)
        begin = 0
        for parameter in parameters:
            end = begin + parameter.numel()
            parameter.data = flat[begin:end].view_as(parameter)
            parameter.grad = gradient[begin:end].view_as(parameter)
            begin = end
        self.model, self.gradient = flat.numpy(), gradient.numpy()  # the same memory

    def differentiate(self, points, labels, share):
        """The gradient of the mean loss, times the share that these samples are of all."""
        self.gradient.fill(0)
        loss = torch.nn.functional.cross_entropy(self.layers(points), labels)
        (share * loss).backward()
        return float(loss)

    def accuracy(self, points, labels):
        with torch.no_grad():
            return float((self.layers(points).argmax(1) == labels).float().mean())


class Batches:
    """In each epoch all samples in a new order; of each batch every rank has a part."""

    def __init__(self, data, batch, seed, world):
        self.points, self.labels = torch.from_numpy(data.points), torch.from_numpy(data.labels)
        self.batch, self.seed = batch, seed
        self.steps = len(data.labels) // batch  # of an epoch; the rest is left out
        self.begin, self.end = (batch * rank // world.size for rank in (world.rank, world.rank + 1))
        self.share = (self.end - self.begin) / batch
        self.epoch = None

    def of_step(self, step):
        epoch, place = divmod(step, self.steps)
        if epoch != self.epoch:
            self.order = torch.from_numpy(numpy.random.default_rng([self.seed, epoch]).permutation(len(self.labels)))
            self.epoch = epoch
        mine = self.order[place * self.batch + self.begin:place * self.batch + self.end]
        return self.points[mine], self.labels[mine]


# Of each step on one rank; `seconds` since the start, at its end.
FIELDS = ("seconds", "computing", "summing", "waited", "loss", "age", "ranks")


class Training:
    def __init__(self, chosen, network, batches, total, straggler):
        self.chosen, self.network, self.batches, self.total = chosen, network, batches, total
        self.straggler = straggler
        self.steps = numpy.zeros((chosen.epochs * batches.steps, len(FIELDS)))
        self.snapshots = []  # (steps done, model): evaluated afterwards, so that this takes no time of the training

    def run(self):
        velocity = numpy.zeros_like(self.network.model)
        last = len(self.steps)
        start = time.perf_counter()
        for step in range(last):
            begin = time.perf_counter()
            points, labels = self.batches.of_step(step)
            loss = self.network.differentiate(points, labels, self.batches.share)
            velocity *= self.chosen.momentum
            velocity += self.network.gradient
            computing = time.perf_counter() - begin
            self.straggler.delay(step)
            seen, summing = self.add(-self.chosen.learning_rate * velocity)
            if self.chosen.synchronize and (step + 1) % self.chosen.synchronize == 0 and step + 1 < last:
                summing += self.synchronize()
            waited = numpy.nan if seen.waited is None else seen.waited
            self.steps[step] = (time.perf_counter() - start, computing, summing, waited, loss, seen.age, seen.ranks)
            if (step + 1) % self.chosen.evaluate == 0 or step + 1 == last:
                self.snapshots.append((step + 1, self.network.model.copy()))
        self.total.complete()

    def add(self, update):
        begin = time.perf_counter()
        seen = self.total.add(update)
        return seen, time.perf_counter() - begin

    def synchronize(self):
        begin = time.perf_counter()
        self.total.complete()
        self.total.begin()
        return time.perf_counter() - begin

    def accuracies(self, data):
        """Of the snapshots on the samples that are held out, and of the model that all ranks have in the end."""
        points, labels = torch.from_numpy(data.test_points), torch.from_numpy(data.test_labels)
        final = self.network.model.copy()
        found = []
        for _, model in [*self.snapshots, (None, final)]:
            self.network.model[:] = model
            found.append(self.network.accuracy(points, labels))
        return found[:-1], found[-1]
