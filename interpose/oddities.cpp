#include "interpose/oddities.hpp"

#include <fmt/format.h>

#include <array>
#include <string>

#include "base/log.hpp"

namespace papaya::oddities {

void report(const Job& job) {
  using Counts = std::array<std::uint64_t, 3>;
  Counts sums{};
  for (const Counts& one : job.oob->gather(Counts{verified.load(), mismatches.load(), failed_inner_calls.load()}))
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += one[i];
  if (job.rank != 0) return;
  if (sums[2] != 0)
    log::error(
        fmt::format("{} calls of MPI_Pack, MPI_Unpack or MPI_Reduce_local inside papaya failed, so results may "
                    "be wrong. Please report this; PAPAYA_DISABLE=1 avoids it.",
                    sums[2]));
  if (sums[1] != 0)
    log::error(
        fmt::format("{} of {} verified results differ from MPI's. Please report this, unless the program's ranks pass "
                    "counts, types or operations that do not go together; PAPAYA_DISABLE=1 avoids it.",
                    sums[1], sums[0]));
  else if (job.verify_every != 0 && (sums[0] != 0 || !job.approximates))
    log::warn(sums[0] == 0 ? std::string("PAPAYA_VERIFY is set, but no replaced call was due to be verified.")
                           : fmt::format("{} verified results{} agree with MPI's.", sums[0],
                                         job.approximates ? " of exact calls" : ""));
}

}  // namespace papaya::oddities
