// The per-rank file rank-NNNNN.pap, version 4. One mmap'ed file per rank: a header page, fixed tables, then a ring of
// events. Every field is fixed-width and native-endian; the reader checks `endian_mark`, `version` and every offset
// against the file's size before it looks at anything else. The file is valid at any moment of the run, so that a
// job ended by SIGKILL leaves a readable record; docs/trace_format.md describes it for other tools.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/collective.hpp"

namespace papaya::trace {

inline constexpr char magic[8] = {'P', 'A', 'P', 'A', 'Y', 'A', '\r', '\n'};
inline constexpr std::uint32_t format_version = 4;
inline constexpr std::uint32_t endian_mark = 0x01020304;

inline constexpr std::uint32_t reason_capacity = 32;  // reason 0 is always "" (not native)
inline constexpr std::uint32_t phase_capacity = 24;   // phase 0 is always "", outside of all
inline constexpr std::uint32_t name_bytes = 64;       // NUL-terminated
inline constexpr std::uint32_t id_bytes = 32;         // NUL-terminated
inline constexpr std::uint32_t alpha_capacity = 8;
inline constexpr std::uint32_t path_bytes = 256;
inline constexpr std::uint32_t most_frames = 16;  // of a call site

// Event::call of a call that returned an error: it counts, and no call of another rank belongs to it.
inline constexpr std::uint64_t no_call = ~std::uint64_t{0};

// Event::call where a persistent collective is started. Ranks may start several in different orders, so that they share
// no number: the call is known by that of the operation's MPI_X_init, and how often the operation was started before.
inline constexpr int started_shift = 36;
constexpr std::uint64_t started_call(std::uint64_t init, std::uint64_t starts) {
  return (starts << started_shift) | (init & ((std::uint64_t{1} << started_shift) - 1));
}
constexpr std::uint64_t starts_before(std::uint64_t started) {
  return started >> started_shift;
}

// One collective call on one rank. Written when the rank arrives (exit_ticks 0: still inside) and completed when it
// leaves. `commit` is the low 32 bits of the event's number in the run plus one, stored last with release order;
// a slot whose commit does not match its place in the ring is torn or unused and is skipped by the reader.
struct Event {
  std::uint64_t arrival_ticks;
  std::uint64_t exit_ticks;
  std::uint64_t communicator;  // Communicator::id, equal on all its ranks
  std::uint64_t call;          // number of this collective call on that communicator, from 0, equal on all its ranks
  std::uint64_t bytes;         // message size as this rank passed it (see bytes in docs/trace_format.md)
  std::uint32_t call_site;     // where the program made it: number of a CallSite, from 1; 0 if not recorded
  std::uint32_t algorithm;     // row of the table of algorithms
  std::uint32_t commit;
  std::int32_t root;  // rank in the communicator, -1 where the collective has none
  std::uint8_t collective;
  std::uint8_t form;     // papaya::Form
  std::uint16_t reason;  // index into Header::reason_names, 0 unless native
  std::uint16_t thread;  // small number of the calling thread, from 0
  std::uint16_t phase;   // index into Header::phase_names
};
static_assert(sizeof(Event) == 64);

// Of the call, or of the one that has made what it starts.
constexpr std::uint64_t number_of(const Event& event) {
  const bool is_start = static_cast<Form>(event.form) == Form::started && event.call != no_call;
  return is_start ? event.call & ((std::uint64_t{1} << started_shift) - 1) : event.call;
}

// How a communicator was made from its parent.
enum class Origin : std::int32_t {
  unknown = 0,
  dup = 1,
  split = 2,
  node_split = 3,
  group = 4,
  grid = 5,
  graph = 6,
  inter = 7,  // an intercommunicator, however it was made
  merge = 8,
  session = 9  // from a group, without a parent
};

// A communicator on which this rank made at least one collective call.
struct Communicator {
  std::uint64_t id;
  std::uint64_t parent_id;  // 0 for MPI_COMM_WORLD, MPI_COMM_SELF and unknown origin
  std::uint64_t calls;
  std::int32_t size;  // ranks
  std::int32_t rank;  // of this process
  std::int32_t nodes;
  std::int32_t origin;  // papaya::trace::Origin
  char name[name_bytes];
};
static_assert(sizeof(Communicator) == 104);

// A file that code of the process came from; or a function written in Python.
enum class Language : std::uint32_t { machine = 0, python = 1 };

struct Module {
  std::uint64_t bias;  // its addresses in this process less those in the file
  std::uint32_t build_id_bytes;
  std::uint32_t language;  // papaya::trace::Language
  std::uint8_t build_id[32];
  char path[path_bytes];  // as the process knew it; of a function its source's, a NUL, and the function's name
};
static_assert(sizeof(Module) == 304);

// Where a call returns to.
struct Frame {
  std::uint32_t module;  // its number, from 1; 0: not known, and the offset is an address of the process
  std::uint32_t reserved;
  std::uint64_t offset;  // address in the file; in a function written in Python the line
};
static_assert(sizeof(Frame) == 16);

// A blocking call that this rank has arrived at, for the others of its node to read while the job runs
// (node_arrivals.hpp). `check` is arrival_key xor the other words: what is being written, or is of another call, is not
// taken for it.
struct NodeArrival {
  std::uint64_t check;
  std::uint64_t ticks;
  std::uint64_t what;  // call site, collective << 32, size class << 40
  std::uint64_t root;  // rank in the communicator, sign-extended
};
static_assert(sizeof(NodeArrival) == 32);

// A set of slots for each communicator: call n of it is in slot n % arrival_slots of the set whose number it has in
// `communicators`, by which readers find it; a set that is free keeps its last owner there.
inline constexpr std::uint64_t arrival_sets = 64;
inline constexpr std::uint64_t arrival_slots = 128;
struct NodeBoard {
  std::uint64_t communicators[arrival_sets];
  NodeArrival slots[arrival_sets][arrival_slots];
};
static_assert(sizeof(NodeBoard) == 262656);

constexpr std::uint64_t arrival_key(std::uint64_t communicator, std::uint64_t call) {
  // The finisher of MurmurHash3: every bit of both counts.
  std::uint64_t key = communicator ^ (call + 1) * 0x9e3779b97f4a7c15u;
  key = (key ^ key >> 33) * 0xff51afd7ed558ccdu;
  key = (key ^ key >> 33) * 0xc4ceb9fe1a85ec53u;
  return key ^ key >> 33;
}
// Blocking calls that this rank compared the arrivals of for its node: those of one collective, size class and
// communicator where `rank` was last, or was waited for, which made them from one of its call sites.
struct NodeCalls {
  std::uint64_t communicator;  // 0: of any, where the table has become too full to tell them apart
  std::int32_t rank;           // in MPI_COMM_WORLD
  std::uint32_t call_site;     // in that rank's record; 0 if not known
  std::uint8_t collective;
  std::uint8_t size_class;  // of what the comparing rank passed
  std::uint8_t used;        // 1; 0: there is nothing here
  std::uint8_t reserved[5];
  std::uint64_t calls;            // where it arrived last
  std::uint64_t times_last;       // of these, by more than a tie
  std::uint64_t imbalance_ticks;  // the longest wait of each, summed
  std::uint64_t most_ticks;       // the largest of them
  std::uint64_t caused_ticks;     // what the node's other ranks waited for it, summed
};
static_assert(sizeof(NodeCalls) == 64);

struct CallSite {
  std::uint32_t first_frame;  // in the table of frames, innermost first
  std::uint32_t frames;
};

// Totals, exact however often the event ring wrapped.
struct Total {
  std::uint64_t calls;
  std::uint64_t bytes;
  std::uint64_t ticks;  // time inside
};

struct Totals {
  Total by_size[collective_count][form_count][size_class_count];
  std::uint64_t native_calls_by_reason[collective_count][reason_capacity];
  // The same of nonblocking calls, where the user has chosen an algorithm for them.
  std::uint64_t native_nonblocking_by_reason[collective_count][reason_capacity];
};

// An algorithm that calls may have run by, and how many have. Row 0 is "native".
struct Algorithm {
  char name[name_bytes];
  std::uint64_t calls[collective_count];        // blocking
  std::uint64_t nonblocking[collective_count];  // where the user has chosen an algorithm for them
};

// Time to send one message of `bytes`, one way, measured at finalize; 0 where not measured.
struct Alpha {
  std::uint64_t bytes;
  std::uint64_t node_ns;     // between two ranks of one node
  std::uint64_t cluster_ns;  // between two nodes; 0 on one node
};

// Offset of this node's clock to node 0's: add it to this node's time to get node 0's. It was measured against the
// clock of another node, its reference, and that one's against its own reference, and so on to node 0.
struct ClockOffset {
  std::int64_t offset_ns;
  std::uint64_t error_ns;        // if messages take equally long both ways: how far parts of the measurement disagree
  std::uint64_t at_ticks;        // when, on this node's clock
  std::uint64_t measured;        // 1 if it was
  std::int64_t to_reference_ns;  // offset to the reference's own clock
  std::uint64_t reference_error_ns;  // of that
  std::uint64_t bound_ns;            // of offset_ns, however unlike the two ways are: half of the shortest round trips
  std::int32_t reference;            // node, lower than this; -1: none
  std::int32_t reserved;
};
static_assert(sizeof(ClockOffset) == 64);

// Together more than there are collectives that can be replaced.
inline constexpr std::uint32_t difference_capacity = 6;
inline constexpr std::uint32_t further_difference_capacity = 10;
// A result of an algorithm that differs from MPI's own: the first one of that algorithm on that communicator
// (PAPAYA_VERIFY), in the record of the lowest rank that has found it.
struct Difference {
  std::uint64_t communicator;
  std::uint64_t call;
  std::uint64_t element;    // of the rank's result
  std::uint32_t algorithm;  // row of the table of algorithms
  std::uint8_t collective;
  std::uint8_t is_dropped;  // 1: the algorithm served that communicator no longer
  std::uint8_t reserved[2];
  char ours[24];      // the element
  char expected[24];  // MPI's
};
static_assert(sizeof(Difference) == 80);

enum class Ending : std::uint32_t { running = 0, finalized = 1, aborted = 2 };

// What has become of a wish for a thread's call stack.
enum class StackState : std::uint32_t {
  taken = 0,
  blocked = 1,    // in a system call that a signal would end early: the thread was left alone
  masked = 2,     // the thread takes no signals
  no_signal = 3,  // the program takes all real-time signals itself
  silent = 4,     // it has not answered in time
};

// The call stack of a thread of the process, taken when somebody asked for it.
inline constexpr std::uint32_t most_stack_frames = 60;
struct ThreadStack {
  std::int32_t thread;        // its number in the system; the first thread's is the process's
  std::uint32_t state;        // StackState
  std::uint32_t system_call;  // its number, plus 1, if the thread was blocked in one; 0: it was running, or not known
  std::uint32_t frames;
  Frame frame[most_stack_frames];  // innermost first
};
static_assert(sizeof(ThreadStack) == 976);

// Who wants the stacks adds 1 to `asked` and wakes its futex. Of all other words the process is the only writer.
inline constexpr std::uint32_t most_stacks = 8;
struct Stacks {
  std::uint32_t asked;
  std::uint32_t answered;  // stored last, with release order: the value of `asked` that what follows answers
  std::uint32_t answers;   // 1: the process answers
  std::uint32_t count;     // threads
  ThreadStack thread[most_stacks];
};
static_assert(sizeof(Stacks) == 7824);

// What the system did for the rank's process from the end of MPI_Init to MPI_Finalize or MPI_Abort.
struct Usage {
  std::uint64_t wall_ns;       // 0: nothing is known, as of a process that was killed
  std::uint64_t user_ns;       // all threads'
  std::uint64_t system_ns;     // all threads'
  std::uint64_t core_wait_ns;  // the first thread was ready and had no core; all bits set: the system does not tell
  std::uint64_t voluntary_switches;
  std::uint64_t involuntary_switches;
  std::uint64_t minor_faults;  // page faults without reading from disk
  std::uint64_t major_faults;
  std::uint64_t peak_bytes;  // of resident memory, since the process began
  std::int32_t core;         // at the end; -1: the system does not tell
  std::uint32_t core_khz;    // of that core then; 0: the system does not tell
};

// A function of MPI's other than a blocking collective, and the time that the rank spent in it.
struct TimedFunction {
  char name[40];       // MPI_Sendrecv
  std::uint32_t kind;  // papaya::MpiKind
  std::uint32_t reserved;
  std::uint64_t calls;
  std::uint64_t ticks;
};
static_assert(sizeof(TimedFunction) == 64);

// What the thread of an event did between the collective call before and this one, if it called a timed function
// meanwhile. Event n has entry n & (interval_capacity - 1), if `commit` is the event's.
struct Interval {
  std::uint64_t mpi_ticks;      // in timed functions
  std::uint64_t longest_ticks;  // its longest time outside MPI
  std::uint32_t longest_site;   // of the call that ended it: number of a CallSite; 0: the event's own, or not known
  std::uint32_t calls;          // of timed functions
  std::uint32_t commit;
  std::uint32_t waited_for;  // in messages, for which rank longest; packed as below; 0: not known
};
static_assert(sizeof(Interval) == 32);

// A rank of MPI_COMM_WORLD, plus 1, in the low 24 bits, and above them the share of `mpi_ticks` in 255ths, rounded up.
constexpr std::uint32_t waited_for(std::int32_t rank, std::uint64_t ticks, std::uint64_t mpi_ticks) {
  if (rank < 0 || rank >= 0xffffff || ticks == 0 || ticks > mpi_ticks) return 0;
  const double share = static_cast<double>(ticks) / static_cast<double>(mpi_ticks);
  return static_cast<std::uint32_t>(rank + 1) | static_cast<std::uint32_t>(share * 254 + 1) << 24;
}

// How long the process was in a phase, without those inside it: from entering it, or leaving one inside it, until the
// next such change; of phase 0, outside of all, from MPI_Init on and until MPI_Finalize. Brought up to date at such
// changes; all zero if the program names no phase.
struct PhaseTime {
  std::uint64_t entered;  // times; of phase 0: none
  std::uint64_t ticks;
  std::uint64_t mpi_ticks;  // of them in MPI: in collectives and in timed functions, those that returned meanwhile
};

// An algorithm that was tried (PAPAYA_ADAPT), as of the last trial.
struct TriedAlgorithm {
  std::uint32_t algorithm;  // its number; 0: native
  std::uint32_t state;      // TriedState
  std::uint64_t median_ns;  // what a call takes, where it was measured
  std::uint32_t samples;    // calls measured
  std::uint32_t reserved;
};

enum class TriedState : std::uint32_t { kept, slower, cannot_serve, not_measured };

// From a call on it served.
struct TrialChange {
  std::uint64_t ticks;  // when
  std::uint64_t calls;  // of this row, before
  std::uint32_t algorithm;
  std::uint32_t before;  // that served until then
};

// From a call on the pattern of arrivals is another.
struct ArrivalsChange {
  std::uint64_t ticks;
  std::uint64_t calls;     // as in TrialChange
  std::int32_t straggler;  // rank in the communicator, where arrivals are persistent; else below 0
  std::uint32_t pattern;   // 1 balanced, 2 persistent, 3 rotating, 4 drifting, 5 random
};

// What was tried in the calls of one collective and class of sizes on one communicator, and how its ranks arrived; in
// the record of its rank 0.
inline constexpr std::uint64_t trial_capacity = 64;
inline constexpr std::size_t tried_capacity = 12;
inline constexpr std::size_t trial_change_capacity = 4;
struct TrialRow {
  std::uint64_t communicator;
  std::uint64_t calls;     // until the last trial ended, or the last change
  std::uint64_t spent_ns;  // lost by trying, a rank
  std::uint32_t trials;    // 0: the first has not ended
  std::uint32_t changes;   // number n is in change[n % trial_change_capacity], the last ones
  std::uint32_t in_use;    // algorithm, since then
  std::uint32_t tried_count;
  std::uint8_t collective;
  std::uint8_t size_class;         // of more than 2^(size_class-1) bytes, up to 2^size_class; 0: up to one
  std::uint16_t call_site;         // number of the CallSite, of calls of one place; 0: of all that are not told apart
  std::uint32_t arrivals_changes;  // as changes, of arrivals[]
  TriedAlgorithm tried[tried_capacity];
  TrialChange change[trial_change_capacity];
  ArrivalsChange arrivals[trial_change_capacity];
};
static_assert(sizeof(TrialRow) == 528);

struct Header {
  char magic[8];
  std::uint32_t version;
  std::uint32_t endian_mark;
  std::uint32_t header_bytes;  // sizeof(Header)
  std::uint32_t event_bytes;   // sizeof(Event)
  std::uint64_t totals_offset;
  std::uint64_t communicators_offset;
  std::uint64_t communicator_capacity;
  std::uint64_t communicator_count;
  std::uint64_t events_offset;
  std::uint64_t event_capacity;  // a power of two
  std::uint64_t event_count;     // events begun in the run; the ring holds the last min(count, capacity)

  std::int32_t rank;  // in MPI_COMM_WORLD
  std::int32_t ranks;
  std::int32_t node;  // node index, in the order of each node's lowest rank
  std::int32_t nodes;
  std::int32_t node_rank;
  std::int32_t node_ranks;
  std::int32_t cores;         // this rank may run on
  std::int32_t thread_level;  // MPI_THREAD_*, as provided
  std::int64_t process;       // pid
  std::uint32_t ending;       // Ending
  std::int32_t abort_code;

  // ns = (ticks - begin_ticks) * ns_per_tick on the node's common clock; begin_* agree for all ranks of one node.
  double ns_per_tick;
  std::uint64_t begin_ticks;         // node clock when recording was set up on this node (common origin)
  std::int64_t begin_unix_ns;        // wall clock at begin_ticks
  std::uint64_t init_ticks;          // this rank left MPI_Init
  std::uint64_t end_ticks;           // this rank entered MPI_Finalize or MPI_Abort; 0 while running
  ClockOffset clock[2];              // at init, at finalize
  Alpha alpha[alpha_capacity];       // ascending sizes; bytes 0 ends the list
  std::uint64_t lost_events;         // overwritten in the ring (event_count - capacity), for other tools' comfort
  std::uint64_t lost_communicators;  // did not fit the table

  char host[name_bytes];
  char mpi[2 * name_bytes];
  char papaya_version[name_bytes];
  char program[4 * name_bytes];
  char command[16 * name_bytes];
  char reason_names[reason_capacity][name_bytes];

  std::uint64_t modules_offset;
  std::uint64_t module_count;
  std::uint64_t frames_offset;
  std::uint64_t frame_count;
  std::uint64_t call_sites_offset;
  std::uint64_t call_site_count;
  std::uint64_t lost_call_sites;   // did not fit the table
  std::uint64_t asked;             // times the process got SIGUSR1
  std::uint64_t unrecorded_calls;  // made while the program had switched recording off
  std::uint64_t node_board_offset;
  std::uint64_t node_calls_offset;
  std::uint64_t node_calls_capacity;
  std::uint64_t node_calls_given_up;  // not compared: a rank arrived too late for that, or has not published the call
  std::uint64_t phase_count;
  char phase_names[phase_capacity][name_bytes];
  std::uint64_t algorithms_offset;
  std::uint64_t algorithm_count;
  char reason_ids[reason_capacity][id_bytes];  // by which a reader recognises reasons; their names are for people
  // What follows is not in the headers of all records of this version: header_bytes tells.
  Usage usage;
  std::uint64_t timed_offset;
  std::uint64_t timed_count;  // 0: other calls than collectives were not timed
  std::uint64_t intervals_offset;
  std::uint64_t interval_capacity;  // a power of two, or 0
  std::uint64_t stacks_offset;
  PhaseTime phase_times[phase_capacity];
  std::uint64_t stacks_ticks;      // when the stacks were last taken; 0: never
  std::uint64_t unrecorded_ticks;  // for which the program had switched recording off,
  std::uint64_t unrecorded_since;  // and when it did so last, if it has not switched it on again; 0: it has
  std::uint64_t difference_count;  // may exceed the capacity: then the others are not there
  Difference differences[difference_capacity];
  std::uint64_t trials_offset;
  std::uint64_t trial_count;  // may exceed the capacity: then the others are not there
  Difference further_differences[further_difference_capacity];  // those for which the table above has no room
  std::uint32_t collectives;                                    // rows of the totals, and counts of an algorithm; 0: 17
  std::uint32_t forms;                                          // of which the totals tell; 0: 3
};
inline constexpr std::uint32_t least_header_bytes = offsetof(Header, usage);
// Of records whose header does not tell.
inline constexpr std::uint32_t first_collectives = 17;
inline constexpr std::uint32_t first_forms = 3;

inline constexpr std::uint64_t totals_offset = 12288;
static_assert(sizeof(Header) <= totals_offset);
inline constexpr std::uint64_t communicators_offset = 32768;
static_assert(totals_offset + sizeof(Totals) <= communicators_offset);
inline constexpr std::uint64_t communicator_capacity = 1024;
inline constexpr std::uint64_t modules_offset = 139264;
static_assert(communicators_offset + communicator_capacity * sizeof(Communicator) <= modules_offset);
inline constexpr std::uint64_t module_capacity = 64;
inline constexpr std::uint64_t call_sites_offset = modules_offset + module_capacity * sizeof(Module);
inline constexpr std::uint64_t call_site_capacity = 1024;
inline constexpr std::uint64_t frames_offset = call_sites_offset + call_site_capacity * sizeof(CallSite);
inline constexpr std::uint64_t frame_capacity = 4096;
inline constexpr std::uint64_t node_board_offset = 233472;
static_assert(frames_offset + frame_capacity * sizeof(Frame) <= node_board_offset);
inline constexpr std::uint64_t node_calls_offset = node_board_offset + sizeof(NodeBoard);
inline constexpr std::uint64_t node_calls_capacity = 2048;
inline constexpr std::uint64_t events_offset = 630784;  // next page after them
static_assert(node_calls_offset + node_calls_capacity * sizeof(NodeCalls) <= events_offset);
static_assert(node_board_offset % 4096 == 0 && events_offset % 4096 == 0);
inline constexpr std::uint64_t event_capacity = 1u << 15;  // 2 MiB of events in summary mode

// Behind the ring.
constexpr std::uint64_t algorithms_offset(std::uint64_t events) {
  return events_offset + events * sizeof(Event);
}
// And behind that table.
inline constexpr std::uint64_t interval_capacity = event_capacity;
inline constexpr std::uint64_t most_timed = 512;  // functions
constexpr std::uint64_t timed_offset(std::uint64_t events, std::uint64_t algorithms) {
  return (algorithms_offset(events) + algorithms * sizeof(Algorithm) + 63) & ~std::uint64_t{63};
}
constexpr std::uint64_t intervals_offset(std::uint64_t events, std::uint64_t algorithms, std::uint64_t functions) {
  return timed_offset(events, algorithms) + functions * sizeof(TimedFunction);
}
// On a page of its own, since others map it to ask.
constexpr std::uint64_t stacks_offset(std::uint64_t events, std::uint64_t algorithms, std::uint64_t functions) {
  const std::uint64_t end =
      intervals_offset(events, algorithms, functions) + (functions == 0 ? 0 : interval_capacity * sizeof(Interval));
  return (end + 4095) & ~std::uint64_t{4095};
}
constexpr std::uint64_t trials_offset(std::uint64_t events, std::uint64_t algorithms, std::uint64_t functions) {
  return (stacks_offset(events, algorithms, functions) + sizeof(Stacks) + 63) & ~std::uint64_t{63};
}
constexpr std::uint64_t file_bytes(std::uint64_t events, std::uint64_t algorithms, std::uint64_t functions) {
  return trials_offset(events, algorithms, functions) + trial_capacity * sizeof(TrialRow);
}

}  // namespace papaya::trace
