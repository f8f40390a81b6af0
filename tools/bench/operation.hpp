// What can be measured: blocking collectives and the nonblocking ones beside them. No MPI.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/collective.hpp"

namespace papaya::bench {

struct Operation {
  Collective collective{};
  Form form = Form::blocking;
  bool operator==(const Operation&) const = default;
};

std::string name_of(const Operation& operation);  // "iallreduce"

// "allreduce", "MPI_Iallreduce", in any case.
std::optional<Operation> operation_called(std::string_view word);

// Those that papaya has algorithms for, and all that are measured.
std::span<const Collective> with_algorithms() noexcept;
std::vector<Operation> benchmarked();

// By the selection for which collective it goes: MPI_Alltoallv by that for MPI_Alltoall, MPI_Allgatherv by that for
// MPI_Allgather.
constexpr Collective selected_with(Collective collective) noexcept {
  return collective == Collective::alltoallv    ? Collective::alltoall
         : collective == Collective::allgatherv ? Collective::allgather
                                                : collective;
}

// What its result is made of and who has it.
constexpr bool is_reduction(Collective one) noexcept {
  return one == Collective::allreduce || one == Collective::reduce || one == Collective::reduce_scatter ||
         one == Collective::reduce_scatter_block;
}
constexpr bool is_from_root(Collective one) noexcept {
  return one == Collective::bcast || one == Collective::scatter || one == Collective::scatterv;
}
constexpr bool is_to_root(Collective one) noexcept {
  return one == Collective::reduce || one == Collective::gather || one == Collective::gatherv;
}
// A block for each rank, from each rank.
constexpr bool sends_to_each(Collective one) noexcept {
  return one == Collective::alltoall || one == Collective::alltoallv || one == Collective::scatter ||
         one == Collective::scatterv;
}
constexpr bool receives_from_each(Collective one) noexcept {
  return one == Collective::alltoall || one == Collective::alltoallv || one == Collective::allgather ||
         one == Collective::allgatherv || one == Collective::gather || one == Collective::gatherv;
}

}  // namespace papaya::bench
