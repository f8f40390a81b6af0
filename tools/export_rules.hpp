// What a tuning file says for one MPI library, whose own rules know the communicator's size and the message's alone.
// One file for each format makes its text of it: openmpi_rules, mpich_rules, ucc_rules. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/collective.hpp"
#include "tuning/native_algorithms.hpp"
#include "tuning/tuning_file.hpp"

namespace papaya {

// What else rules ask for is the same for all communicators.
struct ExportFacts {
  int nodes = 1;
  bool oversubscribed = false;
  tuning::ArrivalClass arrivals = tuning::ArrivalClass::unknown;
};

struct NativeChoice {
  std::string_view algorithm;  // empty: the library's own choice
  std::uint64_t fanout = 0;
  std::uint64_t segment_bytes = 0;
  bool operator==(const NativeChoice&) const = default;
};
struct FromBytes {
  std::uint64_t bytes;  // up to the next one's
  NativeChoice choice;
  bool operator==(const FromBytes&) const = default;
};
struct FromRanks {
  int ranks;                     // up to the next one's
  std::vector<FromBytes> sizes;  // from 0 on
};
struct OfCollective {
  Collective collective;
  std::vector<FromRanks> ranks;  // from 1 on
};

// Of collectives among `counts_all_blocks` the library takes the blocks of all ranks together as the size. There each
// number of ranks stands by itself, up to this one.
inline constexpr int most_single_ranks = 1024;

// The collectives for which a rule names an algorithm of the library for some calls. The others are left to it, those
// that papaya would replace among them.
std::vector<OfCollective> rules_for(const tuning::TuningFile& file, const ExportFacts& facts,
                                    const tuning::NativeLibrary& library,
                                    std::span<const Collective> counts_all_blocks);

}  // namespace papaya
