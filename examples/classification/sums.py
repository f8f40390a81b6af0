"""The ways to sum up what the ranks have learned. In each step a rank brings an update, what it would add to the model;
`add` gives the model the updates that have come by then, and `complete` all of them, on all ranks alike.

Updates add up in any order, so no way changes which updates the model has in the end, only when it has them."""

import collections

import numpy
import papaya

# What a call had to work with: the age of its oldest update in steps, how many ranks it had updates of, and seconds
# waited for other ranks (None where that is not known).
Seen = collections.namedtuple("Seen", "age ranks waited")


class Consistent:
    """MPI_Allreduce: every rank waits for all, and has all updates in every step."""

    def __init__(self, world, model):
        self.world, self.model = world, model
        self.info = "MPI_Allreduce"
        self.begin()

    def begin(self):
        pass

    def add(self, update):
        self.model += self.world.allreduce(update)
        return Seen(0, self.world.size, None)

    def complete(self):
        pass


class Stale(Consistent):
    """Stale synchronous parallel: of every rank all updates up to a step that is at most `slack` ago."""

    def __init__(self, world, model, slack):
        self.slack = slack
        super().__init__(world, model)

    def begin(self):
        self.collective = papaya.ssp_accumulate(None, self.model.size, "float32", slack=self.slack)
        self.info = self.collective.info
        self.before = self.model.copy()
        self.own, self.total = numpy.zeros_like(self.model), numpy.empty_like(self.model)

    def add(self, update):
        self.own += update
        status = self.collective(update, self.total)
        numpy.add(self.before, self.total, out=self.model)
        return Seen(status.clock - status.oldest if status.oldest else status.clock, status.ranks, status.waited)

    def complete(self):
        self.collective.free()  # first: other ranks may wait for this one in a call of theirs
        numpy.add(self.before, self.world.allreduce(self.own), out=self.model)


class Partial(Consistent):
    """Partial allreduce of eager-SGD: what the ranks have brought by the time that one of them comes to the call, the
    first (solo) or one that is drawn (majority). Updates that come too late are in the next result."""

    def __init__(self, world, model, algorithm, lag):
        self.algorithm = f"{algorithm}_allreduce:lag={lag}"
        super().__init__(world, model)

    def begin(self):
        self.collective = papaya.partial_allreduce(None, self.model.size, "float32", algorithm=self.algorithm)
        self.info = self.collective.info
        self.result = numpy.empty_like(self.model)

    def add(self, update):
        status = self.collective(update, self.result)
        self.model += self.result
        return Seen(status.clock - status.oldest if status.oldest else 0, status.ranks, status.waited)

    def complete(self):
        left = numpy.zeros_like(self.model)
        self.collective.withdraw(left)
        self.collective.free()
        self.model += self.world.allreduce(left)


def create(way, world, model, slack, lag):
    if way == "consistent":
        return Consistent(world, model)
    if way == "stale":
        return Stale(world, model, slack)
    return Partial(world, model, way, lag)
