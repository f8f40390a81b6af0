#include "interpose/stall.hpp"

#include <fmt/format.h>

#include <string>

#include "base/log.hpp"
#include "interpose/communicator.hpp"

namespace papaya {

void report_stall(void* prepared, double seconds) {
  if (prepared == nullptr) return;  // a wait that belongs to no call
  const communicators::Owner owner = communicators::owner_of(static_cast<const Prepared*>(prepared));
  if (owner.communicator == nullptr) return;
  const Prepared* const waiting = owner.whole;
  const Communicator& state = *owner.communicator;
  // The lowest rank that has arrived speaks for all that wait.
  for (int rank = 0; rank < state.rank; ++rank)
    if (!waiting->is_missing(rank)) return;
  std::string missing;
  int count = 0;
  for (int rank = 0; rank < state.size; ++rank) {
    if (!waiting->is_missing(rank)) continue;
    if (++count <= 16) missing += fmt::format("{}{}", missing.empty() ? "" : ", ", rank);
  }
  if (count > 16) missing += fmt::format(" and {} more", count - 16);
  char name[MPI_MAX_OBJECT_NAME] = "";
  int length = 0;
  PMPI_Comm_get_name(state.handle, name, &length);
  const std::string call = fmt::format("MPI_{}, call {} on {} ({} ranks), has waited {:.0f} s", name_of(owner.collective),
                                       state.calls, length > 0 ? name : "a communicator without name", state.size, seconds);
  if (owner.one_node)
    log::warn(fmt::format("{}; {} of {} ranks have arrived, missing: {}", call, state.size - count, state.size, missing));
  else
    // Whoever that is may be there and wait for another in its turn.
    log::warn(fmt::format("{}: rank {} waits for what comes from rank {}, which may wait for another itself", call, state.rank, missing));
}

}  // namespace papaya
