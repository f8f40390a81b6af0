#include "interpose/stall.hpp"

#include <fmt/format.h>

#include <string>

#include "base/log.hpp"
#include "interpose/communicator.hpp"
#include "interpose/nonblocking.hpp"
#include "interpose/text_of.hpp"

namespace papaya {

bool report_nonblocking_stall(void* prepared, double /*seconds*/) {
  return prepared != nonblocking::waiting || nonblocking::report_stall();
}

bool report_stall(void* prepared, double seconds) {
  if (prepared == nullptr) return true;  // a wait that belongs to no call
  if (prepared == nonblocking::waiting) return report_nonblocking_stall(prepared, seconds);
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
    log::warn(fmt::format("{}: rank {} waits for data of rank {}, which may be waiting for another rank", call,
                          state.rank, missing));
  return true;
}

}  // namespace papaya
