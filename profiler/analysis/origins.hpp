// Where delays begin. A rank that arrives late at a collective has computed longer than the others since they last
// waited for each other on that communicator, or it comes from waiting for a message, or in another collective, for a
// rank that has (Scalasca's direct and propagated delay). Only computing times are compared: a rank's time outside MPI,
// between its calls.
//
// A delay began at a rank whose computing exceeds the median of the call's ranks by 80 % or more of the delay: at the
// late rank itself, if its own does, and else at the one that it waited for in messages, or that that one waited for,
// and so on. Where that does not tell, it is divided: what the late rank computed longer than the median began there,
// and what it waited longer than the median in collectives of other communicators began where those delays did, if
// that is 80 % of the delay together. Else it is taken for the rank of the call with the largest excess. Where no
// rank's is enough, nobody is blamed.
//
// After a rooted call, or a scan, the ranks of a communicator go on at different times. What they computed before it
// counts at the next call as well; who waited in it goes on as late as the rank that it waited for, and passes on what
// delayed that one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "profiler/analysis/analysis.hpp"
#include "profiler/analysis/arrivals.hpp"
#include "profiler/analysis/collective_waits.hpp"
#include "profiler/analysis/matching.hpp"
#include "profiler/read/read.hpp"

namespace papaya::report {

class Archive;

class Origins {
 public:
  explicit Origins(const Run& run);

  // A call whose arrivals are `arrivals`. `is_left`: its ranks are in several parts of the run.
  void add(const GroupCall& call, const Arrivals& arrivals, bool is_left);
  // The next part of the run.
  void merge(const Origins& next);
  void pack(Archive& archive);
  // `ranks` by file.
  void write(std::vector<RankFigures>& ranks) const;

 private:
  struct Blame {
    double own_ns = 0;         // waiting for this rank that began with it,
    double unknown_ns = 0;     // of which that is not known,
    double passed_on_ns = 0;   // and that began at another
    double for_others_ns = 0;  // waiting for others that began here
    // Of passed_on_ns, by the file of the rank where it began, the largest: a rank of a thousand may pass on a little
    // of the delays of all others.
    std::vector<std::pair<std::uint32_t, double>> from_ns;
    std::map<std::int32_t, double> waited_ns;  // what it waited in messages, by the rank that it waited for
    std::map<std::uint32_t, double> sites_ns;  // waiting that began here, by the call site that was reached late
    std::vector<double> excess_ns;             // of computing, by the call site that ended it

    void pack(Archive& archive);
  };

  // How late a rank goes on, compared with the others of the communicator, since all waited for all.
  struct Brought {
    double own_ns = 0;  // computed
    double longest_ns = 0;
    std::uint32_t site = 0;       // that ended the longest of that
    double inherited_ns = 0;      // with the rank that it waited for,
    std::vector<Beginning> from;  // whose delay began there, in parts that sum to 1

    double ns() const { return own_ns + inherited_ns; }
  };

  static void add_from(Blame& blame, std::uint32_t file, double ns);

  // From which of the call's ranks the message came that this one waited for, as far back as that goes.
  std::size_t sender_for(const GroupCall& call, const Arrivals& arrivals, std::size_t late, double delay_ns);

  // Appends to `beginnings_` with whom the delay of this one began, by parts that sum to 1; nothing: that is not known.
  void find_beginnings(const GroupCall& call, const Arrivals& arrivals, std::size_t late, double delay_ns,
                       bool is_left);
  // The same as far as it computed, or waited in other collectives, longer than the median of the ranks.
  bool divide(const GroupCall& call, std::size_t late, double delay_ns);
  void begin_at(const GroupCall& call, std::size_t origin);
  void blame(std::uint32_t late_file, double caused_ns, std::size_t first_beginning);
  void carry_on(const GroupCall& call, const Arrivals& arrivals);
  void find_excess(const GroupCall& call, const Arrivals& arrivals);
  const Brought* brought_to(const GroupCall& call, std::size_t i) const;
  void bring_on(const GroupCall& call, const Arrivals& arrivals);

  const Run& run_;
  CollectiveWaits waits_;
  std::vector<Blame> blames_;       // by file
  std::vector<std::size_t> files_;  // by rank of the job; no_file: it has no record
  // By file: its place in the call that it was in last; and the last search that came by it.
  std::vector<std::size_t> places_;
  std::vector<std::uint64_t> searches_;
  std::uint64_t search_ = 0;
  std::vector<double> excess_ns_;
  std::vector<double> sorted_;
  // Of the call: with whom its delays began, those of rank i from begins_at_[i] to before begins_at_[i + 1].
  std::vector<Beginning> beginnings_;
  std::vector<std::size_t> begins_at_;
  std::vector<Beginning> found_;
  std::map<std::size_t, std::vector<Brought>> brought_;  // by number of the group; by member
};

}  // namespace papaya::report
