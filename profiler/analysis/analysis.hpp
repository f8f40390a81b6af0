// The figures of a run: calls, bytes and time by collective, and, from the arrivals of all ranks at the same
// call, who arrived when and what that cost.
//
// For one call with arrivals a_i and exits e_i on one clock (thesis, section 2.3):
//   earliest legal exit     l_i: the last arrival among the ranks whose data rank i needs (all of them, the
//                           root, the lower ranks, or none but its own)
//   waiting                 w_i = l_i - a_i, what late ranks cost; charged to that last arrival
//   excess                  e_i - l_i, what the algorithm costs
//   worst-case imbalance    max w
//   average-case imbalance  mean |w_i - mean w|
//   imbalance factors       both divided by alpha, the time to send one message of the call's size
// so that the time inside, e_i - a_i, is waiting plus excess. Where all ranks wait for all, the thesis's imbalances,
// max a - min a and mean |a_i - mean a|, are the same: there w_i = max a - a_i. Where they do not, its figures count
// ranks that are merely ahead: a bcast's root before its receivers, a reduce's other ranks before each other.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/collective.hpp"
#include "profiler/analysis/alpha.hpp"
#include "profiler/analysis/approx.hpp"
#include "profiler/analysis/costly_call.hpp"
#include "profiler/analysis/patterns_of_sites.hpp"
#include "profiler/analysis/rank_times.hpp"
#include "profiler/analysis/record_facts.hpp"
#include "profiler/analysis/savings.hpp"
#include "profiler/analysis/trials.hpp"
#include "profiler/analysis/usage.hpp"
#include "profiler/analysis/wait_kinds.hpp"
#include "profiler/analysis/weak.hpp"
#include "profiler/analysis/what_if.hpp"
#include "profiler/analysis/whole_run.hpp"
#include "profiler/analysis/wrong_results.hpp"
#include "profiler/read/frames.hpp"
#include "profiler/read/read.hpp"

namespace papaya::report {

class Readers;

// Averages over the calls compared.
struct Imbalance {
  std::uint64_t calls = 0;
  double worst_ns = 0;
  double average_ns = 0;
  double worst_factor = 0;
  double average_factor = 0;
};

// Over all ranks of a call, and among the ranks of each node that has two or more, averaged over those nodes.
struct Imbalances {
  Imbalance cluster;
  Imbalance node;
};

// Over ranks and calls.
struct Spread {
  std::uint64_t samples = 0;
  double mean_ns = 0;
  double p50_ns = 0;
  double p99_ns = 0;
  double max_ns = 0;
};

struct SizeFigures {
  std::uint64_t calls = 0;
  std::uint64_t bytes = 0;
  double ns = 0;
  Imbalances imbalance;
};

struct CollectiveFigures {
  Collective collective{};
  Form form{};
  std::string name;         // MPI_Allreduce, MPI_Iallreduce, MPI_Allreduce_init
  std::uint64_t calls = 0;  // exact, summed over ranks, as are bytes and ns
  std::uint64_t bytes = 0;
  double ns = 0;
  std::array<SizeFigures, size_class_count> by_size;
  // Of the calls compared: those of the blocking form that are in the record of all ranks.
  Imbalances imbalance;
  Spread inside;
  Spread excess;
  double waiting_ns = 0;  // summed over ranks
};

struct RankFigures {
  std::int32_t rank = 0;
  std::int32_t node = 0;
  std::uint64_t compared = 0;                          // calls
  std::uint64_t times_last = 0;                        // by more than the clocks' error
  double late_ns = 0;                                  // mean time after the first arrival
  double waited_ns = 0;                                // for others, summed
  double caused_ns = 0;                                // waiting of others for this rank, summed
  std::array<double, wait_kind_count> waited_ns_in{};  // waited_ns, by what it waited for
  std::array<std::uint64_t, collective_count> compared_in{};
  std::array<std::uint64_t, collective_count> times_last_in{};
  std::array<double, collective_count> caused_ns_in{};
  // The calls at which others waited for this rank, by the longest of these waits.
  std::array<std::uint64_t, collective_count> delays_in{};
  std::array<double, collective_count> median_delay_ns_in{};
  std::array<double, collective_count> largest_delay_ns_in{};
  // The longest of them that make up half of their sum: how many, and the least.
  std::array<std::uint64_t, collective_count> long_delays_in{};
  std::array<double, collective_count> long_delay_ns_in{};
  // Where all but a twentieth of their sum is in some of them, and the others are far shorter: how many those are, and
  // their mean.
  std::array<std::uint64_t, collective_count> notable_delays_in{};
  std::array<double, collective_count> notable_delay_ns_in{};
  double largest_delay_ns = 0;
  // Of the waiting: what began with this rank; and of caused_ns, what began with others and only passed through it, of
  // which most with one rank, and what no rank is known to have begun (origins.hpp).
  double began_ns = 0;
  double passed_on_ns = 0;
  double most_passed_on_ns = 0;
  std::int32_t passed_on_from = -1;
  double unknown_origin_ns = 0;
  // The rank that it waited for longest in messages, as far as intervals go back and where it is known; -1: none.
  std::int32_t most_waited_for = -1;
  double most_waited_ns = 0;
  std::vector<NamedFrame> late_at;  // the call that it reached late for most of began_ns; empty: there is none such
  // What it computed longer than the median of the ranks before the calls that they made together, whether anybody
  // waited for it or not: of that most before this one, so much.
  double long_ns = 0;
  double long_there_ns = 0;
  std::vector<NamedFrame> long_at;
  RankTime time;
  UsageFigures usage;
};

struct NodeFigures {
  std::int32_t node = 0;
  std::string host;
  std::vector<RankRange> ranks;
};

struct CommunicatorFigures {
  std::uint64_t id = 0;
  std::string name;
  std::int32_t size = 0;
  std::uint64_t calls = 0;     // summed over ranks
  std::uint64_t compared = 0;  // calls
  double worst_ns = 0;         // mean
  double waiting_ns = 0;       // summed over ranks
  Efficiency efficiency;       // of its ranks over the run; not known unless all their times are
};

// The calls of one collective from one call site.
struct CallSiteFigures {
  std::vector<NamedFrame> frames;  // innermost first
  Collective collective{};
  Form form{};
  std::string name;         // MPI_Allreduce
  std::uint64_t calls = 0;  // in the record, summed over ranks
  std::uint64_t bytes = 0;  // in them
  std::uint64_t largest_bytes = 0;
  double ns = 0;  // inside them
  // Of the calls compared that a rank made from here; waiting and excess of the ranks that did.
  std::uint64_t compared = 0;
  double worst_ns = 0;    // mean
  double waiting_ns = 0;  // summed over ranks
  double excess_ns = 0;   // summed over ranks
  struct Last {
    std::int32_t rank = 0;
    std::uint64_t times = 0;
  };
  std::vector<Last> last;  // ranks that were, most often first
  SitePattern pattern;
  std::size_t number = 0;  // as ComparedCall::site has it
  Savings savings;
};

// The calls that the program made in one of its phases (include/papaya.h).
struct PhaseFigures {
  std::string name;         // empty: outside of all
  std::uint64_t calls = 0;  // blocking ones in the record, summed over ranks
  double ns = 0;            // inside them
  // Of the calls compared that a rank made in it; waiting and excess of the ranks that did.
  std::uint64_t compared = 0;
  double worst_ns = 0;    // mean
  double waiting_ns = 0;  // summed over ranks
  double excess_ns = 0;   // summed over ranks
  // Over the whole run, of the ranks that were in it; without phases inside it.
  std::uint64_t ranks = 0;
  std::uint64_t entered = 0;  // summed over ranks
  double longest_ns = 0;      // that a rank was in it
  Efficiency efficiency;      // of these ranks, in that time; not known unless all their calls were timed, all the run
};

// Of the part of a run for which the record has all calls: between the first and the last call that all ranks made.
struct PartEfficiency {
  double span_ns = 0;  // its length
  Efficiency of_part;  // communication, serialisation and transfer alone
};

struct AlgorithmFigures {
  std::string collective;
  std::string algorithm;
  std::string reason;  // why native, empty where another algorithm ran or none was told
  std::uint64_t calls = 0;
};

// The last that is known of a rank.
struct LastSign {
  std::int32_t rank = 0;
  std::string name;  // of the collective; empty: it has called none
  std::string communicator;
  std::uint64_t call = 0;
  bool inside = false;                // still, else it has left it
  std::int64_t unix_ns = 0;           // when it arrived there or left
  std::vector<NamedFrame> call_site;  // innermost first; empty: not known
};

// A rank inside a call that never ended.
struct PendingArrival {
  std::int32_t rank = 0;
  double late_ns = 0;  // after the first of them
};

// A call that some ranks were inside when the record ended.
struct PendingCall {
  std::string name;
  std::string communicator;
  std::uint64_t communicator_id = 0;
  std::int32_t ranks = 0;  // of the communicator
  std::uint64_t call = 0;
  std::vector<RankRange> inside;
  std::vector<RankRange> not_arrived;
  std::uint64_t unknown_not_arrived = 0;  // of the communicator, but which ranks those are is not recorded
  bool unread_ranks = false;              // some of its ranks have no usable file
  std::vector<NamedFrame> call_site;      // where the lowest of those inside made it
  std::string conflict;                   // which ranks called what, where they called different things
  double waited_ns = 0;                   // at least, by the first of them
  std::int64_t since_unix_ns = 0;         // when the first of them arrived
  double first_ns = 0;                    // the same on node 0's clock
  std::vector<PendingArrival> arrivals;   // of those inside, by rank of the communicator
  std::vector<LastSign> last_signs;       // of those not arrived, the first few
};

struct Analysis {
  bool usable = false;  // at least one record could be read
  // Files missing, damaged or foreign, or the job did not reach MPI_Finalize on all ranks.
  bool partial = false;
  bool other_version = false;
  bool finalized = false;

  std::string folder;
  std::string program;
  std::string command;
  std::string mpi;
  std::string papaya_version;
  std::vector<Setting> settings;
  std::int32_t ranks = 0;
  std::uint64_t ranks_read = 0;
  std::int32_t nodes = 0;
  std::vector<NodeFigures> node_figures;
  std::int64_t begin_unix_ns = 0;
  double run_ns = 0;    // first MPI_Init left to last MPI_Finalize entered, or as far as the record goes
  double begin_ns = 0;  // that MPI_Init left, on node 0's clock

  bool clock_measured = true;  // false: several nodes, and their clocks were not compared
  // For a node's clock against node 0's, wherever in the run: how far it may be off if messages take equally long both
  // ways; and at the comparisons, however unlike the ways are. 0 on one node.
  double clock_error_ns = 0;
  double clock_bound_ns = 0;
  bool alpha_nominal = false;              // some factor used the nominal alpha
  std::vector<MessageTime> message_times;  // as measured, ascending sizes

  std::int64_t cores = 0;  // of the nodes whose first rank has a usable record
  // Of the node with the most ranks for each core; 0: nowhere do ranks share one.
  std::int32_t crowded_ranks = 0;
  std::int32_t crowded_cores = 0;

  RecordFacts record;

  std::vector<CollectiveFigures> collectives;      // those called, most time first
  std::vector<RankFigures> late_ranks;             // all ranks read, most waiting caused first
  UsageFigures median_usage;                       // of all ranks read
  std::vector<CommunicatorFigures> communicators;  // most waiting first
  std::vector<AlgorithmFigures> algorithms;
  std::vector<TrialFigures> trials;  // most calls first
  std::vector<WrongResult> wrong_results;
  std::vector<FunctionFigures> functions;  // other than blocking collectives, most time first
  Efficiency efficiency;
  PartEfficiency recorded_efficiency;       // where the rings have lost the beginning of the run
  std::vector<CallSiteFigures> call_sites;  // most waiting first
  std::vector<CostlyCall> costly_calls;     // most waiting first, at most most_costly_calls
  std::vector<PhaseFigures> phases;         // most waiting first; empty if the program names none
  std::uint64_t unrecorded_calls = 0;       // summed over ranks: the program had switched recording off,
  double unrecorded_ns = 0;                 // for so long
  std::vector<PendingCall> pending;
  std::vector<WeakFigures> weak;      // most time inside first
  std::vector<ApproxFigures> approx;  // a rule of PAPAYA_APPROX each
  std::string horovod_library;        // empty: the program does not use Horovod
  std::string horovod_threads;        // "thread 1", of each rank

  WholeRun whole_run;
  double whole_run_share = 0;   // of the ranks' time, that they wait within their nodes
  bool is_overwritten = false;  // calls at the beginning of the run are known from `whole_run` alone

  std::uint64_t events_begun = 0;
  std::uint64_t events_kept = 0;
  std::uint64_t compared_calls = 0;
  double waiting_ns = 0;                             // of all ranks in the calls compared
  std::array<WaitFigures, wait_kind_count> waits{};  // the same by what they waited for
  double recorded_ns = 0;                            // rank time that those calls were taken from
  double waiting_share = 0;                          // waiting_ns / recorded_ns
  Savings savings;                                   // of all call sites together
  WhatIf what_if;
};

// max w and mean |w - mean w| of what the ranks of a call waited.
struct WorstAverage {
  double worst_ns = 0;
  double average_ns = 0;
};

// A call whose arrivals are known on all ranks, as the figures were made from it. Index i is the i-th of its ranks, in
// the order of the communicator.
struct ComparedCall {
  std::uint64_t communicator_id = 0;
  std::uint64_t call = 0;  // its number there
  Collective collective{};
  std::uint32_t algorithm = 0;    // of its first rank
  std::uint64_t bytes = 0;        // the most that a rank passed
  std::string_view communicator;  // name
  std::string_view phase;         // of its first rank
  std::size_t site = no_site;
  std::span<const std::uint32_t> files;  // of the run
  std::span<const double> arrivals_ns;   // on node 0's clock
  std::span<const double> waits_ns;      // from its arrival to its earliest legal exit
  std::span<const double> caused_ns;     // waiting of others for it
  std::span<const double> exits_ns;      // NaN: still inside
  double first_ns = 0;                   // first arrival
  std::size_t last = 0;                  // the last one's index
  WorstAverage cluster;
  double cluster_alpha_ns = 1;
  bool has_node = false;  // a node has two ranks or more of it
  WorstAverage node;
  double node_alpha_ns = 1;

  static constexpr std::size_t no_site = ~std::size_t{0};
};

using CallObserver = std::function<void(const ComparedCall&)>;

// Into how many events a run is parted (run_parts.hpp), at least.
inline constexpr std::size_t events_of_part = std::size_t{1} << 21;

// `observe` is called for each call compared, those of a rank in their order; of a run that is read in parts, calls
// with ranks in several of them later.
// `progress` gets the events read, of all that are to be, each twice; it may be called on other threads, one at a time.
Analysis analyse(const Run& run, const CallObserver& observe = {}, const Progress& progress = {},
                 std::size_t events_of_parts = events_of_part) noexcept;

// The same, read together with other processes; of `readers`, number 0 gets it. If they cannot, it reads alone.
Analysis analyse(const Run& run, Readers& readers, std::size_t events_of_parts = events_of_part) noexcept;
// What the others do meanwhile: nothing, if they are not asked. `load`: returns the run.
void help_to_analyse(Readers& readers, const std::function<Run()>& load,
                     std::size_t events_of_parts = events_of_part) noexcept;

}  // namespace papaya::report
