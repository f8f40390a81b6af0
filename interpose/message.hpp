// What each collective calls its message (docs/trace_format.md): one function for each, of the arguments that say it.
// Arguments that MPI calls insignificant on this rank are not looked at; on inter-communicators roles differ and the
// size is left open.
#pragma once

#include <mpi.h>

#include <cstdint>

#include "base/saturating.hpp"
#include "interpose/communicator.hpp"
#include "interpose/dispatch.hpp"
#include "interpose/reduction.hpp"

namespace papaya {

// Bytes of `count` elements; 0 where the arguments are not to be trusted, for MPI to say what is wrong with
// them.
inline std::uint64_t bytes_of_elements(std::uint64_t count, MPI_Datatype type) noexcept {
  if (count == 0) return 0;
  const std::int64_t element = element_bytes_of(type);
  return element > 0 ? saturating::product(count, static_cast<std::uint64_t>(element)) : 0;
}
inline std::uint64_t bytes_of(MPI_Count count, MPI_Datatype type) noexcept {
  return count > 0 ? bytes_of_elements(static_cast<std::uint64_t>(count), type) : 0;
}

template <class Count>
std::uint64_t sum_of(const Count* counts, int ranks, MPI_Datatype type) noexcept {
  if (counts == nullptr) return 0;
  std::uint64_t sum = 0;
  for (int i = 0; i < ranks; ++i) sum = saturating::sum(sum, counts[i] > 0 ? static_cast<std::uint64_t>(counts[i]) : 0);
  return bytes_of_elements(sum, type);
}

template <class Count>
std::uint64_t sum_of(const Count* counts, int ranks, const MPI_Datatype* types) noexcept {
  if (counts == nullptr || types == nullptr) return 0;
  std::uint64_t sum = 0;
  for (int i = 0; i < ranks; ++i) sum = saturating::sum(sum, bytes_of(counts[i], types[i]));
  return sum;
}

inline Message message_barrier(const Communicator&) noexcept {
  return {};
}

template <class C>
Message message_bcast(const Communicator& state, C count, MPI_Datatype type, int root) noexcept {
  return {state.inter ? 0 : bytes_of(count, type), root};
}

template <class C>
Message message_gather(const Communicator& state, const void* send, C sendcount, MPI_Datatype sendtype, C recvcount,
                       MPI_Datatype recvtype, int root) noexcept {
  if (state.inter) return {0, root};
  const bool in_place = state.rank == root && send == MPI_IN_PLACE;
  return {in_place ? bytes_of(recvcount, recvtype) : bytes_of(sendcount, sendtype), root};
}

template <class C>
Message message_gatherv(const Communicator& state, const void* send, C sendcount, MPI_Datatype sendtype,
                        const C* recvcounts, MPI_Datatype recvtype, int root) noexcept {
  if (state.inter) return {0, root};
  const bool in_place = state.rank == root && send == MPI_IN_PLACE;
  if (!in_place) return {bytes_of(sendcount, sendtype), root};
  return {recvcounts == nullptr ? 0 : bytes_of(recvcounts[root], recvtype), root};
}

template <class C>
Message message_scatter(const Communicator& state, C sendcount, MPI_Datatype sendtype, C recvcount,
                        MPI_Datatype recvtype, int root) noexcept {
  if (state.inter) return {0, root};
  return {state.rank == root ? bytes_of(sendcount, sendtype) : bytes_of(recvcount, recvtype), root};
}

template <class C>
Message message_scatterv(const Communicator& state, const C* sendcounts, MPI_Datatype sendtype, C recvcount,
                         MPI_Datatype recvtype, int root) noexcept {
  if (state.inter) return {0, root};
  if (state.rank != root) return {bytes_of(recvcount, recvtype), root};
  return {sendcounts == nullptr ? 0 : bytes_of(sendcounts[root], sendtype), root};
}

template <class C>
Message message_allgather(const Communicator& state, const void* send, C sendcount, MPI_Datatype sendtype, C recvcount,
                          MPI_Datatype recvtype) noexcept {
  if (state.inter) return {};
  return {send == MPI_IN_PLACE ? bytes_of(recvcount, recvtype) : bytes_of(sendcount, sendtype)};
}

template <class C>
Message message_allgatherv(const Communicator& state, const void* send, C sendcount, MPI_Datatype sendtype,
                           const C* recvcounts, MPI_Datatype recvtype) noexcept {
  if (state.inter) return {};
  if (send != MPI_IN_PLACE) return {bytes_of(sendcount, sendtype)};
  return {recvcounts == nullptr ? 0 : bytes_of(recvcounts[state.rank], recvtype)};
}

template <class C>
Message message_alltoallv(const Communicator& state, const void* send, const C* sendcounts, MPI_Datatype sendtype,
                          const C* recvcounts, MPI_Datatype recvtype) noexcept {
  if (state.inter) return {};
  return {send == MPI_IN_PLACE ? sum_of(recvcounts, state.peers, recvtype) : sum_of(sendcounts, state.peers, sendtype)};
}

template <class C>
Message message_alltoallw(const Communicator& state, const void* send, const C* sendcounts,
                          const MPI_Datatype* sendtypes, const C* recvcounts, const MPI_Datatype* recvtypes) noexcept {
  if (state.inter) return {};
  return {send == MPI_IN_PLACE ? sum_of(recvcounts, state.peers, recvtypes)
                               : sum_of(sendcounts, state.peers, sendtypes)};
}

template <class C>
Message message_reduce(const Communicator& state, C count, MPI_Datatype type, int root) noexcept {
  return {state.inter ? 0 : bytes_of(count, type), root};
}

template <class C>
Message message_all(const Communicator&, C count, MPI_Datatype type) noexcept {
  return {bytes_of(count, type)};
}

template <class C>
Message message_reduce_scatter(const Communicator& state, const C* recvcounts, MPI_Datatype type) noexcept {
  return {state.inter ? 0 : sum_of(recvcounts, state.size, type)};
}

}  // namespace papaya
