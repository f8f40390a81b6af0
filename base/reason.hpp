// Why a call ran natively. One row per reason; the trace stores the number, the report prints the sentence.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace papaya {

enum class Reason : std::uint8_t {
  none,  // replaced
  selected,
  table,
  no_algorithm,
  few_calls,
  one_rank,
  intercommunicator,
  several_nodes,
  too_large,
  no_data,
  unsuitable_operation,
  arguments,
  no_shared_memory,
  device_memory,
  outside,
  order,
  sizes,
  outside_ranges,
  user_operation,
  no_transport,
  pending_operation,
  no_copy,
  ahead,
  unknown_origin,
  not_met,
};

inline constexpr std::array<std::string_view, 25> reason_names = {
    "",
    "native selected by the user",
    "native is the better choice by the tuning table",
    "papaya has no algorithm for it",
    "the communicator has made too few calls yet",
    "a communicator of one rank",
    "an inter-communicator",
    "the communicator spans several nodes",
    "larger than the algorithm takes",
    "a call of zero bytes",
    "the type and operation do not go together",
    "arguments that MPI reports as errors",
    "PAPAYA_SHM_LIMIT or /dev/shm leaves too little memory",
    "device memory, or no memory to deposit in, on one of the ranks",
    "not made through MPI_COMM_WORLD's processes",
    "it needs PAPAYA_ORDER=arrival and a commutative operation",
    "the choice depends on sizes that differ from rank to rank",
    "its size is in none of the user's ranges",
    "a user-defined operation, which the algorithm cannot cut",
    "no transport between the nodes to be had",
    "a user-defined operation, which may be freed before the end",
    "papaya has no copy of the communicator",
    "the root was too far ahead, or had no memory to deposit in",
    "papaya does not know where the communicator comes from",
    "no barrier, allreduce or the like for it to be set up in yet",
};

static_assert([] {
  for (const std::string_view name : reason_names)
    if (name.size() > 63) return false;  // what a record has room for
  return true;
}());

constexpr std::string_view name_of(Reason reason) {
  return reason_names[static_cast<std::size_t>(reason)];
}

}  // namespace papaya
