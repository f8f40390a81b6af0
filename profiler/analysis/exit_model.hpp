// How long a call would have taken with another algorithm, or without excess, whenever its ranks had arrived.
//
// The model knows what was measured at the end of the run (alpha): L, the time of the smallest message inside a node;
// C(S), the time of one copy of S bytes, half of what a message of S bytes takes longer than the smallest, as it is
// copied in and out; T(S), the time of a message of S bytes between nodes. Of a call with arrivals a_i, S bytes and p
// ranks on N nodes:
//
//   reduction in a node   R, the largest of a_k + C + (m - k + 1) C / w over the k-th arrivals of its m ranks: operands
//                         are copied in as ranks arrive, and combined by w = min(m, cores) of them
//   allreduce             R + L + C
//   reduce                the root R + L + C, the others a_i + C
//   bcast                 max(a_i, a_root + C + L) + C, the root a_root + C
//   allgather, alltoall   the last of the p-1 blocks that can be copied out, at C each, once their ranks have copied
//                         theirs in (alltoall: p-1 blocks) and L has passed
//   reduce_scatter(_block)  as alltoall: a block is combined while it is taken out
//   barrier               max a + L
//   across nodes          the reductions of all nodes, then what the algorithm says of its time between them
//                         (base/cost_model.hpp)
//   shared cores          where ranks outnumber cores, one that waited gets its core back later, by 5 us times the
//                         ranks per core
//
// An estimate: L is a message's time and no cache line's, operations that cost more than copying are not known, and
// what a call costs those that do not take part in it (a core that a waiting rank takes from one that computes) is not
// seen.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/cost_model.hpp"
#include "profiler/analysis/alpha.hpp"
#include "profiler/analysis/matching.hpp"
#include "profiler/read/read.hpp"
#include "profiler/record/waits.hpp"

namespace papaya::report {

inline constexpr std::size_t most_candidates = 2;

enum class Way : std::uint8_t { as_recorded, no_excess, first_candidate, second_candidate };

// A call as it was recorded, and the algorithms that could have served it.
struct ReplayedCall {
  // The preferred first; null: no more.
  using Models = std::array<const CostModel*, most_candidates>;

  Roles roles;
  std::uint64_t bytes = 0;
  std::size_t count = 0;
  bool open = false;           // left to MPI though papaya has an algorithm, and the times for its model were measured
  Models models{};             // of an open call
  double node_latency_ns = 0;  // L, and the others of the model
  double copy_ns = 0;
  std::array<double, most_candidates> network_ns{};   // of each model
  std::vector<std::span<const std::size_t>> nodes{};  // places in the call by node
  std::vector<std::uint32_t> files{};
  std::vector<double> arrivals_ns{};
  std::vector<double> exits_ns{};

  // A collective with one candidate has it in both places, so that sums over collectives compare.
  std::size_t place_of(std::size_t candidate) const { return models[candidate] == nullptr ? 0 : candidate; }
  std::string_view algorithm(std::size_t candidate) const { return models[place_of(candidate)]->algorithm; }
  // With the k-th candidate, if it has any.
  Way way_with(std::size_t candidate) const {
    if (!open) return Way::as_recorded;
    return place_of(candidate) == 0 ? Way::first_candidate : Way::second_candidate;
  }
};

class ExitModel {
 public:
  explicit ExitModel(const Run& run);

  // The call that is replayed next. False: nobody knows how long it would have taken.
  bool take(const GroupCall& recorded);
  const ReplayedCall& call() const { return call_; }
  // As recorded: as long after the earliest legal exit as it was.
  void exits(Way way, std::span<const double> arrivals_ns, std::span<double> exits_ns);

 private:
  void measure();
  void find_nodes();
  double reduced(std::span<const std::size_t> node, std::span<const double> arrivals_ns);
  void model_blocks(std::span<const double> arrivals_ns, std::span<double> exits_ns);
  void model_rooted_blocks(std::span<const double> arrivals_ns, std::span<double> exits_ns);
  void model_across(Way way, std::span<const double> arrivals_ns, std::span<double> exits_ns);
  void take_out(double from, double copies, std::span<double> exits_ns) const;

  const Run& run_;
  Alpha alpha_;
  std::vector<std::array<bool, trace::reason_capacity>> open_reasons_;  // by file
  std::vector<std::int32_t> nodes_of_files_;
  double crowding_ = 0;  // ranks to a core where it has more than one
  // Of one call, and room for it.
  ReplayedCall call_;
  std::vector<std::size_t> by_node_;
  std::vector<double> sorted_;
  std::vector<double> legal_;
};

}  // namespace papaya::report
