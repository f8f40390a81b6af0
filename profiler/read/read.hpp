// Reads the folder of a run: the per-rank files rank-NNNNN.pap and papaya.cfg. The files may be damaged, cut
// short, of another version or of another run: whatever their bytes, loading succeeds, says what is wrong
// with which file and goes on with the others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "profiler/read/packed.hpp"
#include "profiler/read/rank_header.hpp"
#include "profiler/read/shared.hpp"
#include "profiler/record/approx_format.hpp"
#include "profiler/record/format.hpp"
#include "profiler/record/spill_format.hpp"
#include "profiler/record/weak_format.hpp"

namespace papaya::report {

// The bytes of one per-rank file, so that files and memory are read by the same code.
class Source {
 public:
  Source() = default;
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;
  virtual ~Source() = default;
  virtual std::uint64_t bytes() const = 0;
  // Copies `count` bytes from `offset`; false if they could not be read.
  virtual bool read(std::uint64_t offset, void* to, std::size_t count) const = 0;
};

class MemorySource final : public Source {
 public:
  explicit MemorySource(std::span<const std::uint8_t> data) : data_(data) {}
  std::uint64_t bytes() const override { return data_.size(); }
  bool read(std::uint64_t offset, void* to, std::size_t count) const override;

 private:
  std::span<const std::uint8_t> data_;
};

// Where a call returns to, in a file that code came from.
struct Frame {
  std::string module;  // its path; empty: not known, and the offset is an address of the process
  std::uint64_t offset = 0;
  std::string build_id;  // hexadecimal
  std::string
      python;  // the function, if it is written in Python: then the module is its source, and the offset the line
  bool operator==(const Frame&) const = default;
  auto operator<=>(const Frame&) const = default;
};

// Events that are missing from a record, before one of its events (or at its end).
struct Gap {
  std::size_t before = 0;
  std::uint64_t events = 0;
};

// A rank's calls of weakly consistent collectives.
struct WeakCalls {
  std::vector<trace::WeakRow> rows;
  std::vector<trace::WeakEvent> events;  // those still there and whole, in the order they began; their call sites and
                                         // phases are the record's
  std::uint64_t begun = 0;
  std::uint64_t overwritten = 0;       // of them, older than the ring holds
  std::uint64_t lost_collectives = 0;  // for which the file had no room
};

// Number n of the events is the n-1st, innermost frame first.
using CallSites = std::vector<std::vector<Frame>>;
// By the number that events have.
using AlgorithmNames = std::vector<std::string>;

// Calls that ran by an algorithm.
struct AlgorithmCalls {
  std::uint32_t algorithm;  // its number
  std::uint8_t collective;
  Form form;  // blocking or nonblocking
  std::uint64_t calls;
};

// What one rank recorded. Every count, index and string in here has been checked. There are as many as the job has
// ranks: what is equal on most of them they share.
struct RankFile {
  std::string name;
  RankHeader header;
  std::shared_ptr<const HeaderTexts> texts;
  Packed<trace::Totals> totals;
  std::shared_ptr<const AlgorithmNames> algorithms;
  std::vector<AlgorithmCalls> algorithm_calls;  // those that there are, by number
  std::vector<trace::Communicator> communicators;
  std::shared_ptr<const CallSites> call_sites;
  std::vector<trace::NodeCalls> node_calls;  // calls that this rank compared for its node
  std::vector<trace::TimedFunction> timed;   // those called
  std::vector<trace::Interval> intervals;    // the ring of them; empty: there are none
  std::string ring_path;                     // where the ring stays until an EventReader reads it; empty: in `events`
  bool has_interval_ring = false;            // there, beside `intervals`
  std::vector<trace::Event> events;          // those still there and whole, in the order they began
  std::vector<Gap> gaps;                     // in `events`, ascending
  std::uint64_t overwritten_events = 0;      // in all gaps: older than the ring holds, and not spilled
  std::uint64_t unread_events = 0;           // of these, spilled but not read
  std::uint64_t skipped_events = 0;          // torn or damaged
  std::uint64_t spilled_events = 0;          // in the .papz that are there and whole
  bool is_spilled = false;                   // there is a .papz, whose ending was:
  trace::spill::State spill_state = trace::spill::State::open;
  std::uint32_t spill_error = 0;        // errno
  std::uint64_t spill_limit = 0;        // bytes
  std::vector<trace::TrialRow> trials;  // of communicators whose rank 0 it is
  WeakCalls weak;
  std::vector<trace::ApproxRow> approx;  // a rule of PAPAYA_APPROX each
};

enum class Trouble : std::uint8_t { unreadable, not_papaya, cut_short, other_version, damaged, other_run };

struct Problem {
  Trouble trouble;
  std::string file;
  std::string sentence;  // names the file, ends with a full stop
};

struct Setting {
  std::string name;
  std::string value;
  bool is_default = false;
};

struct RankRange {
  std::int32_t first;
  std::int32_t last;
};

struct Run {
  std::string folder;
  std::vector<RankFile> files;  // by rank, each rank at most once
  std::vector<Problem> problems;
  std::vector<Setting> settings;
  std::int32_t ranks = 0;  // of the job, as the headers say
  std::int32_t nodes = 0;
  std::vector<RankRange> missing;  // ranks without a usable file
  std::uint64_t missing_ranks = 0;
  std::uint64_t unwanted_ranks = 0;  // PAPAYA_RANKS leaves them out: they are not missing

  Shared<HeaderTexts> texts;
  Shared<AlgorithmNames> algorithms;
  Shared<CallSites> call_sites;
};

// Called with what is done and what there is: files that were loaded, or events that were read.
using Progress = std::function<void(std::size_t, std::size_t)>;

// Of each rank the latest thousand events, what its ring holds, or also what was spilled, which may be much. Streamed:
// events stay in their files until an EventReader reads them.
enum class Extent : std::uint8_t { latest, rings, all, streamed_rings, streamed_all };

Run load_run(const std::string& folder, const Progress& progress = {}, Extent extent = Extent::all) noexcept;

// The steps of load_run, for records that are not files of a folder: add each, and after it what it spilled, then
// finish once. False: the record is left out.
bool add_record(Run& run, const std::string& name, const Source& source, Extent extent = Extent::all);
void add_spilled(Run& run, const std::string& name, const Source& source, Extent extent = Extent::all);
// The same with its calls of weakly consistent collectives.
void add_weak(Run& run, const std::string& name, const Source& source);
// And with what has become of the rules of PAPAYA_APPROX.
void add_approx(Run& run, const std::string& name, const Source& source);
void finish_run(Run& run);

// What the event's thread did before it; null: it called no timed function, or that is no longer known.
const trace::Interval* interval_of(const RankFile& file, const trace::Event& event);

// Of a record that has these modules.
Frame frame_of(const trace::Frame& frame, std::span<const trace::Module> modules);

// Of an event's algorithm; empty if it is not in the table.
std::string algorithm_name(const RankFile& file, std::size_t number);

// The text of a fixed-size field up to its NUL, as valid UTF-8 without control characters.
std::string clean_text(std::string_view field);

// "0-3, 7"; after `most` ranges the rest is only counted.
std::string to_text(std::span<const RankRange> ranges, std::size_t most = 12);

// Ascending ranks as ranges.
std::vector<RankRange> to_ranges(std::span<const std::int32_t> ranks);

}  // namespace papaya::report
