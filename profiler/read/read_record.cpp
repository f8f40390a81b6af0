#include "profiler/read/read_record.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/mpi_kind.hpp"
#include "base/old_names.hpp"
#include "base/reason.hpp"
#include "base/version.hpp"
#include "profiler/read/read_spill.hpp"
#include "profiler/read/read_totals.hpp"
#include "profiler/read/read_trials.hpp"
#include "profiler/read/version_3.hpp"

namespace papaya::report {
namespace {

// No clock ticks slower than a second or faster than a femtosecond; outside, the field is damaged.
constexpr double fastest_ns_per_tick = 1e-6;
constexpr double slowest_ns_per_tick = 1e9;
constexpr std::size_t events_per_read = 32768;
constexpr std::uint64_t latest_events = 1024;
constexpr std::uint64_t most_algorithms = 1 << 16;  // bounds the memory that a damaged file can ask for
constexpr std::uint64_t most_intervals = 1 << 20;   // as does this

[[noreturn]] void reject_damaged(std::string_view what) {
  throw Rejected{Trouble::damaged, fmt::format("is damaged ({}) and is left out", what)};
}

void read_or_reject(const Source& source, std::uint64_t offset, void* to, std::size_t count) {
  if (!source.read(offset, to, count)) {
    throw Rejected{Trouble::unreadable, "could not be read to its end and is left out"};
  }
}

// Where a table ends. A product or sum that overflows cannot come from a writer.
std::uint64_t end_of(std::uint64_t offset, std::uint64_t count, std::uint64_t item_bytes, std::string_view table) {
  std::uint64_t bytes = 0;
  std::uint64_t end = 0;
  if (__builtin_mul_overflow(count, item_bytes, &bytes) || __builtin_add_overflow(offset, bytes, &end)) {
    reject_damaged(fmt::format("impossible size of its {}", table));
  }
  // Older records have a shorter header, and their first table begins where today's has not ended.
  if (offset < trace::least_header_bytes) reject_damaged(fmt::format("impossible position of its {}", table));
  return end;
}

template <std::size_t bytes>
bool ends_in_bounds(const char (&field)[bytes]) {
  return std::memchr(field, '\0', bytes) != nullptr;
}

// Returns the version.
std::uint32_t check_beginning(const Source& source) {
  struct {
    char magic[8];
    std::uint32_t version;
    std::uint32_t endian_mark;
  } begin{};
  static_assert(sizeof(begin) == 16);
  if (source.bytes() == 0) throw Rejected{Trouble::cut_short, "is empty and is left out"};
  const std::size_t there = std::min<std::uint64_t>(source.bytes(), sizeof(begin));
  read_or_reject(source, 0, &begin, there);
  const std::size_t magic_there = std::min(there, sizeof(trace::magic));
  if (std::all_of(begin.magic, begin.magic + magic_there, [](char c) { return c == '\0'; })) {
    throw Rejected{Trouble::not_papaya, "holds no record: its process did not get through MPI_Init"};
  }
  if (std::memcmp(begin.magic, trace::magic, magic_there) != 0) {
    throw Rejected{Trouble::not_papaya, "is not a papaya record and is left out"};
  }
  if (there < sizeof(begin)) {
    throw Rejected{Trouble::cut_short, fmt::format("is cut short after {} bytes and is left out", source.bytes())};
  }
  if (begin.endian_mark == __builtin_bswap32(trace::endian_mark)) {
    throw Rejected{Trouble::other_version,
                   "was written on a machine of the other byte order: make the report on a machine like that one"};
  }
  if (begin.endian_mark != trace::endian_mark) reject_damaged("no byte order mark");
  if (begin.version != trace::format_version && begin.version != version_3::format_version) {
    throw Rejected{Trouble::other_version,
                   fmt::format("has format version {}, but this papaya {} reads versions {} and {}: use the papaya "
                               "command that belongs to the library that wrote it",
                               begin.version, PAPAYA_VERSION, version_3::format_version, trace::format_version)};
  }
  return begin.version;
}

void check_header(const trace::Header& header, std::uint64_t file_bytes) {
  const bool is_old = header.version == version_3::format_version;
  if (is_old ? header.header_bytes != version_3::header_bytes
             : header.header_bytes < trace::least_header_bytes || header.header_bytes > sizeof(trace::Header))
    reject_damaged("wrong header size");
  if (header.event_bytes != sizeof(trace::Event)) reject_damaged("wrong event size");
  if (!std::has_single_bit(header.event_capacity)) reject_damaged("event capacity not a power of two");
  const TotalsShape shape(header);
  if (!shape.is_known()) reject_damaged("more collectives than this papaya knows");
  const std::uint64_t needed = std::max(
      {end_of(header.totals_offset, 1, is_old ? version_3::totals_bytes : shape.totals_bytes(), "totals"),
       is_old
           ? 0
           : end_of(header.algorithms_offset, header.algorithm_count, shape.algorithm_bytes(), "table of algorithms"),
       end_of(header.communicators_offset, header.communicator_capacity, sizeof(trace::Communicator),
              "communicator table"),
       end_of(header.modules_offset, header.module_count, sizeof(trace::Module), "table of modules"),
       end_of(header.frames_offset, header.frame_count, sizeof(trace::Frame), "table of frames"),
       end_of(header.call_sites_offset, header.call_site_count, sizeof(trace::CallSite), "table of call sites"),
       end_of(header.node_calls_offset, header.node_calls_capacity, sizeof(trace::NodeCalls),
              "table of the node's calls"),
       end_of(header.events_offset, header.event_capacity, sizeof(trace::Event), "event ring")});
  if (needed > file_bytes) {
    throw Rejected{Trouble::cut_short, fmt::format("is cut short ({} of {} bytes; was the disk full?) and is left out",
                                                   file_bytes, needed)};
  }
  if (header.ranks == 0)
    throw Rejected{Trouble::not_papaya, "holds no record: its process did not get through MPI_Init"};
  if (header.ranks < 1 || header.rank < 0 || header.rank >= header.ranks) reject_damaged("impossible rank");
  if (header.nodes < 1 || header.nodes > header.ranks || header.node < 0 || header.node >= header.nodes) {
    reject_damaged("impossible node");
  }
  if (!(header.ns_per_tick >= fastest_ns_per_tick && header.ns_per_tick <= slowest_ns_per_tick)) {
    reject_damaged("impossible clock rate");
  }
  if (header.ending > static_cast<std::uint32_t>(trace::Ending::aborted)) reject_damaged("impossible ending");
  bool strings_end = ends_in_bounds(header.host) && ends_in_bounds(header.mpi) &&
                     ends_in_bounds(header.papaya_version) && ends_in_bounds(header.program) &&
                     ends_in_bounds(header.command);
  for (const auto& name : header.reason_names) strings_end = strings_end && ends_in_bounds(name);
  for (const auto& id : header.reason_ids) strings_end = strings_end && ends_in_bounds(id);
  for (const auto& name : header.phase_names) strings_end = strings_end && ends_in_bounds(name);
  if (!strings_end) reject_damaged("a text without end");
  if (header.phase_count < 1 || header.phase_count > trace::phase_capacity)
    reject_damaged("an impossible number of phases");
  if (header.algorithm_count < 1 || header.algorithm_count > most_algorithms)
    reject_damaged("an impossible number of algorithms");
}

// An older record has the names of algorithms and the sentences of reasons as they were then.
AlgorithmNames current_names(std::span<const trace::Algorithm> algorithms) {
  AlgorithmNames names;
  for (const trace::Algorithm& row : algorithms) {
    if (!ends_in_bounds(row.name)) reject_damaged("a text without end");
    names.push_back(clean_text(current_name(row.name)));
  }
  return names;
}

void use_current_reasons(trace::Header& header) {
  for (auto& field : header.reason_names) {
    const std::string_view text = current_reason_name(field);
    if (text.data() == field) continue;
    std::memset(field, 0, sizeof(field));
    std::memcpy(field, text.data(), std::min(text.size(), sizeof(field) - 1));
  }
}

void read_events(const Source& source, RankFile& file, Extent extent) {
  const RankHeader& header = file.header;
  const std::uint64_t capacity = header.event_capacity;
  const std::uint64_t wanted = extent == Extent::latest ? std::min(capacity, latest_events) : capacity;
  std::uint64_t number = header.event_count > wanted ? header.event_count - wanted : 0;
  file.overwritten_events = number;
  if (number > 0) file.gaps.push_back({0, number});
  if (is_streamed(extent)) return;
  while (number < header.event_count) {
    const std::uint64_t slot = number & (capacity - 1);
    const std::size_t chunk = std::min({header.event_count - number, capacity - slot, std::uint64_t{events_per_read}});
    std::size_t kept = file.events.size();
    file.events.resize(kept + chunk);
    trace::Event* const read = file.events.data() + kept;
    read_or_reject(source, header.events_offset + slot * sizeof(trace::Event), read, chunk * sizeof(trace::Event));
    for (std::size_t i = 0; i < chunk; ++i, ++number) {
      if (header.version == version_3::format_version) read[i] = version_3::event_of(read[i]);
      if (is_whole(read[i], number, header)) {
        file.events[kept++] = read[i];
      } else {
        ++file.skipped_events;
      }
    }
    file.events.resize(kept);
  }
}

template <typename Row>
std::vector<Row> read_table(const Source& source, std::uint64_t offset, std::uint64_t rows) {
  std::vector<Row> table(rows);
  read_or_reject(source, offset, table.data(), table.size() * sizeof(Row));
  return table;
}

}  // namespace

bool is_streamed(Extent extent) {
  return extent == Extent::streamed_rings || extent == Extent::streamed_all;
}

Frame frame_of(const trace::Frame& frame, std::span<const trace::Module> modules) {
  Frame read;
  read.offset = frame.offset;
  if (frame.module == 0 || frame.module > modules.size()) return read;
  const trace::Module& module = modules[frame.module - 1];
  read.module = clean_text({module.path, sizeof module.path});
  if (static_cast<trace::Language>(module.language) == trace::Language::python) {
    const std::string_view path(module.path, strnlen(module.path, sizeof module.path - 1));
    read.python = clean_text(std::string_view(module.path, sizeof module.path).substr(path.size() + 1));
  }
  for (std::uint32_t b = 0; b < std::min<std::size_t>(module.build_id_bytes, sizeof module.build_id); ++b)
    read.build_id += fmt::format("{:02x}", module.build_id[b]);
  return read;
}

namespace {

CallSites read_call_sites(const Source& source, const trace::Header& header) {
  if (header.module_count > trace::module_capacity || header.frame_count > trace::frame_capacity ||
      header.call_site_count > trace::call_site_capacity)
    reject_damaged("more call sites than fit");
  const auto modules = read_table<trace::Module>(source, header.modules_offset, header.module_count);
  const auto frames = read_table<trace::Frame>(source, header.frames_offset, header.frame_count);
  for (const trace::Module& module : modules)
    if (!ends_in_bounds(module.path) || module.build_id_bytes > sizeof module.build_id)
      reject_damaged("impossible module");
  CallSites sites;
  for (const auto& site : read_table<trace::CallSite>(source, header.call_sites_offset, header.call_site_count)) {
    if (site.frames == 0 || site.frames > trace::most_frames || site.first_frame > frames.size() ||
        site.frames > frames.size() - site.first_frame)
      reject_damaged("impossible call site");
    std::vector<Frame>& own = sites.emplace_back();
    for (std::uint32_t i = 0; i < site.frames; ++i) {
      const trace::Frame& frame = frames[site.first_frame + i];
      if (frame.module > modules.size()) reject_damaged("impossible module of a call site");
      own.push_back(frame_of(frame, modules));
    }
  }
  return sites;
}

void read_node_calls(const Source& source, const trace::Header& header, RankFile& file) {
  if (header.node_calls_capacity > trace::node_calls_capacity) reject_damaged("more rows of the node's calls than fit");
  file.node_calls = read_table<trace::NodeCalls>(source, header.node_calls_offset, header.node_calls_capacity);
  std::erase_if(file.node_calls, [](const trace::NodeCalls& row) { return row.used == 0; });
  file.node_calls.shrink_to_fit();
  for (trace::NodeCalls& row : file.node_calls) {
    // Of a job that runs on, calls may have been made since the header was read.
    constexpr std::uint64_t most_meanwhile = 1 << 24;
    const auto largest_sum = static_cast<double>(row.calls) * static_cast<double>(row.most_ticks);
    if (row.used != 1 || row.rank < 0 || row.rank >= header.ranks || row.collective >= collective_count ||
        row.size_class >= size_class_count || row.calls > header.event_count + most_meanwhile ||
        (header.ending != static_cast<std::uint32_t>(trace::Ending::running) &&
         static_cast<double>(row.imbalance_ticks) > 1.001 * largest_sum))
      reject_damaged("impossible calls of the node");
    // Of a job that runs on, the second may have been counted after the first was read.
    row.times_last = std::min(row.times_last, row.calls);
  }
}

// Where the tables end that not every record has.
void check_later_tables(const trace::Header& header, std::uint64_t file_bytes) {
  if (header.timed_count > trace::most_timed || header.interval_capacity > most_intervals ||
      (header.interval_capacity != 0 && !std::has_single_bit(header.interval_capacity)))
    reject_damaged("an impossible number of timed functions");
  std::uint64_t needed = 0;
  if (header.timed_count != 0)
    needed = std::max(
        end_of(header.timed_offset, header.timed_count, sizeof(trace::TimedFunction), "table of timed functions"),
        end_of(header.intervals_offset, header.interval_capacity, sizeof(trace::Interval), "table of intervals"));
  if (header.stacks_offset != 0)
    needed = std::max(needed, end_of(header.stacks_offset, 1, sizeof(trace::Stacks), "call stacks"));
  needed = std::max(needed, end_of_trials(header));
  if (needed > file_bytes)
    throw Rejected{Trouble::cut_short, fmt::format("is cut short ({} of {} bytes; was the disk full?) and is left out",
                                                   file_bytes, needed)};
}

void read_timed(const Source& source, const trace::Header& header, RankFile& file, Extent extent) {
  if (header.timed_count == 0) return;
  file.timed = read_table<trace::TimedFunction>(source, header.timed_offset, header.timed_count);
  for (const trace::TimedFunction& row : file.timed)
    if (!ends_in_bounds(row.name) || row.kind >= mpi_kind_count) reject_damaged("impossible timed function");
  std::erase_if(file.timed, [](const trace::TimedFunction& row) { return row.calls == 0; });
  file.timed.shrink_to_fit();
  if (file.timed.empty() || extent == Extent::latest || header.interval_capacity == 0) return;
  file.has_interval_ring = is_streamed(extent);
  if (file.has_interval_ring) return;
  file.intervals = read_table<trace::Interval>(source, header.intervals_offset, header.interval_capacity);
  const bool is_used = std::any_of(file.intervals.begin(), file.intervals.end(),
                                   [](const trace::Interval& interval) { return interval.commit != 0; });
  if (!is_used) file.intervals = {};
  for (trace::Interval& interval : file.intervals)
    if (interval.longest_site > file.call_sites->size()) interval.longest_site = 0;
}

// What comes before the tables that both versions have alike.
struct Head {
  trace::Header header{};
  trace::Totals totals{};
  std::vector<trace::Algorithm> algorithms;
};

Head read_head(const Source& source) {
  Head head;
  trace::Header& header = head.header;
  read_or_reject(source, 0, &header, sizeof header);
  // What an impossible size means check_header says.
  if (header.header_bytes < sizeof header)
    std::memset(reinterpret_cast<char*>(&header) + header.header_bytes, 0, sizeof header - header.header_bytes);
  check_header(header, source.bytes());
  check_later_tables(header, source.bytes());
  const TotalsShape shape(header);
  std::vector<std::byte> bytes(shape.totals_bytes());
  read_or_reject(source, header.totals_offset, bytes.data(), bytes.size());
  head.totals = totals_of(shape, bytes.data());
  bytes.resize(header.algorithm_count * shape.algorithm_bytes());
  read_or_reject(source, header.algorithms_offset, bytes.data(), bytes.size());
  head.algorithms = algorithms_of(shape, bytes.data(), header.algorithm_count);
  return head;
}

Head read_head_of_version_3(const Source& source) {
  Head head;
  std::vector<std::byte> bytes(version_3::header_bytes);
  read_or_reject(source, 0, bytes.data(), bytes.size());
  head.header = version_3::header_of(bytes.data());
  check_header(head.header, source.bytes());
  head.algorithms = version_3::names_of(bytes.data());
  bytes.resize(version_3::totals_bytes);
  read_or_reject(source, head.header.totals_offset, bytes.data(), bytes.size());
  head.totals = version_3::totals_of(bytes.data(), head.algorithms);
  return head;
}

}  // namespace

RankFile read_record(Run& run, const std::string& name, const Source& source, Extent extent) {
  RankFile file;
  file.name = name;
  const bool is_old = check_beginning(source) == version_3::format_version;
  if (source.bytes() < (is_old ? version_3::header_bytes : sizeof(trace::Header))) {
    throw Rejected{Trouble::cut_short, fmt::format("is cut short after {} bytes and is left out", source.bytes())};
  }
  Head head = is_old ? read_head_of_version_3(source) : read_head(source);
  trace::Header& header = head.header;
  use_current_reasons(header);
  file.header = RankHeader(header);
  file.texts = run.texts.of(HeaderTexts(header));
  file.totals = Packed(head.totals);
  file.algorithms = run.algorithms.of(current_names(head.algorithms));
  file.algorithm_calls = calls_of(head.algorithms);
  // The count runs ahead of the table for a moment when that is full, and of a row while that is being
  // filled.
  file.communicators = read_table<trace::Communicator>(
      source, header.communicators_offset, std::min(header.communicator_count, header.communicator_capacity));
  std::erase_if(file.communicators, [](const trace::Communicator& row) { return row.id == 0; });
  for (const auto& communicator : file.communicators) {
    if (!ends_in_bounds(communicator.name)) reject_damaged("a text without end");
    if (communicator.size < 1 || communicator.rank < 0 || communicator.rank >= communicator.size) {
      reject_damaged("impossible rank in a communicator");
    }
  }
  file.call_sites = run.call_sites.of(read_call_sites(source, header));
  read_node_calls(source, header, file);
  read_events(source, file, extent);
  read_timed(source, header, file, extent);
  read_trials(source, header, file);
  return file;
}

void add_problem(Run& run, Trouble trouble, const std::string& file, std::string_view reason) {
  run.problems.push_back({trouble, file, fmt::format("{} {}.", file, reason)});
}

bool is_whole(const trace::Event& event, std::uint64_t number, const RankHeader& header) {
  return event.commit == static_cast<std::uint32_t>(number + 1) && event.collective < collective_count &&
         event.form < form_count && event.algorithm < header.algorithm_count && event.reason < trace::reason_capacity &&
         event.call_site <= header.call_site_count && event.phase < header.phase_count &&
         event.arrival_ticks >= header.begin_ticks &&
         (event.exit_ticks == 0 || event.exit_ticks >= event.arrival_ticks);
}

const trace::Interval* interval_of(const RankFile& file, const trace::Event& event) {
  if (file.intervals.empty() || event.commit == 0) return nullptr;
  const trace::Interval& interval = file.intervals[(event.commit - 1) & (file.intervals.size() - 1)];
  return interval.commit == event.commit ? &interval : nullptr;
}

std::string algorithm_name(const RankFile& file, std::size_t number) {
  return number < file.algorithms->size() ? (*file.algorithms)[number] : std::string();
}

}  // namespace papaya::report
