// A rule of a selection: under which conditions which algorithm serves a call, and what the conditions are about. Pure.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "algorithms/algorithm.hpp"
#include "base/reason.hpp"

namespace papaya::tuning {

// The arrival pattern of the calls (docs/glossary.md).
enum class ArrivalClass : std::uint8_t {
  unknown,  // of a rule: any
  balanced,
  persistent,
  rotating,
  drifting,
  random,
};
inline constexpr std::array<std::string_view, 6> arrival_names = {"any",      "balanced", "persistent",
                                                                  "rotating", "drifting", "random"};
constexpr std::string_view name_of(ArrivalClass arrivals) noexcept {
  return arrival_names[static_cast<std::size_t>(arrivals)];
}

// What the choice may depend on: the same on all ranks of the communicator.
struct Facts {
  int ranks;                    // of the communicator
  int nodes;                    // they are on
  bool oversubscribed = false;  // some node has more ranks of the job than cores
  bool native_yields = true;    // MPI's own ranks then give their core away while they wait
  bool may_reorder = false;     // PAPAYA_ORDER=arrival, and the operation is commutative
  bool predefined = true;       // the operation, if there is one
  int ranks_per_node = 0;       // of the communicator, on the node that has most of them; 0: not known
  ArrivalClass arrivals = ArrivalClass::unknown;
  std::uint64_t sites = 0;  // of TuningFile::sites, a bit for each: those that some rank makes the call from
};

// What the ranks have found out about such calls while they ran.
struct Learnt {
  ArrivalClass arrivals = ArrivalClass::unknown;
  std::uint64_t sites = 0;
  bool operator==(const Learnt&) const = default;
};

// From `lowest` to `highest`, both included. What is not known, 0, is within bounds that exclude nothing, and no
// others.
struct Bounds {
  static constexpr int any = std::numeric_limits<int>::max();
  int lowest = 0;
  int highest = any;
  constexpr bool hold(int value) const noexcept { return value >= lowest && value <= highest; }
  constexpr bool cover(const Bounds& other) const noexcept {
    return lowest <= other.lowest && highest >= other.highest;
  }
};

struct Rule {
  static constexpr std::uint64_t any_size = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t lowest_bytes = 0;
  std::uint64_t highest_bytes = any_size;  // included
  const Descriptor* algorithm = nullptr;   // nullptr: native
  std::vector<std::int64_t> values = {};   // one per parameter of the algorithm
  Bounds ranks = {};
  Bounds nodes = {};
  Bounds ranks_per_node = {};
  std::optional<bool> oversubscribed = {};  // whatever it is, if it is not set
  ArrivalClass arrivals = ArrivalClass::unknown;
  std::uint64_t site = 0;                           // one bit, as in Facts; 0: any
  std::uint64_t highest_oversubscribed = any_size;  // where ranks outnumber cores and MPI yields
};

enum class Condition : std::uint8_t { none, bytes, ranks, nodes, ranks_per_node, oversubscribed, arrivals, site };

// The first condition of the rule that does not hold; none if it applies.
Condition broken_condition(const Rule& rule, std::uint64_t bytes, const Facts& facts) noexcept;

// Whether `one` applies wherever `other` does.
bool covers(const Rule& one, const Rule& other) noexcept;

// Why the algorithm cannot serve such a call; Reason::none if it can.
Reason hindrance(const Descriptor& algorithm, std::uint64_t bytes, const Facts& facts) noexcept;

// ring:chunk_bytes=65536, with all parameters; native.
std::string text_of_algorithm(const Rule& rule);
// 64K, 1000.
std::string text_of_bytes(std::uint64_t bytes);

struct Choice {
  const Rule* rule = nullptr;  // set if an algorithm was chosen
  Reason reason = Reason::none;
  bool forced = false;                // named by the user: set up at the first call
  bool at_once = false;               // not named, and set up at the first call all the same
  bool automatic = false;             // by `auto`: another may serve as well
  bool of_file = false;               // by a rule of the tuning file
  const Descriptor* named = nullptr;  // what the user named, if that cannot run
};

}  // namespace papaya::tuning
