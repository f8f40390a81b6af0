#include "interpose/stall.hpp"

#include <fmt/format.h>

#include <string>

#include "base/log.hpp"
#include "interpose/communicator.hpp"

namespace papaya {

void report_stall(void* prepared, double seconds) {
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
  log::warn(fmt::format("MPI_{}, call {} on {} ({} ranks), has waited {:.0f} s; {} of {} ranks have arrived, missing: {}",
                        name_of(owner.collective), state.calls, length > 0 ? name : "a communicator without name",
                        state.size, seconds, state.size - count, state.size, missing));
}

}  // namespace papaya
