#include "interpose/runtime.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <vector>

#include "algorithms/algorithm.hpp"
#include "base/clock.hpp"
#include "base/log.hpp"
#include "base/memory.hpp"
#include "base/reason.hpp"
#include "base/topology.hpp"
#include "interpose/census.hpp"
#include "interpose/communicator.hpp"
#include "interpose/nonblocking.hpp"
#include "interpose/output.hpp"
#include "interpose/stall.hpp"
#include "profiler/record/measure.hpp"
#include "profiler/report/report.hpp"

extern "C" {
__attribute__((visibility("default"))) extern const char* const papaya_flavour_version;
__attribute__((visibility("default"))) void papaya_flavour_start(const papaya::Preload* preload);
}
const char* const papaya_flavour_version = PAPAYA_VERSION;

namespace papaya {

thread_local constinit bool Entry::inside_ = false;

Runtime& the_runtime = *new Runtime;

namespace {

// The clocks when the library was loaded, which is before MPI_Init: the first of the two readings that give the
// counter's rate without waiting for it.
clock::Pair at_load{};
clock::Pair at_load_monotonic{};
clock::Pair node_origin{};  // the node leader's, agreed on by the node
std::int64_t node_origin_unix_ns = 0;

// The output folder, open on rank 0 to the end, and which it was when opened: a program may close descriptors that are
// not its own, and the number may then mean a file of the program's.
int folder_descriptor = -1;
struct stat folder_identity {};

void open_folder(const std::string& folder) {
  folder_descriptor = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder_descriptor >= 0 && fstat(folder_descriptor, &folder_identity) != 0) folder_identity = {};
}

std::optional<std::string> name_of_descriptor() {
  std::error_code error;
  const auto name = std::filesystem::read_symlink(fmt::format("/proc/self/fd/{}", folder_descriptor), error);
  if (error) return std::nullopt;
  return name.string();
}

bool has_folder_still() {
  struct stat now {};
  return folder_descriptor >= 0 && fstat(folder_descriptor, &now) == 0 && now.st_ino == folder_identity.st_ino &&
         now.st_dev == folder_identity.st_dev;
}

constexpr std::uint64_t trace_capacity =
    1u << 20;  // PAPAYA_PROFILE=trace: 64 MiB of events a rank, older ones are spilled

void after_fork_in_child() {
  Runtime& process = runtime();
  process.active.store(false, std::memory_order_release);
  if (process.preload != nullptr) process.preload->pass_through();
  Watch::give_signal_back();
}

void poke_progress() {
  // On a communicator that spans the job: MPICH does not progress its network for a probe on a copy of MPI_COMM_SELF.
  int found = 0;
  PMPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, runtime().world_comm, &found, MPI_STATUS_IGNORE);
  if (nonblocking::needs_attention()) nonblocking::progress();
  // What carries data between nodes moves on here, too: a rank that is about to leave may wait for this one to take
  // its.
  if (runtime().ucx_window.exists()) runtime().ucx_window.progress();
  if (runtime().mpi_messages.exists()) runtime().mpi_messages.progress();
}

std::string read_text(std::string_view path, bool& readable) {
  std::error_code error;
  std::ifstream file{std::string(path)};
  readable = static_cast<bool>(file) && std::filesystem::is_regular_file(path, error);
  if (!readable) return "";
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// Rank 0's text for everybody.
std::string broadcast(std::string text, MPI_Comm comm) {
  std::uint64_t length = text.size();
  PMPI_Bcast(&length, 1, MPI_UINT64_T, 0, comm);
  text.resize(length);
  if (length != 0) PMPI_Bcast(text.data(), static_cast<int>(length), MPI_CHAR, 0, comm);
  return text;
}

std::string mpi_name() {
  char version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  PMPI_Get_library_version(version, &length);
  std::string name(version, strcspn(version, "\n,"));
  std::replace(name.begin(), name.end(), '\t', ' ');
  if (const std::size_t word = name.find(" Version:"); word != name.npos) name.erase(word, 9);
  while (name.find("  ") != name.npos) name.erase(name.find("  "), 1);
  return name;
}

// Settings and the tuning file's text, rank 0's on every rank. Warnings come from rank 0 alone.
void agree_on_settings(Runtime& process) {
  std::vector<std::string> warnings;
  std::string tuning_text;
  if (process.rank == 0) {
    process.settings = Settings::from_environment(environ, warnings);
    if (const std::string_view path = process.settings.text(Variable::tuning); !path.empty()) {
      bool readable = false;
      tuning_text = read_text(path, readable);
      if (!readable) {
        warnings.push_back(fmt::format("PAPAYA_TUNING={}: cannot be read; using the built-in table.", path));
        process.settings.reset(Variable::tuning);
      }
    }
  }
  process.settings = Settings::deserialize(broadcast(process.settings.serialize(), MPI_COMM_WORLD));
  tuning_text = broadcast(tuning_text, MPI_COMM_WORLD);
  process.selection = tuning::Selection(process.settings, tuning_text, warnings);
  const std::string_view level = process.settings.text(Variable::log);
  log::set_level(level == "error"   ? log::Level::error
                 : level == "info"  ? log::Level::info
                 : level == "debug" ? log::Level::debug
                                    : log::Level::warn);
  if (process.rank == 0)
    for (const std::string& warning : warnings) log::warn(warning);
}

// Which ranks share a node, and the communicators for it. Returns the node of each rank of the world.
std::vector<int> find_nodes(Runtime& process) {
  MPI_Comm node = MPI_COMM_NULL;
  PMPI_Comm_split_type(process.world_comm, MPI_COMM_TYPE_SHARED, process.rank, MPI_INFO_NULL, &node);
  if (const auto size = static_cast<int>(process.settings.number(Variable::node_size)); size > 0) {
    int place = 0;
    PMPI_Comm_rank(node, &place);
    MPI_Comm part = MPI_COMM_NULL;
    PMPI_Comm_split(node, place / size, process.rank, &part);
    PMPI_Comm_free(&node);
    node = part;
  }
  process.node_comm = node;
  PMPI_Comm_set_errhandler(node, MPI_ERRORS_RETURN);
  // A node is known by its lowest rank; nodes are numbered in that order.
  int lowest = process.rank;
  PMPI_Bcast(&lowest, 1, MPI_INT, 0, node);
  std::vector<int> leader_of(static_cast<std::size_t>(process.ranks));
  PMPI_Allgather(&lowest, 1, MPI_INT, leader_of.data(), 1, MPI_INT, process.world_comm);
  std::vector<int> leaders(leader_of);
  std::sort(leaders.begin(), leaders.end());
  leaders.erase(std::unique(leaders.begin(), leaders.end()), leaders.end());
  std::vector<int> node_of(leader_of.size());
  for (std::size_t rank = 0; rank < node_of.size(); ++rank)
    node_of[rank] =
        static_cast<int>(std::lower_bound(leaders.begin(), leaders.end(), leader_of[rank]) - leaders.begin());
  process.nodes = static_cast<int>(leaders.size());
  process.node = node_of[static_cast<std::size_t>(process.rank)];
  // The others too, into a communicator that is never used: if papaya held one on some ranks only, the lowest free
  // context id would differ between ranks, and Open MPI's agreement on those of the program's communicators would take
  // more rounds.
  const bool leads = lowest == process.rank;
  PMPI_Comm_split(process.world_comm, leads ? 0 : 1, process.rank,
                  leads ? &process.leader_comm : &process.follower_comm);
  return node_of;
}

// One clock for the node: the same source, origin and rate on all its ranks. Returns nanoseconds per tick.
double agree_on_clock(Runtime& process) {
  int trusted = clock::counter_is_trusted() ? 1 : 0;
  int all = 0;
  PMPI_Allreduce(&trusted, &all, 1, MPI_INT, MPI_MIN, process.node_comm);
  clock::choose(all != 0);
  const clock::Pair& first = all != 0 ? at_load : at_load_monotonic;
  node_origin = clock::read_pair();
  struct {
    double ns_per_tick;
    std::uint64_t ticks;
    std::uint64_t monotonic_ns;
    std::int64_t unix_ns;
  } clock_of_node{clock::ns_per_tick(first, node_origin), node_origin.ticks, node_origin.monotonic_ns,
                  clock::unix_ns()};
  PMPI_Bcast(&clock_of_node, sizeof clock_of_node, MPI_BYTE, 0, process.node_comm);
  node_origin = {clock_of_node.ticks, clock_of_node.monotonic_ns};
  node_origin_unix_ns = clock_of_node.unix_ns;
  return clock_of_node.ns_per_tick;
}

// The node's cores, and where its ranks run.
int look_at_node(Runtime& process) {
  topology::Share mine = topology::allowed();
  topology::CoreSet all{};
  PMPI_Allreduce(mine.cores.words, all.words, topology::CoreSet::capacity / 64, MPI_UINT64_T, MPI_BOR,
                 process.node_comm);
  struct Entry {
    int rank;
    topology::Place place;
  };
  const Entry entry{process.rank, mine.place};
  int ranks = 1;
  PMPI_Comm_size(process.node_comm, &ranks);
  std::vector<Entry> entries(static_cast<std::size_t>(ranks));
  PMPI_Allgather(&entry, sizeof entry, MPI_BYTE, entries.data(), sizeof entry, MPI_BYTE, process.node_comm);
  if (std::any_of(entries.begin(), entries.end(), [&](const Entry& e) { return !(e.place == entries[0].place); })) {
    process.places.resize(static_cast<std::size_t>(process.ranks));
    for (const Entry& e : entries) process.places[static_cast<std::size_t>(e.rank)] = e.place;
  }
  return topology::count(all);
}

// Each rank reads its right neighbour's memory: all agree on whether that works.
bool probe_single_copy(MPI_Comm node) {
  int rank = 0;
  int ranks = 1;
  PMPI_Comm_rank(node, &rank);
  PMPI_Comm_size(node, &ranks);
  struct Word {
    std::uint64_t process;
    std::uint64_t address;
    std::uint64_t value;
  };
  const volatile std::uint64_t value = 0x9e3779b97f4a7c15u * static_cast<std::uint64_t>(rank + 1);
  const Word mine{static_cast<std::uint64_t>(getpid()), reinterpret_cast<std::uintptr_t>(&value), value};
  std::vector<Word> all(static_cast<std::size_t>(ranks));
  PMPI_Allgather(&mine, sizeof mine, MPI_BYTE, all.data(), sizeof mine, MPI_BYTE, node);
  const Word& right = all[static_cast<std::size_t>((rank + 1) % ranks)];
  std::uint64_t read = 0;
  int works = read_memory(static_cast<pid_t>(right.process), reinterpret_cast<const void*>(right.address), &read,
                          sizeof read) &&
              read == right.value;
  int all_work = 0;
  // Its result comes after everybody's read: `value` has been there till then.
  PMPI_Allreduce(&works, &all_work, 1, MPI_INT, MPI_MIN, node);
  return all_work != 0;
}

// Where this rank deposits. How much it lends to a call is equal on all ranks of the node.
void open_arena(Runtime& process, bool concurrent) {
  int rank = 0;
  PMPI_Comm_rank(process.node_comm, &rank);
  int any_concurrent = concurrent ? 1 : 0;
  PMPI_Allreduce(MPI_IN_PLACE, &any_concurrent, 1, MPI_INT, MPI_MAX, process.node_comm);
  const NodeWindow& window = process.window;
  int has_arena = process.deposits.open(
      {.window = window.base(),
       .offset = window.arena_offset(rank),
       .bytes = window.arena_bytes(),
       .concurrent = any_concurrent != 0,
       .populate = [](std::byte* begin, std::size_t bytes,
                      bool promised) noexcept { return runtime().window.populate(begin, bytes, promised); },
       .release = [](std::int64_t offset, std::size_t bytes) noexcept { runtime().window.release(offset, bytes); }});
  PMPI_Allreduce(MPI_IN_PLACE, &has_arena, 1, MPI_INT, MPI_MIN, process.node_comm);
  if (has_arena == 0) process.deposits.close();
}

bool is_loaded(const char* library) noexcept {
  void* const handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
  if (handle == nullptr) return false;
  dlclose(handle);
  return true;
}

// What carries data between nodes.
constexpr std::size_t least_between_nodes = 65536;  // bytes for a rank

void open_transport(Runtime& process) {
  const std::string_view transport = process.settings.text(Variable::transport);
  if (process.nodes == 1) return;
  // Named, if only to be `auto`, it is wanted for algorithms that are selected later.
  int is_wanted = process.selection.works_across_nodes() || std::getenv("PAPAYA_TRANSPORT") != nullptr ? 1 : 0;
  PMPI_Bcast(&is_wanted, 1, MPI_INT, 0, process.world_comm);
  if (!is_wanted) return;
  int most_ranks = 1;
  PMPI_Comm_size(process.node_comm, &most_ranks);
  PMPI_Allreduce(MPI_IN_PLACE, &most_ranks, 1, MPI_INT, MPI_MAX, process.world_comm);
  std::size_t bytes =
      static_cast<std::size_t>(process.settings.number(Variable::shm_limit)) / static_cast<std::size_t>(most_ranks);
  // The least of all nodes: a rank's share is the same everywhere.
  std::uint64_t room = memory::available() / 4 / static_cast<std::uint64_t>(most_ranks);
  PMPI_Allreduce(MPI_IN_PLACE, &room, 1, MPI_UINT64_T, MPI_MIN, process.world_comm);
  if (bytes > room) {
    bytes = static_cast<std::size_t>(room);
    if (process.rank == 0)
      log::warn(
          fmt::format("PAPAYA_SHM_LIMIT={}: ranks of other nodes get {} MiB, a quarter of the memory that is free.",
                      process.settings.text(Variable::shm_limit), bytes * static_cast<std::size_t>(most_ranks) >> 20));
  }
  // Less serves nothing.
  process.too_little_between_nodes = bytes < least_between_nodes;
  if (process.too_little_between_nodes) return;
  PMPI_Comm_dup(process.world_comm, &process.far_comm);
  // An MPI that stands on UCX would send the same messages by more calls. One that does not may know a network that UCX
  // does not.
  int takes_ucx = transport == "ucx" || (transport == "auto" && is_loaded("libucp.so.0")) ? 1 : 0;
  PMPI_Allreduce(MPI_IN_PLACE, &takes_ucx, 1, MPI_INT, MPI_MIN, process.world_comm);
  std::string why;
  if (takes_ucx != 0) {
    if (process.ucx_window.create(process.world_comm, bytes, process.preload->folder, why)) return;
    if (process.rank == 0 && transport == "ucx")
      log::warn(fmt::format("PAPAYA_TRANSPORT=ucx: {}; using MPI's messages.", why));
    log::debug(fmt::format("UCX between nodes: {}", why));
  }
  process.mpi_messages.create(process.world_comm, bytes);
}

// Where less shared memory is to be had than the limit, algorithms share that: the least of all nodes, since messages
// are cut alike on all ranks.
void lower_limit(Runtime& process) {
  const auto set = static_cast<std::uint64_t>(process.settings.number(Variable::shm_limit));
  std::uint64_t least = process.window.exists() ? process.window.limit() : set;
  PMPI_Allreduce(MPI_IN_PLACE, &least, 1, MPI_UINT64_T, MPI_MIN, process.world_comm);
  if (least < set) process.settings.set(Variable::shm_limit, fmt::format("{}", least));
}

void configure_waiting(Runtime& process, int cores, double ns_per_tick) {
  const std::string_view mode = process.settings.text(Variable::wait);
  wait::Policy::Machine machine;
  machine.cores = cores;
  machine.board = process.window.board();
  machine.ns_per_tick = ns_per_tick;
  PMPI_Comm_size(process.node_comm, &machine.ranks);
  PMPI_Comm_rank(process.node_comm, &machine.rank);
  process.oversubscribed = machine.ranks > machine.cores;
  process.policy.configure(mode == "spin"    ? wait::Mode::spin
                           : mode == "yield" ? wait::Mode::yield
                           : mode == "block" ? wait::Mode::block
                                             : wait::Mode::automatic,
                           machine, poke_progress);
  process.policy.set_stall(static_cast<double>(process.settings.number(Variable::stall_seconds)), report_stall);
}

// The leader of a node other than rank 0's, which may see rank 0's folder, or have a file system of its own. There a
// folder of this name may be anybody's: an earlier job's, or another user's.
void find_folder(Runtime& process, const std::string& run) {
  std::string sentence;
  process.folder = output::find_folder(process.folder, process.node, run, folder_descriptor, sentence);
  if (!sentence.empty()) log::warn(sentence);
  if (folder_descriptor >= 0 && fstat(folder_descriptor, &folder_identity) != 0) folder_identity = {};
}

// Opens the folder on the other ranks of the leader's node and makes sure that it is the same: another job that was
// started with the same output folder may have renamed this one in the meantime.
void enter_folder(Runtime& process) {
  const bool leads = process.leader_comm != MPI_COMM_NULL;
  for (int attempt = 0; attempt < 10; ++attempt) {
    process.folder = broadcast(process.folder, process.node_comm);
    if (!leads) open_folder(process.folder);
    struct {
      std::uint64_t device;
      std::uint64_t file;
    } mine{folder_identity.st_dev, folder_identity.st_ino}, first = mine;
    PMPI_Bcast(&first, sizeof first, MPI_BYTE, 0, process.node_comm);
    int same = folder_descriptor < 0 || (mine.device == first.device && mine.file == first.file);
    PMPI_Allreduce(MPI_IN_PLACE, &same, 1, MPI_INT, MPI_MIN, process.node_comm);
    if (same != 0) return;
    if (!leads && folder_descriptor >= 0) close(folder_descriptor);
    if (leads) process.folder = name_of_descriptor().value_or(process.folder);
  }
}

// The folder by its descriptor, whatever it is called by now.
std::string folder_path(const Runtime& process) {
  return folder_descriptor >= 0 ? fmt::format("/proc/self/fd/{}", folder_descriptor) : process.folder;
}

// Rank 0 comes back to it for the report.
void leave_folder(Runtime& process) {
  if (process.rank == 0 || folder_descriptor < 0) return;
  close(folder_descriptor);
  folder_descriptor = -1;
}

// Which ranks are to record. Rank 0 always: by its record a folder is known to be a run's.
std::vector<bool> recording_ranks(const Runtime& process) {
  RankList list;
  list.parse(process.settings.text(Variable::ranks));
  std::vector<bool> ranks(static_cast<std::size_t>(process.ranks));
  for (std::size_t rank = 0; rank < ranks.size(); ++rank)
    ranks[rank] = rank == 0 || list.contains(static_cast<int>(rank));
  return ranks;
}

// The folder on rank 0, this rank's files, and their headers.
void open_records(Runtime& process, const std::vector<int>& node_of, const std::vector<bool>& recording, int cores,
                  double ns_per_tick, int thread_level) {
  const std::string_view profile = process.settings.text(Variable::profile);
  if (profile == "off") return;
  const std::string program = output::program_path();
  const std::string mpi = mpi_name();
  std::string run;
  if (process.rank == 0) {
    run = output::new_run();
    std::string wanted(process.settings.text(Variable::output));
    if (wanted.empty()) wanted = output::default_folder(output::base_name(program), process.ranks);
    std::string sentence;
    process.folder = output::make_folder(wanted, output::default_folder(output::base_name(program), process.ranks),
                                         folder_descriptor, sentence);
    if (!sentence.empty()) log::warn(sentence);
    // The report goes into this very folder at the end, also if another job has renamed it by then.
    if (folder_descriptor >= 0 && fstat(folder_descriptor, &folder_identity) != 0) folder_identity = {};
    if (!process.folder.empty())
      output::write_start_files(folder_path(process), process.settings, output::base_name(program), process.ranks, mpi,
                                run);
  }
  process.folder = broadcast(process.folder, process.world_comm);
  if (process.folder.empty()) return;
  if (process.nodes > 1) {
    run = broadcast(run, process.world_comm);
    if (process.node != 0 && process.leader_comm != MPI_COMM_NULL) find_folder(process, run);
  }
  enter_folder(process);
  std::string error;
  const std::string spill_path = output::spill_file(folder_path(process), process.rank);
  const bool is_wanted = recording[static_cast<std::size_t>(process.rank)];
  const bool opened =
      is_wanted && process.recorder.open(output::rank_file(folder_path(process), process.rank),
                                         profile == "trace" ? trace_capacity : trace::event_capacity, error);
  int failures = opened || !is_wanted ? 0 : 1;
  int all_failures = 0;
  PMPI_Reduce(&failures, &all_failures, 1, MPI_INT, MPI_SUM, 0, process.world_comm);
  if (process.rank == 0 && all_failures != 0)
    log::warn(fmt::format("{} of {} ranks cannot write their records to {}{}{}; {}.", all_failures, process.ranks,
                          process.folder, error.empty() ? "" : ": ", error,
                          all_failures < process.ranks ? "the others go on recording" : "nothing is recorded"));
  // The files of the node are there; later the folder may have another name.
  PMPI_Barrier(process.node_comm);
  if (!opened) return;
  for (std::size_t rank = 0; rank < node_of.size(); ++rank)
    if (node_of[rank] == process.node && recording[rank])
      process.node_boards.add(static_cast<int>(rank), output::rank_file(folder_path(process), static_cast<int>(rank)));

  trace::Header& header = process.recorder.header();
  header.rank = process.rank;
  header.ranks = process.ranks;
  header.node = process.node;
  header.nodes = process.nodes;
  PMPI_Comm_rank(process.node_comm, &header.node_rank);
  PMPI_Comm_size(process.node_comm, &header.node_ranks);
  header.cores = cores;
  header.thread_level = thread_level;
  header.process = getpid();
  header.ns_per_tick = ns_per_tick;
  header.begin_ticks = node_origin.ticks;
  header.begin_unix_ns = node_origin_unix_ns;
  char host[trace::name_bytes] = "";
  gethostname(host, sizeof host - 1);
  Recorder::set_name(header.host, sizeof header.host, host);
  Recorder::set_name(header.mpi, sizeof header.mpi, mpi);
  Recorder::set_name(header.papaya_version, sizeof header.papaya_version, PAPAYA_VERSION);
  Recorder::set_name(header.program, sizeof header.program, program);
  Recorder::set_name(header.command, sizeof header.command, output::command_line());
  Recorder::set_name(header.algorithm_names[0], trace::name_bytes, "native");
  for (const Descriptor* descriptor : registry())
    if (const std::uint8_t number = trace_number(*descriptor); number < trace::algorithm_capacity)
      Recorder::set_name(header.algorithm_names[number], trace::name_bytes, descriptor->name);
  for (std::size_t i = 0; i < reason_names.size(); ++i)
    Recorder::set_name(header.reason_names[i], trace::name_bytes, reason_names[i]);
  process.recorder.set_concurrent(thread_level == MPI_THREAD_MULTIPLE);
  process.node_arrivals.open(process.recorder.node_board(), process.recorder.node_calls(), header.node_calls_given_up,
                             static_cast<std::uint64_t>(report::tie_ns / ns_per_tick),
                             thread_level == MPI_THREAD_MULTIPLE);
  if (profile != "trace") return;
  const auto limit = static_cast<std::uint64_t>(process.settings.number(Variable::trace_limit));
  if (limit == 0) return;
  process.recorder.start_spilling(spill_path, output::spill_file(process.folder, process.rank), limit);
  if (const Spiller* const spiller = process.recorder.spiller();
      process.rank == 0 && spiller != nullptr && spiller->file().takes_more() && !spiller->file().is_compressed())
    log::warn("PAPAYA_PROFILE=trace: libzstd.so.1 cannot be loaded; calls are written uncompressed.");
}

// After the record is closed.
void say_incomplete_traces(Runtime& process) {
  if (process.settings.text(Variable::profile) != "trace" || process.settings.number(Variable::trace_limit) == 0)
    return;
  const Spiller* const spiller = process.recorder.spiller();
  // A rank without a record has none, and that has been said.
  const auto ended = [&](trace::spill::State state) { return spiller != nullptr && spiller->file().state() == state; };
  const bool is_limited = ended(trace::spill::State::limited);
  const bool is_cut = spiller != nullptr && !is_limited && !ended(trace::spill::State::closed);
  const int mine[2] = {is_limited ? 1 : 0, is_cut ? 1 : 0};
  int all[2] = {0, 0};
  PMPI_Reduce(mine, all, 2, MPI_INT, MPI_SUM, 0, process.world_comm);
  if (process.rank != 0) return;
  const auto say = [&](int ranks, const std::string& why) {
    if (ranks != 0)
      log::warn(fmt::format("the traces of {} of {} ranks {}; of these the last {} calls are kept.", ranks,
                            process.ranks, why, trace_capacity));
  };
  say(all[0], fmt::format("reached PAPAYA_TRACE_LIMIT={}", process.settings.text(Variable::trace_limit)));
  say(all[1], "could not be written to their end");
}

void watch_ranks(Runtime& process, const std::vector<int>& node_of, const std::vector<bool>& recording) {
  if (process.folder.empty()) return;
  if (process.recorder.is_open()) Watch::claim_signal(process.recorder.header().asked);
  if (process.leader_comm == MPI_COMM_NULL) return;
  std::vector<int> ranks;
  for (std::size_t rank = 0; rank < node_of.size(); ++rank)
    if (node_of[rank] == process.node && recording[rank]) ranks.push_back(static_cast<int>(rank));
  process.watch.start(folder_path(process), ranks,
                      static_cast<double>(process.settings.number(Variable::stall_seconds)), process.node == 0);
}

// Measured by the leaders of the nodes, whether they record or not, for all ranks of theirs.
void measure_clock_offset(Runtime& process, double ns_per_tick, int which) {
  if (process.nodes == 1) return;
  trace::ClockOffset offset{};
  if (process.leader_comm != MPI_COMM_NULL)
    offset = measure::clock_offset(process.leader_comm, ns_per_tick, node_origin.ticks);
  measure::meet_asleep(process.node_comm);  // the others leave the leaders the cores
  PMPI_Bcast(&offset, sizeof offset, MPI_BYTE, 0, process.node_comm);
  if (process.recorder.is_open()) process.recorder.header().clock[which] = offset;
}

void measure_alpha(Runtime& process) {
  int node_ranks = 1;
  PMPI_Comm_size(process.node_comm, &node_ranks);
  std::uint64_t within[measure::alpha_size_count]{};
  std::uint64_t across[measure::alpha_size_count]{};
  // Where ranks outnumber cores, those that wait for the pair that measures must not wait in MPI: MPICH's
  // would spin.
  measure::meet_asleep(process.world_comm);
  if (node_ranks > 1) measure::message_times(process.node_comm, 1, 20, within);
  if (process.nodes > 1 && process.leader_comm != MPI_COMM_NULL)
    measure::message_times(process.leader_comm, 1, 20, across);
  measure::meet_asleep(process.world_comm);
  if (!process.recorder.is_open()) return;
  for (int i = 0; i < measure::alpha_size_count; ++i)
    process.recorder.header().alpha[i] = {measure::alpha_sizes[i], within[i], across[i]};
}

void say_oddities(Runtime& process) {
  std::uint64_t mine[3] = {process.verified.load(), process.verify_mismatches.load(),
                           process.failed_inner_calls.load()};
  std::uint64_t sums[3] = {0, 0, 0};
  PMPI_Reduce(mine, sums, 3, MPI_UINT64_T, MPI_SUM, 0, process.world_comm);
  if (process.rank != 0) return;
  if (sums[2] != 0)
    log::error(
        fmt::format("{} calls of MPI_Pack, MPI_Unpack or MPI_Reduce_local inside papaya failed, so results may "
                    "be wrong. Please report this; PAPAYA_DISABLE=1 avoids it.",
                    sums[2]));
  if (sums[1] != 0)
    log::error(
        fmt::format("{} of {} verified results differ from MPI's. Please report this; PAPAYA_DISABLE=1 avoids "
                    "it.",
                    sums[1], sums[0]));
  else if (process.verify_every != 0)
    log::warn(sums[0] == 0 ? std::string("PAPAYA_VERIFY is set, but no replaced call was due to be verified.")
                           : fmt::format("{} verified results agree with MPI's.", sums[0]));
}

}  // namespace

void announce() noexcept {
  if (const Preload* const preload = runtime().preload; preload != nullptr)
    preload->announce(*preload->node, presence::Part::takes_part);
}

void start() noexcept {
  Runtime& process = runtime();
  if (process.preload == nullptr || process.world_comm != MPI_COMM_NULL) return;
  // Spawned processes are a part of their parent's job, whose records they would mix with theirs: they run natively.
  MPI_Comm parent = MPI_COMM_NULL;
  PMPI_Comm_get_parent(&parent);
  if (parent != MPI_COMM_NULL) {
    process.preload->remove_name(*process.preload->node);
    process.preload->close(*process.preload->node);
    process.preload->pass_through();
    return;
  }
  PMPI_Comm_rank(MPI_COMM_WORLD, &process.rank);
  PMPI_Comm_size(MPI_COMM_WORLD, &process.ranks);
  const std::uint64_t asked_ns = clock::monotonic_ns();
  const bool all_take_part =
      census::all_take_part(*process.preload->node, process.preload->remove_name, process.rank, process.ranks);
  const double asked_us = static_cast<double>(clock::monotonic_ns() - asked_ns) * 1e-3;
  process.preload->close(*process.preload->node);
  if (!all_take_part) {
    process.preload->pass_through();
    return;
  }
  agree_on_settings(process);
  if (process.settings.number(Variable::disable) != 0) {
    process.preload->pass_through();
    return;
  }
  communicators::copy(MPI_COMM_WORLD, &process.world_comm);
  PMPI_Comm_set_errhandler(process.world_comm, MPI_ERRORS_RETURN);
  int thread_level = MPI_THREAD_SINGLE;
  background_progress::query_thread(&thread_level);
  const std::vector<int> node_of = find_nodes(process);
  const double ns_per_tick = agree_on_clock(process);
  const int cores = look_at_node(process);
  if (process.selection.replaces_anything() && process.nodes < process.ranks) {
    int node_ranks = 1;
    PMPI_Comm_size(process.node_comm, &node_ranks);
    if (node_ranks > 1 && process.window.create(process.node_comm, static_cast<std::size_t>(
                                                                       process.settings.number(Variable::shm_limit)))) {
      process.single_copy = probe_single_copy(process.node_comm);
      open_arena(process, thread_level == MPI_THREAD_MULTIPLE);
    }
  }
  open_transport(process);
  lower_limit(process);
  configure_waiting(process, cores, ns_per_tick);
  process.arrival_order = process.settings.text(Variable::order) == "arrival";
  process.verify_every = static_cast<std::uint64_t>(process.settings.number(Variable::verify));
  const std::vector<bool> recording = recording_ranks(process);
  if (process.rank == 0 && process.ranks > 1 && std::count(recording.begin(), recording.end(), true) == 1 &&
      process.settings.text(Variable::ranks) != "0" && process.settings.text(Variable::profile) != "off")
    log::warn(fmt::format(
        "PAPAYA_RANKS={}: of ranks 0 to {} only rank 0 records, and its arrivals are compared with nobody's.",
        process.settings.text(Variable::ranks), process.ranks - 1));
  open_records(process, node_of, recording, cores, ns_per_tick, thread_level);
  leave_folder(process);
  if (const auto frames = static_cast<int>(process.settings.number(Variable::callsites));
      !process.call_sites.open(process.recorder, frames, process.preload->is_fortran) && process.rank == 0)
    log::warn(
        fmt::format("PAPAYA_CALLSITES={}: libunwind.so.8 cannot be loaded; one frame is kept of each call.", frames));
  if (!process.folder.empty()) measure_clock_offset(process, ns_per_tick, 0);
  if (!communicators::start(node_of)) return;
  nonblocking::start(thread_level == MPI_THREAD_MULTIPLE);
  pthread_atfork(nullptr, nullptr, after_fork_in_child);
  watch_ranks(process, node_of, recording);
  if (process.recorder.is_open()) process.recorder.header().init_ticks = clock::ticks();
  if (process.rank == 0)
    log::info(
        fmt::format("version {}, {} ranks, all with papaya (asked in {:.1f} us), on {} node{}, {} cores here{}{}{}",
                    PAPAYA_VERSION, process.ranks, asked_us, process.nodes, process.nodes == 1 ? "" : "s", cores,
                    process.ucx_window.exists()     ? ", UCX between nodes"
                    : process.mpi_messages.exists() ? ", MPI's messages between nodes"
                                                    : "",
                    process.folder.empty() ? "" : "; records go to ", process.folder));
  process.active.store(true, std::memory_order_release);
}

void stop() noexcept {
  Runtime& process = runtime();
  if (!process.active.load(std::memory_order_acquire)) return;
  nonblocking::stop();
  if (!process.active.exchange(false, std::memory_order_acq_rel)) return;
  process.watch.stop();
  Watch::stop_counting();
  if (process.recorder.is_open()) process.recorder.header().end_ticks = clock::ticks();
  communicators::stop();
  say_oddities(process);
  if (!process.folder.empty()) {
    // The whole run is a longer base for the counter's rate than MPI_Init was. The node's first rank decides.
    double rate = clock::ns_per_tick(node_origin, clock::read_pair());
    PMPI_Bcast(&rate, 1, MPI_DOUBLE, 0, process.node_comm);
    if (process.recorder.is_open()) process.recorder.header().ns_per_tick = rate;
    measure_clock_offset(process, rate, 1);
    measure_alpha(process);
    if (process.recorder.is_open()) {
      process.recorder.header().ending = static_cast<std::uint32_t>(trace::Ending::finalized);
      process.call_sites.close();
      process.node_arrivals.close();
      process.node_boards.close();
      process.recorder.close();
    }
    say_incomplete_traces(process);
    PMPI_Barrier(process.world_comm);
    if (process.rank == 0) {
      std::string error;
      // By its descriptor: another job may rename it at any moment.
      const bool is_there = has_folder_still();
      const std::string place = is_there ? folder_path(process) : process.folder;
      if (is_there) process.folder = name_of_descriptor().value_or(process.folder);
      const bool is_written = report::write_reports(place, process.folder, &error);
      if (is_there) {
        process.folder = name_of_descriptor().value_or(process.folder);
        close(folder_descriptor);
        folder_descriptor = -1;
      }
      if (is_written)
        log::warn(fmt::format("report in {}/report.txt", process.folder));
      else
        log::warn(
            fmt::format("the report could not be written ({}); papaya report {} makes it.", error, process.folder));
    }
  }
  process.ucx_window.free();
  process.mpi_messages.free();
  process.deposits.close();
  process.window.free();
  for (MPI_Comm* comm :
       {&process.leader_comm, &process.follower_comm, &process.node_comm, &process.far_comm, &process.world_comm})
    if (*comm != MPI_COMM_NULL) PMPI_Comm_free(comm);
}

void note_abort(int code) noexcept {
  Runtime& process = runtime();
  if (!process.active.load(std::memory_order_acquire) || !process.recorder.is_open()) return;
  trace::Header& header = process.recorder.header();
  header.end_ticks = clock::ticks();
  header.abort_code = code;
  header.ending = static_cast<std::uint32_t>(trace::Ending::aborted);
  log::warn(fmt::format("rank {} calls MPI_Abort; `papaya report {}` shows what was recorded.", process.rank,
                        process.folder));
}

}  // namespace papaya

void papaya_flavour_start(const papaya::Preload* preload) {
  using namespace papaya;
  runtime().preload = preload;
  Watch::note_signal();
  at_load_monotonic = clock::read_pair();
  clock::choose(clock::counter_is_trusted());
  at_load = clock::read_pair();
}
