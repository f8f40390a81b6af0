// Notified communication between nodes: the same property as through shared memory, that a rank which has left a call
// may turn to MPI alone, and the weakly consistent collectives.
//
//   notified mpi|ucx MOST_BYTES FOLDER_OF_THE_PLUGIN [UCX_TLS]
//
// Exit status 77, which is a skipped test, where there is no such communication.
#include <mpi.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "algorithms/kernels/reduce.hpp"
#include "algorithms/patterns/threshold.hpp"
#include "algorithms/transport/mpi/mpi_transport.hpp"
#include "algorithms/transport/ucx/ucx_transport.hpp"
#include "algorithms/weak/ssp_sharded.hpp"
#include "algorithms/weak/weak.hpp"
#include "interpose/make_wire.hpp"
#include "interpose/mpi_agreement.hpp"
#include "tests/protocol/notified_property.hpp"
#include "tests/protocol/shard_contribution.hpp"
#include "tests/protocol/ssp_contribution.hpp"

namespace papaya {
namespace {

std::unique_ptr<Transport> transport;

void poke() {
  int found = 0;
  MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
  if (transport != nullptr) transport->progress();
}

std::vector<int> members_of(MPI_Comm comm) {
  int size = 1;
  int rank = 0;
  MPI_Comm_size(comm, &size);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  std::vector<int> members(static_cast<std::size_t>(size));
  MPI_Allgather(&rank, 1, MPI_INT, members.data(), 1, MPI_INT, comm);
  return members;
}

class Test {
 public:
  Test(bool ucx, std::size_t most_bytes) : ucx_(ucx), most_bytes_(most_bytes) {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks_);
    MPI_Comm_dup(MPI_COMM_WORLD, &world_);
    MPI_Comm_set_errhandler(world_, MPI_ERRORS_RETURN);
    policy_.configure(wait::Mode::yield,
                      {.cores = 1, .ranks = ranks_, .board = nullptr, .rank = rank_, .ns_per_tick = 1.0}, poke);
  }

  bool open(const char* folder) {
    const std::size_t bytes = (std::size_t{1} << 20) + 4 * static_cast<std::size_t>(ranks_) * most_bytes_;
    std::string why;
    if (ucx_)
      transport = UcxTransport::open(world_, bytes, folder, why);
    else
      transport = MpiTransport::open(world_, bytes);
    if (rank_ == 0 && transport == nullptr) std::printf("%s\n", why.c_str());
    return transport != nullptr;
  }

  void close() {
    transport->close();
    transport.reset();
    MPI_Comm_free(&world_);
  }

  // Made and freed again, too. Every other rank also: disjoint groups at the same time, whose ranks have
  // other numbers than in the window.
  int property(std::uint64_t messages) {
    MPI_Comm half;
    MPI_Comm_split(MPI_COMM_WORLD, rank_ % 2, -rank_, &half);
    int wrong = 0;
    for (int round = 0; round < 3; ++round)
      for (MPI_Comm comm : {MPI_COMM_WORLD, half}) {
        int rank = 0;
        int size = 1;
        MPI_Comm_rank(comm, &rank);
        MPI_Comm_size(comm, &size);
        const auto wire = make(comm, NotifiedProperty::shape(size, most_bytes_));
        wait::Site site;
        wrong += wire == nullptr ? 1 : NotifiedProperty(*wire, rank, size, most_bytes_, messages).run(policy_, site);
      }
    MPI_Comm_free(&half);
    return wrong;
  }

  // Ranks stop now and then.
  int stale_synchronous(const WeakDescriptor& descriptor, std::uint64_t calls) {
    const Reduction reduction = Contribution::reduction(descriptor.commutative_only);
    const std::size_t count = most_bytes_ / sizeof(Contribution);
    std::vector<Contribution> contribution(count);
    std::vector<Contribution> result(count);
    int wrong = 0;
    for (const std::uint64_t slack : {0, 1, 2}) {
      std::vector<std::int64_t> values{static_cast<std::int64_t>(slack)};
      for (std::size_t i = 1; i < descriptor.parameters.size(); ++i)
        values.push_back(descriptor.parameters[i].fallback);
      const WeakRequest request{.ranks = ranks_,
                                .count = count,
                                .element_bytes = sizeof(Contribution),
                                .reduction = &reduction,
                                .values = values};
      const auto wire = make(MPI_COMM_WORLD, descriptor.segment(request));
      if (wire == nullptr) return 1;
      {
        const auto allreduce = descriptor.prepare({.rank = rank_,
                                                   .size = ranks_,
                                                   .arrival_order = false,
                                                   .region = nullptr,
                                                   .policy = &policy_,
                                                   .wire = wire.get()},
                                                  request);
        wait::Site site;
        for (std::uint64_t clock = 1; clock <= calls; ++clock) {
          contribution.assign(count, Contribution::of(rank_, clock));
          if ((clock + static_cast<std::uint64_t>(rank_)) % 8 == 0) usleep(1000);
          allreduce->run({.send = contribution.data(),
                          .receive = result.data(),
                          .count = count,
                          .bytes = request.bytes(),
                          .root = -1,
                          .reduction = &reduction},
                         site);
          if (fault_in(result, *allreduce, clock, slack, rank_, ranks_) != nullptr) ++wrong;
        }
      }
      wire->leave();
    }
    return wrong;
  }

  // The same in shards, in all variants.
  int sharded(std::uint64_t calls) {
    Reduction reduction = Contribution::reduction();
    reduction.by_table = true;  // as if it were papaya's own, hence for its threads
    int level = MPI_THREAD_SINGLE;
    MPI_Query_thread(&level);
    const bool may_have_thread = !ucx_ && level == MPI_THREAD_MULTIPLE && ranks_ > 1;
    const std::size_t count = most_bytes_ / sizeof(Contribution);
    std::vector<Contribution> contribution(count);
    std::vector<Contribution> result(count);
    int wrong = 0;
    for (const bool is_consistent : {false, true})
      for (const auto keeper : {SspSharded::Keeper::calls, SspSharded::Keeper::thread}) {
        const SspShards shards(ranks_, count, sizeof(Contribution), {is_consistent ? 1u : 2u, is_consistent, 1});
        const auto wire = make(MPI_COMM_WORLD, shards.segment());
        if (wire == nullptr) return 1;
        {
          SspSharded allreduce({.rank = rank_,
                                .size = ranks_,
                                .arrival_order = false,
                                .region = nullptr,
                                .policy = &policy_,
                                .wire = wire.get()},
                               shards, reduction, keeper);
          if (allreduce.has_thread() != (keeper == SspSharded::Keeper::thread && may_have_thread)) ++wrong;
          wait::Site site;
          for (std::uint64_t clock = 1; clock <= calls; ++clock) {
            contribution.assign(count, Contribution::of(rank_, clock));
            if ((clock + static_cast<std::uint64_t>(rank_)) % 8 == 0) usleep(1000);
            allreduce.run({.send = contribution.data(),
                           .receive = result.data(),
                           .count = count,
                           .bytes = count * sizeof(Contribution),
                           .root = -1,
                           .reduction = &reduction},
                          site);
            if (fault_in_shards(result, allreduce, clock, rank_) != nullptr) ++wrong;
          }
        }
        wire->leave();
      }
    return wrong;
  }

  // Broadcast and reduce of a share, and the largest elements, for which a plain loop gives the expected numbers.
  int shares(std::uint64_t calls) {
    Reduction sum;
    sum.element_bytes = sizeof(double);
    sum.combine = kernels::find(kernels::ElementType::f64, kernels::Operation::sum);
    const std::size_t count = std::max<std::size_t>(most_bytes_ / sizeof(double), 5);
    const std::size_t bytes = count * sizeof(double);
    const int root = ranks_ - 1;
    std::vector<double> data(count);
    std::vector<double> result(count);
    int wrong = 0;
    int turn = 0;
    for (const char* const name : {"threshold_bcast", "threshold_reduce", "top_k"})
      for (const std::int64_t of_ranks : {0, 1}) {
        const bool is_bcast = name == std::string("threshold_bcast");
        const bool is_top_k = name == std::string("top_k");
        if (is_top_k && of_ranks == 1) continue;
        std::vector<std::int64_t> values{of_ranks, 1 + turn++ % 2, static_cast<std::int64_t>(bytes / 3), 3};
        if (is_top_k) values = {1'000'000};
        const double share = 0.6;
        const WeakRequest request{.ranks = ranks_,
                                  .count = count,
                                  .element_bytes = sizeof(double),
                                  .root = root,
                                  .reduction = &sum,
                                  .type = kernels::ElementType::f64,
                                  .operation = kernels::Operation::sum,
                                  .share = share,
                                  .values = values};
        const WeakDescriptor& descriptor = *find_weak(name);
        const auto wire = make(MPI_COMM_WORLD, descriptor.segment(request));
        if (wire == nullptr) return 1;
        const auto weak = descriptor.prepare({.rank = rank_,
                                              .size = ranks_,
                                              .arrival_order = false,
                                              .region = nullptr,
                                              .policy = &policy_,
                                              .wire = wire.get()},
                                             request);
        wait::Site site;
        const std::size_t sent = of_ranks == 0 && !is_top_k ? patterns::share_of(share, count) : count;
        const std::vector<bool> takes_part = patterns::taking_part(
            ranks_, root,
            of_ranks == 0 ? ranks_ : static_cast<int>(patterns::share_of(share, static_cast<std::size_t>(ranks_))));
        const auto is_in = [&](int rank) { return takes_part[static_cast<std::size_t>(rank)]; };
        const auto of = [](int rank, std::uint64_t call, std::size_t i) {
          return static_cast<double>(1 + rank * 3) + static_cast<double>(call + i % 100);
        };
        for (std::uint64_t call = 1; call <= calls; ++call) {
          for (std::size_t i = 0; i < count; ++i) data[i] = is_bcast && rank_ != root ? -1 : of(rank_, call, i);
          std::fill(result.begin(), result.end(), -1);
          if ((call + static_cast<std::uint64_t>(rank_)) % 8 == 0) usleep(1000);
          weak->run({.send = data.data(),
                     .receive = is_bcast ? data.data() : result.data(),
                     .count = count,
                     .bytes = bytes,
                     .root = root,
                     .reduction = &sum},
                    site);
          wire->leave();
          // MPI's own in between, which those in it wait for each other in.
          if (call % 3 == 0) MPI_Barrier(MPI_COMM_WORLD);
          const bool has_result = is_top_k || rank_ == root || (is_bcast && is_in(rank_));
          for (std::size_t i = 0; i < count; ++i) {
            double expected = -1;
            if (is_bcast && (rank_ == root || (i < sent && is_in(rank_)))) expected = of(root, call, i);
            if (!is_bcast && has_result && i < sent) {
              expected = 0;
              for (int from = 0; from < ranks_; ++from)
                if (is_in(from)) expected += of(from, call, i);
            }
            if ((is_bcast ? data : result)[i] != expected) ++wrong;
          }
          if (weak->status().clock != call || weak->status().bytes != (has_result ? sent * sizeof(double) : 0)) ++wrong;
        }
      }
    return wrong;
  }

  // Too large for the window: none has it, and all say so.
  int too_large() {
    return make(MPI_COMM_WORLD, {std::size_t{64} << 20, 1}) == nullptr &&
                   make(MPI_COMM_WORLD, {std::size_t{1} << 40, 1}) == nullptr
               ? 0
               : 1;
  }

  // Each rank writes more than a connection holds to the next, leaves, and waits in MPI for a message that
  // the next sends only after it has got all of it, which it begins to look for late.
  int leaving() {
    const std::size_t bytes = std::max(most_bytes_, std::size_t{64});
    constexpr int chunks = 4;
    const auto wire = make(MPI_COMM_WORLD, {chunks * bytes, 1});
    if (wire == nullptr) return 1;
    const std::vector<std::byte> source(bytes, std::byte{7});
    int wrong = 0;
    // In two halves: of a pair that writes to each other, both would leave at once.
    for (int half = 0; half < 2; ++half) {
      if (rank_ % 2 == half && ranks_ > 1 && rank_ + 1 < ranks_) {
        for (int i = 0; i < chunks; ++i)
          wire->write_notify(rank_ + 1, static_cast<std::size_t>(i) * bytes, source.data(), bytes, 0,
                             static_cast<std::uint64_t>(i) + 1);
        wire->leave();
        int told = 0;
        MPI_Recv(&told, 1, MPI_INT, rank_ + 1, 0, world_, MPI_STATUS_IGNORE);
      } else if (rank_ % 2 != half && rank_ > 0) {
        usleep(20000);
        wait::Site site;
        wire->wait(
            policy_, site, [&] { return wire->look(0) == chunks; }, nullptr);
        for (std::size_t at = 0; at < chunks * bytes; ++at)
          if (wire->segment()[at] != std::byte{7}) wrong = 1;
        wire->leave();
        MPI_Send(&wrong, 1, MPI_INT, rank_ - 1, 0, world_);
      }
    }
    MPI_Barrier(world_);
    return wrong;
  }

 private:
  // As the library does, in turn for a call that waits and for one that must not.
  std::unique_ptr<Notified> make(MPI_Comm comm, const SegmentShape& shape) {
    const std::vector<int> members = members_of(comm);
    std::vector<std::int64_t> offsets(members.size());
    using Way = MpiAgreement::Way;
    MpiAgreement agreement(comm, made_++ % 2 == 0 ? Way::waiting : Way::asking, transport.get(), world_);
    MadeWire made;
    Steps steps = make_wire({*transport, members, policy_, shape}, agreement, offsets, made);
    agreement.finish(steps);
    return std::move(made.wire);
  }

  const bool ucx_;
  const std::size_t most_bytes_;
  int rank_ = 0;
  int ranks_ = 1;
  MPI_Comm world_ = MPI_COMM_NULL;
  int made_ = 0;
  wait::Policy policy_;
};

}  // namespace
}  // namespace papaya

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  // Large messages at the level that lets a thread of papaya's call MPI.
  int level = MPI_THREAD_SINGLE;
  const bool is_large = std::strcmp(argv[1], "mpi") == 0 && std::strtoul(argv[2], nullptr, 10) > 65536;
  MPI_Init_thread(&argc, &argv, is_large ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &level);
  // Only now: MPICH, which uses UCX itself, hangs in MPI_Finalize of three ranks over TCP.
  if (argc > 4) setenv("UCX_TLS", argv[4], 1);
  int rank = 0;
  int ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const std::size_t most_bytes = std::strtoul(argv[2], nullptr, 10);
  papaya::Test test(std::strcmp(argv[1], "ucx") == 0, most_bytes);
  if (!test.open(argv[3])) {
    if (rank == 0) std::printf("no transport here\n");
    MPI_Finalize();
    return 77;
  }
  int wrong = test.property(most_bytes > 65536 ? 8 : 40);
  wrong += test.leaving();
  for (const char* const name : {"ssp_hypercube", "ssp_ring"})
    wrong += test.stale_synchronous(*papaya::find_weak(name), most_bytes > 65536 ? 8 : 40);
  wrong += test.sharded(most_bytes > 65536 ? 8 : 40);
  wrong += test.shares(most_bytes > 65536 ? 8 : 30);
  wrong += test.too_large();
  test.close();
  int all_wrong = 0;
  MPI_Allreduce(&wrong, &all_wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) std::printf("%d wrong on %d ranks\n", all_wrong, ranks);
  MPI_Finalize();
  return all_wrong == 0 ? 0 : 1;
}
