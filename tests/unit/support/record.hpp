// Synthetic runs: per-rank records with chosen arrivals, as bytes or as files of a temporary folder.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/mpi_kind.hpp"
#include "profiler/record/format.hpp"
#include "profiler/report/report.hpp"

namespace papaya::support {

inline bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

inline constexpr std::uint64_t world_id = 1;
// Ticks begin here, so that a reader that forgets the origin shows.
inline constexpr std::uint64_t origin_ticks = 1'000'000;

// One rank's record. Times are ns on its node's clock since its origin; a tick is half a nanosecond.
struct Record {
  Record(int rank, int ranks, int node = 0, int nodes = 1);

  static std::uint64_t ticks(double ns);
  static std::string file_name(int rank);

  void add_communicator(std::uint64_t id, int size, int rank, const std::string& name);
  // Appends an event (exit_ns < 0: still inside) and counts it in the totals and the communicator's calls.
  trace::Event& add_call(Collective collective, std::uint64_t call, double arrival_ns, double exit_ns,
                         std::uint64_t bytes = 8, int root = -1, std::uint64_t communicator = world_id,
                         Form form = Form::blocking);
  // A call site of one frame or more, innermost first, each a module and an offset. Returns its number, for an event.
  std::uint32_t add_call_site(const std::vector<std::pair<std::string, std::uint64_t>>& frames_of_it);
  void finalize(double end_ns);

  // Other functions of MPI's are timed, and this rank called one so often, for so long in all.
  void add_timed(const std::string& name, MpiKind kind, std::uint64_t calls, double ns);
  // Of the time before the last event this much was in such functions, and the longest time outside them ended with a
  // call from this site.
  void add_interval(double mpi_ns, std::uint32_t longest_site = 0, std::int32_t waited_for = -1);

  // The .papz beside it: the first `count` events in blocks of so many, finished or as when the process was killed.
  std::vector<std::uint8_t> spilled(std::size_t count, std::size_t in_block, bool finished = true) const;

  // The file: its tables at the places the recorder uses, or, for speed, one right after the other.
  std::vector<std::uint8_t> bytes(bool compact = false) const;

  // The same as papaya wrote it that knew 17 collectives and 3 forms, which its header did not tell.
  std::vector<std::uint8_t> bytes_of_17_collectives() const;

  // The same as papaya wrote them in format version 3 of the file, version 1 of the .papz.
  std::vector<std::uint8_t> bytes_of_version_3(bool compact = false) const;
  std::vector<std::uint8_t> spilled_of_version_1(std::size_t count, std::size_t in_block) const;

  trace::Header header{};
  trace::Totals totals{};
  std::vector<trace::Algorithm> algorithms;
  std::vector<trace::Communicator> communicators;
  std::vector<trace::Event> events;
  std::vector<trace::Module> modules;
  std::vector<trace::Frame> frames;
  std::vector<trace::CallSite> call_sites;
  std::vector<trace::NodeCalls> node_calls;
  std::vector<trace::TimedFunction> timed;
  std::vector<trace::Interval> intervals;
  std::vector<trace::TrialRow> trials;
  std::uint64_t capacity = 16;

 private:
  std::size_t put_first_sizes(std::uint8_t* to) const;
  std::vector<std::uint8_t> bytes_with(bool compact, std::size_t header_bytes, std::size_t totals_bytes) const;
};

// `ranks` records on one node with MPI_COMM_WORLD in each.
std::vector<Record> records(int ranks);

// A folder that goes away with this object.
class Folder {
 public:
  Folder();
  ~Folder();
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  const std::string& path() const { return path_; }
  void write(const std::string& name, const std::vector<std::uint8_t>& bytes) const;
  void write(const std::string& name, const std::string& text) const;
  void write(const std::vector<Record>& records) const;
  std::vector<std::uint8_t> bytes_of(const std::string& name) const;
  std::string read(const std::string& name) const;
  bool has(const std::string& name) const;

 private:
  std::string path_;
};

// Through files of a folder, as a user's run is.
report::Run load(const std::vector<Record>& records);
report::Report analyse(const std::vector<Record>& records);

const report::CollectiveFigures& figures_of(const report::Analysis& analysis, const std::string& name);
const report::RankFigures& rank_of(const report::Analysis& analysis, int rank);
bool has_note(const report::Report& analysis, const std::string& part);

}  // namespace papaya::support
