// Which algorithm a call gets. Rules come from the environment (PAPAYA_ALLREDUCE and its like), from a tuning
// file, or from the built-in table; they are read once, and every rank has the same ones. A choice depends
// only on facts that MPI makes equal on all ranks of the communicator.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "algorithms/algorithm.hpp"
#include "base/collective.hpp"
#include "base/message_times.hpp"
#include "base/reason.hpp"
#include "base/settings.hpp"
#include "tuning/load.hpp"
#include "tuning/rule.hpp"
#include "tuning/selection_text.hpp"
#include "tuning/tuning_file.hpp"

namespace papaya::tuning {

// A rule that a choice came to, in the order in which they are looked at: the last one decides if both are none.
struct Considered {
  enum class Source : std::uint8_t { selection, file, table };
  Source source;
  const Rule* rule;
  const FileRule* row;  // of the file; else null
  Condition broken;
  Reason hindrance;  // why the algorithm cannot serve the call, for which it is
};

class Selection {
 public:
  // Takes the rules out of the settings and of the tuning file's text (empty: none). Problems become
  // warnings; the collective concerned falls back to its default. What a file of JSON has no rule for, and calls that
  // its algorithms cannot serve, go by the built-in table.
  Selection(Settings& settings, std::string_view tuning_text, std::vector<std::string>& warnings);
  Selection() = default;

  // `considered`, for people, gets all rules that were looked at.
  Choice choose(Collective collective, std::uint64_t bytes, const Facts& facts, Form form = Form::blocking,
                std::vector<Considered>* considered = nullptr) const noexcept;

  // All that might serve calls of up to `bytes`, whether or not `auto` would choose them; across nodes only those that
  // say how long they take there (Descriptor::call_ns), and not those that cannot win by that with the `network`'s
  // times of messages, which must be the same on all ranks. The rules stay.
  static std::vector<const Rule*> candidates(Collective collective, std::uint64_t bytes, const Facts& facts,
                                             const MessageTimes& network);

  // The same for calls whose ranks know their own sizes only (alltoallv): by the algorithm of `collective` that is
  // chosen for every size from one byte on and can be chosen for `form` as well. Native if sizes decide.
  Choice choose_for_any_size(Collective collective, Collective form, const Facts& facts) const noexcept;

  // True if a rule for blocking calls of the collective is for one arrival pattern.
  bool goes_by_arrivals(Collective collective) const noexcept;
  // The call sites that such rules are for, as in Facts, and what the file calls them, the first bit's first.
  std::uint64_t sites_of(Collective collective) const noexcept;
  std::span<const std::string> sites() const noexcept;

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
  const Parsed* selected(Collective collective, Form form) const noexcept;  // null: none
  const std::vector<Rule>& rules_of(Collective collective, Form form) const noexcept;
  // Those that come before, where the selection is `auto`.
  const std::vector<FileRule>& rows_of(Collective collective, Form form) const noexcept;
  template <class Holds>
  bool any_rule(Holds&& holds) const noexcept;

  void take_text(std::string_view text, std::vector<std::string>& warnings);
  bool take(Collective collective, std::string_view text, const std::string& where, Form form,
            std::vector<std::string>& warnings);
  void note(const std::vector<OldName>& old_names);

  // Shared with every copy and kept for good: set-ups point to rules.
  std::shared_ptr<const TuningFile> file_;  // null: none
  std::map<std::tuple<Collective, Form, std::string>, std::shared_ptr<const Parsed>> seen_;
  std::array<std::shared_ptr<const Parsed>, collective_count> chosen_;              // null: auto
  std::array<std::shared_ptr<const Parsed>, collective_count> chosen_nonblocking_;  // null: native
  std::vector<OldName> old_names_;
  std::size_t warned_ = 0;  // of old_names_
};

}  // namespace papaya::tuning
