// One call that a rule of PAPAYA_APPROX names, on its way through a weakly consistent collective.
#pragma once

#include <mpi.h>

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "interpose/approx_sites.hpp"
#include "interpose/call.hpp"
#include "interpose/weak_service.hpp"
#include "tuning/approx_rules.hpp"

namespace papaya::approx {

// What calls have in common that are combined with each other. All of it MPI makes equal on all ranks.
struct Kind {
  Collective collective;
  std::int64_t count;
  std::uint64_t element_bytes;
  int type;  // a kernel's
  int operation;
  int root;
  auto operator<=>(const Kind&) const = default;
};

// Calls of one kind on one communicator.
struct Series {
  std::vector<void*> collectives;  // one for each call of a cycle; null until its first
  std::uint64_t calls = 0;
  std::string refusal;  // why there is none
};

class Call {
 public:
  Call(Communicator& state, const Arguments& arguments, const CallFacts& facts, const tuning::ApproxRule& rule,
       std::size_t number_of_rule, const WeakService& service)
      : state_(state), a_(arguments), facts_(facts), rule_(rule), number_(number_of_rule), service_(service) {}
  // Of a rule with call sites: the ranks find out by this.
  void agree_by(SiteAgreement& sites) noexcept { sites_ = &sites; }

  // Why it cannot be approximate, by facts that are equal on all ranks; null if it can.
  const char* why_exact() noexcept;
  // Then.
  const Kind& kind() const noexcept { return kind_; }
  // `is_named`: on this rank its call site is. False if it is exact, which all ranks find alike.
  bool is_agreed(bool is_named) noexcept;
  // False, on all ranks alike, if it is to be exact all the same.
  bool run(Series& series);
  // Counts it. False.
  bool is_exact(std::string_view why) const noexcept;

 private:
  MPI_Datatype unit_type() const noexcept;
  void* create(std::string& refusal) const;
  void run(void* collective);
  WeakStatus wait(void* collective, const void* contribution, void* result) const;
  WeakStatus reduce(void* collective) const;
  WeakStatus broadcast(void* collective) const;

  Communicator& state_;
  const Arguments& a_;
  const CallFacts& facts_;
  const tuning::ApproxRule& rule_;
  const std::size_t number_;
  const WeakService& service_;
  SiteAgreement* sites_ = nullptr;  // null: all calls of the communicator are meant
  Reduction reduction_;
  ReductionContext context_{};
  Kind kind_{};
  std::uint64_t element_bytes_ = 0;
  std::uint64_t bytes_ = 0;
  std::uint64_t unit_ = 0;  // of a broadcast
};

// MPI reports it itself, and the others wait for this rank's next call.
bool has_errors(const Communicator& state, const Arguments& arguments) noexcept;

}  // namespace papaya::approx
