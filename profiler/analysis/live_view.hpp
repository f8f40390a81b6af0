// What a running job does now, from its records read again and again: who is waited for, which ranks are slower than
// the others or than they were, and since when. Scores from 0 to 1 as NVIDIA's resiliency extension has them.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "profiler/analysis/analysis.hpp"
#include "profiler/read/frames.hpp"
#include "profiler/read/read.hpp"

namespace papaya::report {

// Between two looks; the first one covers the run from MPI_Init on.
struct LiveRank {
  std::int32_t rank = 0;
  std::int32_t node = 0;
  bool has_ended = false;             // it has come to MPI_Finalize or MPI_Abort
  std::string inside;                 // MPI_Allreduce; empty: the rank is not inside a blocking collective
  double since_ns = 0;                // for how long it has been inside, or outside
  std::vector<NamedFrame> call_site;  // of that collective call; empty: not known
  double computing_share = 0;         // of the time looked at: outside MPI, as are
  double collectives_share = 0;       // collectives, and
  double elsewhere_share = 0;         // MPI's other functions
  double caused_ns = 0;               // what the other ranks of its node waited for it
  // The median computing time of the ranks over its own, at most 1; and its own least computing time for a collective
  // call over today's. Negative: not known.
  double relative_score = -1;
  double individual_score = -1;
  // When its computing time against the median's last changed to `change_ratio` of what it was; 0: it has not.
  std::int64_t changed_unix_ns = 0;
  double change_ratio = 1;
  // Since MPI_Init.
  std::uint64_t all_calls = 0;
  double all_caused_ns = 0;
};

struct LiveView {
  std::string program;
  std::int64_t unix_ns = 0;  // when it was looked at
  double interval_ns = 0;    // what was looked at
  double age_ns = 0;         // since the first MPI_Init
  double quiet_ns = 0;       // since any rank last called or left a blocking collective
  std::int32_t ranks_of_job = 0;
  std::int32_t nodes = 0;
  bool has_ended = false;  // all ranks have
  std::vector<PendingCall> pending;
  std::vector<LiveRank> ranks;  // most waited for first, then lowest score
};

// Under these a rank is a straggler.
inline constexpr double least_score = 0.75;

// Of one job.
class Watch {
 public:
  // `run` as its records are at `unix_ns`.
  LiveView look(const Run& run, std::int64_t unix_ns);

 private:
  // Since MPI_Init.
  struct Sums {
    double elapsed_ns = 0;
    double collectives_ns = 0;
    double elsewhere_ns = 0;
    double caused_ns = 0;
    std::uint64_t calls = 0;

    double computing_ns() const;
  };
  struct Past {
    Sums sums;
    double unfinished_ns = 0;   // computing since the last look with a collective call
    double least_ns = 0;        // computing for a collective call; 0: not known
    std::deque<double> ratios;  // of the computing time to the median's, of the last looks since the last change
    std::int64_t changed_unix_ns = 0;
    double change_ratio = 1;
  };

  static Sums sums_of(const RankFile& file, std::int64_t unix_ns, LiveRank& rank);
  static double compare(Past& past, const Sums& sums, LiveRank& rank);
  static void note_ratio(Past& past, double ratio, std::int64_t unix_ns, double interval_ns);

  std::map<std::int32_t, Past> past_;  // by rank
  std::int64_t last_unix_ns_ = 0;
};

// One sentence: who is waited for now, or was since the last look.
std::string live_verdict(const LiveView& view);

}  // namespace papaya::report
