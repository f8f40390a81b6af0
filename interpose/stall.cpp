#include "interpose/stall.hpp"

#include <fmt/format.h>

#include <string>

#include "base/log.hpp"
#include "interpose/communicator.hpp"
#include "interpose/nonblocking.hpp"
#include "interpose/runtime.hpp"

namespace papaya {

std::string text_of(MPI_Comm comm) {
  char name[MPI_MAX_OBJECT_NAME] = "";
  int length = 0;
  int size = 0;
  PMPI_Comm_get_name(comm, name, &length);
  PMPI_Comm_size(comm, &size);
  return fmt::format("{} ({} ranks)", length > 0 ? name : "a communicator without name", size);
}

std::string missing_ranks(const Prepared& waiting, int size, int& count) {
  std::string missing;
  count = 0;
  for (int rank = 0; rank < size; ++rank) {
    if (!waiting.is_missing(rank)) continue;
    if (++count <= 16) missing += fmt::format("{}{}", missing.empty() ? "" : ", ", rank);
  }
  if (count > 16) missing += fmt::format(" and {} more", count - 16);
  return missing;
}

bool report_stall(void* prepared, double seconds) {
  if (prepared == nullptr) return true;  // a wait that belongs to no call
  if (prepared == nonblocking::waiting) return nonblocking::say_stall();
  if (runtime().recorder.is_open()) return true;
  const communicators::Owner owner = communicators::owner_of(static_cast<const Prepared*>(prepared));
  if (owner.communicator == nullptr) return true;
  const Prepared* const waiting = owner.whole;
  const Communicator& state = *owner.communicator;
  // The lowest rank that has arrived speaks for all that wait.
  for (int rank = 0; rank < state.rank; ++rank)
    if (!waiting->is_missing(rank)) return true;
  int count = 0;
  const std::string missing = missing_ranks(*waiting, state.size, count);
  const std::string call = fmt::format("MPI_{}, call {} on {}, has waited {:.0f} s", name_of(owner.collective),
                                       state.calls, text_of(state.handle), seconds);
  if (owner.one_node)
    log::warn(
        fmt::format("{}; {} of {} ranks have arrived, missing: {}", call, state.size - count, state.size, missing));
  else
    // Whoever that is may be there and wait for another in its turn.
    log::warn(fmt::format("{}: rank {} waits for what comes from rank {}, which may wait for another itself", call,
                          state.rank, missing));
  return true;
}

}  // namespace papaya
