#include "tests/unit/support/record.hpp"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <stdexcept>

#include "profiler/record/spill.hpp"

namespace papaya::support {
namespace {

constexpr double ns_per_tick = 0.5;

template <typename T>
void put(std::vector<std::uint8_t>& bytes, std::uint64_t offset, const T& value) {
  std::memcpy(bytes.data() + offset, &value, sizeof(value));
}

// An event as versions before 4 laid it out: a wide call site, then algorithm and reason in 8 bits each.
void narrow(std::uint8_t* event) {
  trace::Event today;
  std::memcpy(&today, event, sizeof today);
  const std::uint64_t call_site = today.call_site;
  std::memcpy(event + 40, &call_site, sizeof call_site);
  event[58] = static_cast<std::uint8_t>(today.algorithm);
  event[59] = static_cast<std::uint8_t>(today.reason);
}

}  // namespace

std::uint64_t Record::ticks(double ns) {
  return origin_ticks + static_cast<std::uint64_t>(ns / ns_per_tick + 0.5);
}

std::string Record::file_name(int rank) {
  char name[32];
  std::snprintf(name, sizeof(name), "rank-%05d.pap", rank);
  return name;
}

Record::Record(int rank, int ranks, int node, int nodes) {
  std::memcpy(header.magic, trace::magic, sizeof(trace::magic));
  header.version = trace::format_version;
  header.endian_mark = trace::endian_mark;
  header.header_bytes = sizeof(trace::Header);
  header.event_bytes = sizeof(trace::Event);
  header.rank = rank;
  header.ranks = ranks;
  header.node = node;
  header.nodes = nodes;
  header.ns_per_tick = ns_per_tick;
  header.phase_count = 1;
  header.begin_ticks = origin_ticks;
  header.begin_unix_ns = 1'700'000'000'000'000'000;
  header.init_ticks = ticks(0);
  header.collectives = collective_count;
  header.forms = form_count;
  const auto set = [](char* field, const std::string& text) { std::memcpy(field, text.c_str(), text.size() + 1); };
  set(header.host, "node" + std::to_string(node));
  set(header.mpi, "Open MPI 4.1.4");
  set(header.papaya_version, "0.1.0");
  set(header.program, "app");
  set(header.command, "./app --steps 10");
  algorithms.resize(2);
  set(algorithms[0].name, "native");
  set(algorithms[1].name, "flat");
  set(header.reason_names[1], "too large");
  set(header.reason_names[2], "device memory");
  set(header.reason_ids[0], "none");
  set(header.reason_ids[1], "too_large");
  set(header.reason_ids[2], "device_memory");
}

void Record::add_communicator(std::uint64_t id, int size, int rank, const std::string& name) {
  trace::Communicator communicator{};
  communicator.id = id;
  communicator.size = size;
  communicator.rank = rank;
  communicator.nodes = header.nodes;
  std::memcpy(communicator.name, name.c_str(), name.size() + 1);
  communicators.push_back(communicator);
}

trace::Event& Record::add_call(Collective collective, std::uint64_t call, double arrival_ns, double exit_ns,
                               std::uint64_t bytes, int root, std::uint64_t communicator, Form form) {
  trace::Event event{};
  event.arrival_ticks = ticks(arrival_ns);
  event.exit_ticks = exit_ns < 0 ? 0 : ticks(exit_ns);
  event.communicator = communicator;
  event.call = call;
  event.bytes = bytes;
  event.commit = static_cast<std::uint32_t>(events.size() + 1);
  event.root = root;
  event.collective = static_cast<std::uint8_t>(collective);
  event.form = static_cast<std::uint8_t>(form);
  events.push_back(event);
  header.event_count = events.size();
  for (auto& row : communicators) {
    if (row.id == communicator) row.calls = std::max(row.calls, call + 1);
  }
  if (exit_ns >= 0) {
    trace::Total& total = totals.by_size[index_of(collective)][static_cast<std::size_t>(form)]
                                        [static_cast<std::size_t>(size_class_of(bytes))];
    ++total.calls;
    total.bytes += bytes;
    total.ticks += event.exit_ticks - event.arrival_ticks;
  }
  return events.back();
}

std::uint32_t Record::add_call_site(const std::vector<std::pair<std::string, std::uint64_t>>& frames_of_it) {
  call_sites.push_back({static_cast<std::uint32_t>(frames.size()), static_cast<std::uint32_t>(frames_of_it.size())});
  for (const auto& [path, offset] : frames_of_it) {
    auto place = std::find_if(modules.begin(), modules.end(), [&](const auto& one) { return path == one.path; });
    if (place == modules.end() && !path.empty()) {
      trace::Module module{};
      module.build_id_bytes = 2;
      module.build_id[0] = 0xab;
      std::memcpy(module.path, path.c_str(), path.size() + 1);
      place = modules.insert(modules.end(), module);
    }
    frames.push_back({path.empty() ? 0 : static_cast<std::uint32_t>(place - modules.begin() + 1), 0, offset});
  }
  return static_cast<std::uint32_t>(call_sites.size());
}

void Record::finalize(double end_ns) {
  header.end_ticks = ticks(end_ns);
  header.ending = static_cast<std::uint32_t>(trace::Ending::finalized);
}

void Record::add_timed(const std::string& name, MpiKind kind, std::uint64_t calls, double ns) {
  trace::TimedFunction row{};
  std::memcpy(row.name, name.c_str(), name.size() + 1);
  row.kind = static_cast<std::uint32_t>(kind);
  row.calls = calls;
  row.ticks = static_cast<std::uint64_t>(ns / ns_per_tick);
  timed.push_back(row);
}

void Record::add_interval(double mpi_ns, std::uint32_t longest_site, std::int32_t waited_for) {
  trace::Interval interval{};
  interval.mpi_ticks = static_cast<std::uint64_t>(mpi_ns / ns_per_tick);
  interval.longest_site = longest_site;
  interval.calls = 1;
  interval.waited_for = trace::waited_for(waited_for, interval.mpi_ticks, interval.mpi_ticks);
  interval.commit = events.back().commit;
  intervals.push_back(interval);
}

std::vector<std::uint8_t> Record::bytes(bool compact) const {
  return bytes_with(compact, sizeof(trace::Header), sizeof(trace::Totals));
}

std::vector<std::uint8_t> Record::bytes_with(bool compact, std::size_t header_bytes, std::size_t totals_bytes) const {
  trace::Header h = header;
  h.event_capacity = capacity;
  h.communicator_count = communicators.size();
  h.communicator_capacity = compact ? std::max<std::uint64_t>(1, communicators.size()) : trace::communicator_capacity;
  // On the page after the header; `compact`: no table begins within the header of today, which may be longer than that
  // of the version.
  h.totals_offset = compact ? std::max(header_bytes, sizeof(trace::Header)) : (header_bytes + 4095) / 4096 * 4096;
  h.communicators_offset = compact ? h.totals_offset + totals_bytes : trace::communicators_offset;
  h.module_count = modules.size();
  h.frame_count = frames.size();
  h.call_site_count = call_sites.size();
  const std::uint64_t communicators_end =
      h.communicators_offset + h.communicator_capacity * sizeof(trace::Communicator);
  h.modules_offset = compact ? communicators_end : trace::modules_offset;
  h.frames_offset = compact ? h.modules_offset + modules.size() * sizeof(trace::Module) : trace::frames_offset;
  h.call_sites_offset = compact ? h.frames_offset + frames.size() * sizeof(trace::Frame) : trace::call_sites_offset;
  h.node_board_offset =
      compact ? h.call_sites_offset + call_sites.size() * sizeof(trace::CallSite) : trace::node_board_offset;
  // Nobody reads the board from a file.
  h.node_calls_offset = compact ? h.node_board_offset : trace::node_calls_offset;
  h.node_calls_capacity = compact ? node_calls.size() : trace::node_calls_capacity;
  h.events_offset = compact ? h.node_calls_offset + node_calls.size() * sizeof(trace::NodeCalls) : trace::events_offset;
  h.algorithms_offset = h.events_offset + capacity * sizeof(trace::Event);
  h.algorithm_count = algorithms.size();
  h.timed_offset = h.algorithms_offset + algorithms.size() * sizeof(trace::Algorithm);
  h.timed_count = timed.size();
  h.intervals_offset = h.timed_offset + timed.size() * sizeof(trace::TimedFunction);
  h.interval_capacity = timed.empty() ? 0 : capacity;
  const std::uint64_t intervals_end = h.intervals_offset + h.interval_capacity * sizeof(trace::Interval);
  h.trials_offset = trials.empty() ? 0 : intervals_end;
  h.trial_count = trials.size();
  std::vector<std::uint8_t> out(intervals_end + (trials.empty() ? 0 : trace::trial_capacity * sizeof(trace::TrialRow)));
  put(out, 0, h);
  put(out, h.totals_offset, totals);
  for (std::size_t i = 0; i < communicators.size(); ++i) {
    put(out, h.communicators_offset + i * sizeof(trace::Communicator), communicators[i]);
  }
  const auto put_table = [&](std::uint64_t offset, const auto& rows) {
    if (!rows.empty()) std::memcpy(out.data() + offset, rows.data(), rows.size() * sizeof rows[0]);
  };
  put_table(h.modules_offset, modules);
  put_table(h.frames_offset, frames);
  put_table(h.call_sites_offset, call_sites);
  put_table(h.node_calls_offset, node_calls);
  put_table(h.algorithms_offset, algorithms);
  put_table(h.timed_offset, timed);
  put_table(h.trials_offset, trials);
  if (!timed.empty())
    for (const trace::Interval& interval : intervals)
      put(out, h.intervals_offset + ((interval.commit - 1) % capacity) * sizeof interval, interval);
  for (std::size_t i = 0; i < events.size(); ++i) {  // later events overwrite those a ring's length before
    put(out, h.events_offset + (i % capacity) * sizeof(trace::Event), events[i]);
  }
  return out;
}

// Of the collectives and forms that the first records knew; returns their bytes.
std::size_t Record::put_first_sizes(std::uint8_t* to) const {
  const std::size_t one = trace::first_forms * sizeof totals.by_size[0][0];
  for (std::size_t c = 0; c < trace::first_collectives; ++c) std::memcpy(to + c * one, totals.by_size[c], one);
  return trace::first_collectives * one;
}

std::vector<std::uint8_t> Record::bytes_of_17_collectives() const {
  std::vector<std::uint8_t> out = bytes(true);
  trace::Header h;
  std::memcpy(&h, out.data(), sizeof h);
  constexpr std::size_t header_bytes = offsetof(trace::Header, collectives);
  std::memset(out.data() + header_bytes, 0, sizeof h - header_bytes);
  put(out, 16, static_cast<std::uint32_t>(header_bytes));
  std::uint8_t* const by_size = out.data() + h.totals_offset;
  std::memset(by_size, 0, sizeof totals);
  std::uint8_t* const reasons = by_size + put_first_sizes(by_size);
  constexpr std::size_t all = trace::first_collectives * sizeof totals.native_calls_by_reason[0];
  std::memcpy(reasons, totals.native_calls_by_reason, all);
  std::memcpy(reasons + all, totals.native_nonblocking_by_reason, all);
  std::uint8_t* row = out.data() + h.algorithms_offset;
  constexpr std::size_t counts = trace::first_collectives * sizeof(std::uint64_t);
  for (const trace::Algorithm& algorithm : algorithms) {
    std::memcpy(row, algorithm.name, trace::name_bytes);
    std::memcpy(row + trace::name_bytes, algorithm.calls, counts);
    std::memcpy(row + trace::name_bytes + counts, algorithm.nonblocking, counts);
    row += trace::name_bytes + 2 * counts;
  }
  return out;
}

std::vector<std::uint8_t> Record::bytes_of_version_3(bool compact) const {
  constexpr std::size_t names = 2040;  // where they were in the header
  constexpr std::size_t header_bytes = 7784;
  constexpr std::size_t totals_bytes = 21080;
  constexpr std::size_t row = 32 * sizeof(std::uint64_t);  // of what is counted by algorithm or reason
  const std::vector<std::uint8_t> today = bytes_with(compact, header_bytes, totals_bytes);
  trace::Header h;
  std::memcpy(&h, today.data(), sizeof h);
  std::vector<std::uint8_t> out(today.begin(), today.begin() + static_cast<std::ptrdiff_t>(h.algorithms_offset));
  std::memset(out.data(), 0, h.communicators_offset);
  std::memcpy(out.data(), &h, names);
  std::memcpy(out.data() + names + 2048, today.data() + names, header_bytes - names - 2048);
  put(out, 8, std::uint32_t{3});
  put(out, 16, static_cast<std::uint32_t>(header_bytes));
  std::uint8_t* const by_size = out.data() + h.totals_offset;
  std::uint8_t* const counts = by_size + put_first_sizes(by_size);
  std::memcpy(counts + 17 * row, totals.native_calls_by_reason, 17 * row);
  std::memcpy(counts + 3 * 17 * row, totals.native_nonblocking_by_reason, 17 * row);
  for (std::size_t a = 0; a < algorithms.size(); ++a) {
    std::memcpy(out.data() + names + a * trace::name_bytes, algorithms[a].name, trace::name_bytes);
    for (std::size_t c = 0; c < trace::first_collectives; ++c) {
      std::memcpy(counts + c * row + a * 8, &algorithms[a].calls[c], 8);
      std::memcpy(counts + 2 * 17 * row + c * row + a * 8, &algorithms[a].nonblocking[c], 8);
    }
  }
  for (std::size_t slot = 0; slot < capacity; ++slot)
    narrow(out.data() + h.events_offset + slot * sizeof(trace::Event));
  return out;
}

std::vector<std::uint8_t> Record::spilled_of_version_1(std::size_t count, std::size_t in_block) const {
  Record old = *this;
  for (trace::Event& event : old.events) narrow(reinterpret_cast<std::uint8_t*>(&event));
  std::vector<std::uint8_t> out = old.spilled(count, in_block);
  trace::spill::FileHeader h;
  std::memcpy(&h, out.data(), sizeof h);
  h.version = 1;
  h.checksum = checksum_of(h);
  put(out, 0, h);
  return out;
}

std::vector<std::uint8_t> Record::spilled(std::size_t count, std::size_t in_block, bool finished) const {
  const Folder folder;
  const std::string path = folder.path() + "/spilled";
  SpillFile file;
  if (!file.open(path, path, header, 1 << 20)) throw std::runtime_error("cannot write " + path);
  for (std::size_t first = 0; first < count; first += in_block)
    file.append(first, std::span(events).subspan(first, std::min(in_block, count - first)));
  if (finished) file.close();
  return folder.bytes_of("spilled");
}

std::vector<Record> records(int ranks) {
  std::vector<Record> all;
  for (int rank = 0; rank < ranks; ++rank) {
    all.emplace_back(rank, ranks);
    all.back().add_communicator(world_id, ranks, rank, "MPI_COMM_WORLD");
  }
  return all;
}

Folder::Folder() {
  std::string pattern = (std::filesystem::temp_directory_path() / "papaya-unit-XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("cannot make a temporary folder");
  path_ = pattern;
}

Folder::~Folder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

void Folder::write(const std::string& name, const std::vector<std::uint8_t>& bytes) const {
  std::ofstream(path_ + "/" + name, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

void Folder::write(const std::string& name, const std::string& text) const {
  write(name, std::vector<std::uint8_t>(text.begin(), text.end()));
}

void Folder::write(const std::vector<Record>& records) const {
  for (const Record& record : records) write(Record::file_name(record.header.rank), record.bytes());
}

std::vector<std::uint8_t> Folder::bytes_of(const std::string& name) const {
  const std::string text = read(name);
  return {text.begin(), text.end()};
}

std::string Folder::read(const std::string& name) const {
  std::ifstream file(path_ + "/" + name, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

bool Folder::has(const std::string& name) const {
  return std::filesystem::exists(path_ + "/" + name);
}

report::Run load(const std::vector<Record>& records) {
  const Folder folder;
  folder.write(records);
  return report::load_run(folder.path());
}

report::Report analyse(const std::vector<Record>& records) {
  return report::report_on(load(records));
}

const report::CollectiveFigures& figures_of(const report::Analysis& analysis, const std::string& name) {
  for (const auto& figures : analysis.collectives) {
    if (figures.name == name) return figures;
  }
  throw std::runtime_error("no figures of " + name);
}

const report::RankFigures& rank_of(const report::Analysis& analysis, int rank) {
  for (const auto& figures : analysis.late_ranks) {
    if (figures.rank == rank) return figures;
  }
  throw std::runtime_error("no figures of rank " + std::to_string(rank));
}

bool has_note(const report::Report& analysis, const std::string& part) {
  return std::any_of(analysis.notes.begin(), analysis.notes.end(),
                     [&](const std::string& note) { return note.find(part) != std::string::npos; });
}

}  // namespace papaya::support
