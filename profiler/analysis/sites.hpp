// The call sites of the program, those of all ranks as one list, and the program's phases.
#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "profiler/analysis/analysis.hpp"
#include "profiler/analysis/patterns_of_sites.hpp"
#include "profiler/read/clocks.hpp"
#include "profiler/read/read.hpp"

namespace papaya::report {

class Archive;

// Call sites, each once for each collective and form.
class Sites {
 public:
  struct Site {
    CallSiteFigures figures;
    std::map<std::int32_t, std::uint64_t> last;  // how often which rank of the job was
    SiteMeans means;                             // of its compared calls
    double replayed_excess_ns = 0;               // in those that a replay has

    void pack(Archive& archive);
  };

  explicit Sites(const Run& run);

  // Null: the event has no call site. Valid until the next one is asked for.
  Site* of(std::size_t file, const trace::Event& event);
  // Its number; ComparedCall::no_site: it has none.
  template <class Call>
  std::size_t number_of(std::size_t file, const Call& call) {
    return call.call_site == 0 ? ComparedCall::no_site : number_of(file, call.call_site, call.collective, call.form);
  }
  Site& at(std::size_t number) { return sites_[number]; }
  // The same of a call that is in the sums; null: it has none.
  template <class Call>
  const Site* find(std::size_t file, const Call& call) const {
    if (call.call_site == 0) return nullptr;
    for (const Own& one : own_[tables_[file]][call.call_site - 1])
      if (one.collective == call.collective && one.form == call.form) return &sites_[one.number];
    return nullptr;
  }
  // Of a part of a run, before it is read: the sites that `known` has get the same numbers.
  void number_as(const Sites& known);
  // The next part of the run. Returns, by the number of a site there, its number here: the same if it was numbered as
  // these are.
  std::vector<std::size_t> merge(const Sites& next);
  void pack(Archive& archive);
  // By CallSiteFigures::number.
  const std::vector<Site>& all() const { return sites_; }
  // Most waiting first. Once, at the end; numbers stay valid.
  std::vector<CallSiteFigures> take_figures();

 private:
  struct Own {
    std::uint8_t collective;
    std::uint8_t form;
    std::uint32_t number;
  };

  std::size_t number_of(std::size_t file, std::uint32_t call_site, std::uint8_t collective, std::uint8_t form);

  using Key = std::tuple<std::vector<Frame>, std::uint8_t, std::uint8_t>;

  void add(const Key& key, const CallSiteFigures& of);

  const Run& run_;
  std::map<Key, std::size_t> index_;
  std::vector<std::uint32_t> tables_;               // by file: which of the tables of call sites it has
  std::vector<std::vector<std::vector<Own>>> own_;  // by table and call site
  std::vector<Site> sites_;
};

class Phases {
 public:
  explicit Phases(const Run& run);

  PhaseFigures& of(std::size_t file, std::uint16_t phase) { return *own_[tables_[file]][phase]; }
  // The next part of the run.
  void merge(const Phases& next);
  void pack(Archive& archive);
  // Most waiting first; none where nothing has a name, as there is nothing to tell apart. Once, at the end.
  std::vector<PhaseFigures> take_figures();

 private:
  void measure(PhaseFigures& phase) const;

  const Run& run_;
  std::map<std::string, PhaseFigures> phases_;
  std::vector<std::uint32_t> tables_;            // by file: which of the tables of phases it has
  std::vector<std::vector<PhaseFigures*>> own_;  // by table and number
};

// The frames of an event's call site, innermost first; none if it has none.
std::vector<NamedFrame> frames_of(const RankFile& file, const trace::Event& event);

// Counts an event's call, bytes and time, compared or not.
void count_event(const Clocks& clocks, std::size_t file, const trace::Event& event, Sites& sites, Phases& phases);

}  // namespace papaya::report
