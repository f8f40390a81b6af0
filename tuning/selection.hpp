// Which algorithm a call gets. Rules come from the environment (PAPAYA_ALLREDUCE and its like), from a tuning
// file, or from the built-in table; they are read once, and every rank has the same ones. A choice depends
// only on facts that MPI makes equal on all ranks of the communicator.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "algorithms/algorithm.hpp"
#include "base/collective.hpp"
#include "base/reason.hpp"
#include "base/settings.hpp"

namespace papaya::tuning {

// What the choice may depend on.
struct Facts {
  int ranks;                    // of the communicator
  int nodes;                    // they are on
  bool oversubscribed = false;  // the node has more ranks of the job than cores
  bool native_yields = true;    // MPI's own ranks then give their core away while they wait
  bool may_reorder = false;     // PAPAYA_ORDER=arrival, and the operation is commutative
  bool predefined = true;       // the operation, if there is one
};

struct Rule {
  std::uint64_t lowest_bytes = 0;
  std::uint64_t highest_bytes = std::numeric_limits<std::uint64_t>::max();  // included
  const Descriptor* algorithm = nullptr;                                    // nullptr: native
  int most_ranks = std::numeric_limits<int>::max();
  std::uint64_t highest_oversubscribed =
      std::numeric_limits<std::uint64_t>::max();  // where ranks outnumber cores and MPI yields
  std::vector<std::int64_t> values;               // one per parameter of the algorithm
};

struct Choice {
  const Rule* rule = nullptr;  // set if an algorithm was chosen
  Reason reason = Reason::none;
  bool forced = false;                // named by the user: set up at the first call
  const Descriptor* named = nullptr;  // what the user named, if that cannot run
};

// What a selection calls as it was called before.
struct OldName {
  std::string_view old_name;
  std::string_view name;
  bool operator==(const OldName&) const = default;
};

struct Parsed {
  std::vector<Rule> rules;
  bool automatic = true;  // `auto`
  std::vector<OldName> old_names;
};

// Parses `auto`, `native`, `NAME[:param=value,...]` or `LOW-HIGH:NAME...` lists. False if it cannot be used;
// then `problem` says why, with the nearest valid name. Old names of algorithms and parameters are understood.
// Nonblocking calls have no `auto`, and only algorithms with a split phase.
bool parse(Collective collective, Form form, std::string_view text, Parsed& parsed, std::string& problem);

// The sentence that asks for the names of today.
std::string text_of(const std::vector<OldName>& old_names);

class Selection {
 public:
  // Takes the rules out of the settings and of the tuning file's text (empty: none). Problems become
  // warnings; the collective concerned falls back to its default.
  Selection(Settings& settings, std::string_view tuning_text, std::vector<std::string>& warnings);
  Selection() = default;

  Choice choose(Collective collective, std::uint64_t bytes, const Facts& facts,
                Form form = Form::blocking) const noexcept;

  // The same for calls whose ranks know their own sizes only (alltoallv): by the algorithm of `collective` that is
  // chosen for every size from one byte on and can be chosen for `form` as well. Native if sizes decide.
  Choice choose_for_any_size(Collective collective, Collective form, const Facts& facts) const noexcept;

  // Replaces the rules of one collective, as if `text` had stood in its variable. False, with the reason in
  // `problem` and nothing changed, if it cannot be used. Rules given out before stay where they are, and the
  // same text gets the same rules again.
  bool select(Collective collective, std::string_view text, std::string& problem, Form form = Form::blocking);

  // A warning of the old names in what was selected, each at the first call after it; empty if there are none.
  std::string old_names_warning();

  // False if every call runs natively whatever it is: then nothing needs to be set up.
  bool replaces_anything() const noexcept;
  // The same of nonblocking calls.
  bool replaces_nonblocking() const noexcept;
  // True if some rule names an algorithm that works across nodes.
  bool works_across_nodes() const noexcept;

 private:
  const std::vector<Rule>& rules_of(Collective collective, Form form = Form::blocking) const noexcept;
  template <class Holds>
  bool any_rule(Holds&& holds) const noexcept;

  // Shared with every copy and kept for good: set-ups point to rules.
  std::map<std::tuple<Collective, Form, std::string>, std::shared_ptr<const Parsed>> seen_;
  std::array<std::shared_ptr<const Parsed>, collective_count> chosen_;              // null: auto
  std::array<std::shared_ptr<const Parsed>, collective_count> chosen_nonblocking_;  // null: native
  std::vector<OldName> old_names_;
  std::size_t warned_ = 0;  // of old_names_
};

// The variable that selects the collective's algorithm; false if it has none.
bool variable_of(Collective collective, Variable& variable, Form form = Form::blocking) noexcept;

// The collective of a name such as "allreduce" or "MPI_Allreduce", in any case; false if there is none.
bool collective_of(std::string_view name, Collective& collective) noexcept;

}  // namespace papaya::tuning
