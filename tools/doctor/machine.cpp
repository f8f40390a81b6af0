// What papaya will meet on the machine: clocks, shared memory, cores, its own parts, settings and the folder for its
// output.
#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>

#include "algorithms/transport/single_copy.hpp"
#include "base/clock.hpp"
#include "base/memory.hpp"
#include "base/mpi_library.hpp"
#include "base/topology.hpp"
#include "base/version.hpp"
#include "profiler/record/format.hpp"
#include "tools/bench/launcher.hpp"
#include "tools/doctor/checks.hpp"
#include "tools/preload.hpp"
#include "tuning/approx_rules.hpp"
#include "tuning/selection.hpp"

namespace papaya::doctor {
namespace {

namespace fs = std::filesystem;

constexpr double dear_call_ns = 1000;
constexpr std::uint64_t least_shared_bytes = 4 << 20;

std::string bytes_text(double bytes) {
  if (bytes >= 1 << 30) return fmt::format("{:.1f} GiB", bytes / (1 << 30));
  return fmt::format("{:.0f} MiB", bytes / (1 << 20));
}

std::string first_line_of(const char* path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

template <class Read>
double ns_a_read(Read&& read) {
  constexpr int reads = 20000;
  double shortest = 1e9;
  for (int batch = 0; batch < 5; ++batch) {
    const std::uint64_t begin = clock::monotonic_ns();
    for (int i = 0; i < reads; ++i) read();
    shortest = std::min(shortest, static_cast<double>(clock::monotonic_ns() - begin) / reads);
  }
  return shortest;
}

void check_clock(Checks& checks) {
  const double monotonic = ns_a_read([] { return clock::monotonic_ns(); });
  const double counter = ns_a_read([] { return clock::counter(); });
  if (clock::counter_is_trusted()) {
    checks.push_back(
        {"clock", Level::ok,
         fmt::format("The processor's counter keeps the kernel's time: {:.0f} ns a read (CLOCK_MONOTONIC {:.0f} ns).",
                     counter, monotonic)});
    return;
  }
  const std::string source = first_line_of("/sys/devices/system/clocksource/clocksource0/current_clocksource");
  checks.push_back({"clock", monotonic > 100 ? Level::warning : Level::ok,
                    fmt::format("The kernel does not keep time by the processor's counter (its source is "
                                "{}), so CLOCK_MONOTONIC is read: {:.0f} ns "
                                "instead of {:.0f} ns, twice a call.",
                                source.empty() ? "unknown" : source, monotonic, counter)});
}

void check_shared_memory(const Settings& settings, Checks& checks) {
  struct statvfs space {};
  if (statvfs("/dev/shm", &space) != 0) {
    checks.push_back({"shared memory", Level::warning,
                      "There is no /dev/shm: papaya records, and leaves every call to MPI. Mount a tmpfs there."});
    return;
  }
  const double all = static_cast<double>(space.f_blocks) * static_cast<double>(space.f_frsize);
  const double free = static_cast<double>(memory::available_shared());
  const double limit = static_cast<double>(settings.number(Variable::shm_limit));
  const std::string room = fmt::format("/dev/shm has {}, {} free; PAPAYA_SHM_LIMIT is {}", bytes_text(all),
                                       bytes_text(free), bytes_text(limit));
  const double usable = std::min(limit, free / 4);
  if (usable < static_cast<double>(least_shared_bytes))
    checks.push_back({"shared memory", Level::warning,
                      room +
                          ": too little for algorithms of large messages, which stay with MPI. Make room, or mount it "
                          "with a larger size (docker run --shm-size=1g)."});
  else if (usable < limit)
    checks.push_back({"shared memory", Level::warning,
                      fmt::format("{}: papaya takes at most a quarter of what is free, {}. A larger one (docker run "
                                  "--shm-size=1g), and a larger memory limit where there is one, give it more.",
                                  room, bytes_text(usable))});
  else
    checks.push_back({"shared memory", Level::ok, room + "."});
}

// Two processes with one parent, as the ranks of a node are: may one read the other?
bool siblings_can_read() {
  static volatile std::uint64_t value = 0x70617061;
  const pid_t asleep = fork();
  if (asleep == 0) {
    pause();
    _exit(0);
  }
  if (asleep < 0) return false;
  const pid_t reader = fork();
  if (reader == 0) {
    std::uint64_t read = 0;
    _exit(read_memory(asleep, const_cast<const std::uint64_t*>(&value), &read, sizeof read) && read == value ? 0 : 1);
  }
  int status = 1;
  if (reader > 0) waitpid(reader, &status, 0);
  kill(asleep, SIGKILL);
  waitpid(asleep, nullptr, 0);
  return reader > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

void check_single_copy(Checks& checks) {
  if (siblings_can_read()) {
    checks.push_back({"single copy", Level::ok,
                      "A process may read another's memory (process_vm_readv), so large blocks can be copied once "
                      "(single_copy_bytes)."});
    return;
  }
  const std::string scope = first_line_of("/proc/sys/kernel/yama/ptrace_scope");
  checks.push_back({"single copy", Level::warning,
                    scope.empty() || scope == "0"
                        ? "A process may not read another's memory (process_vm_readv), which a container "
                          "forbids unless it has CAP_SYS_PTRACE: large "
                          "blocks are copied twice."
                        : fmt::format("A process may not read another's memory, as kernel.yama.ptrace_scope "
                                      "is {}: large blocks are copied twice. "
                                      "sysctl kernel.yama.ptrace_scope=0 allows it.",
                                      scope)});
}

// Cores that processes here may use once they are not bound.
int cores_of_node() {
  cpu_set_t before;
  if (sched_getaffinity(0, sizeof before, &before) != 0) return topology::count(topology::allowed().cores);
  cpu_set_t all;
  CPU_ZERO(&all);
  for (int i = 0; i < CPU_SETSIZE; ++i) CPU_SET(i, &all);
  sched_setaffinity(0, sizeof all, &all);
  const int cores = topology::count(topology::allowed().cores);
  sched_setaffinity(0, sizeof before, &before);
  return cores;
}

void check_cores(const Job& job, Checks& checks) {
  const int own = topology::count(topology::allowed().cores);
  const int node = cores_of_node();
  if (job.launcher.empty()) {
    checks.push_back({"cores", Level::ok,
                      fmt::format("{} cores for ranks here. To check a job, start this under its launcher: "
                                  "mpirun -n N papaya doctor.",
                                  node)});
    return;
  }
  if (job.node_ranks > node)
    checks.push_back({"cores", Level::warning,
                      fmt::format("{} ranks share the {} cores of this node. papaya's ranks give their core "
                                  "away while they wait, MPI's spin: let them "
                                  "yield (Open MPI: OMPI_MCA_mpi_yield_when_idle=1), or start fewer ranks.",
                                  job.node_ranks, node)});
  else
    checks.push_back(
        {"cores", Level::ok,
         fmt::format("{} {} on this node, {} cores.", job.node_ranks, job.node_ranks == 1 ? "rank" : "ranks", node)});
  const char* const threads = std::getenv("OMP_NUM_THREADS");
  const int wanted = threads == nullptr ? 1 : std::atoi(threads);
  if (own >= node)
    checks.push_back({"binding", Level::ok, "This rank is not bound to a core: the system may move it."});
  else if (wanted > own)
    checks.push_back({"binding", Level::warning,
                      fmt::format("This rank is bound to {} of {} cores and has OMP_NUM_THREADS={}: its "
                                  "threads take the core from "
                                  "each other. Bind it to more (Open MPI: --map-by slot:PE={}).",
                                  own, node, wanted, wanted)});
  else
    checks.push_back({"binding", Level::ok, fmt::format("This rank is bound to {} of {} cores.", own, node)});
}

void check_parts(Checks& checks) {
  void* const unwind = dlopen("libunwind.so.8", RTLD_LAZY | RTLD_LOCAL);
  checks.push_back({"libunwind", unwind != nullptr ? Level::ok : Level::warning,
                    unwind != nullptr
                        ? "libunwind is here: PAPAYA_CALLSITES may be above 1, and Fortran's callers are named."
                        : "There is no libunwind.so.8: one frame of each call is kept, of Fortran's calls that of the "
                          "binding. Install "
                          "libunwind8."});
  if (unwind != nullptr) dlclose(unwind);
  checks.push_back({"libdw", PAPAYA_HAS_LIBDW ? Level::ok : Level::warning,
                    PAPAYA_HAS_LIBDW ? "papaya report names functions, files and lines (libdw)."
                                     : "papaya was built without libdw: call sites are shown as addresses. "
                                       "Install libdw-dev and build again."});
  const std::string ucx = find_beside("libpapaya-ucx.so", PAPAYA_LIBDIR);
  void* const plugin = ucx.empty() ? nullptr : dlopen(ucx.c_str(), RTLD_LAZY | RTLD_LOCAL);
  const char* const why = ucx.empty() || plugin != nullptr ? nullptr : dlerror();
  checks.push_back({"UCX", plugin != nullptr ? Level::ok : Level::warning,
                    plugin != nullptr ? "papaya can use UCX between nodes."
                    : ucx.empty()     ? "papaya was built without UCX: between nodes it uses MPI's messages. Only for "
                                        "jobs on several nodes: install libucx-dev and build again."
                                      : fmt::format("UCX cannot be loaded ({}): install libucx0.",
                                                why == nullptr ? "no reason given" : why)});
}

// Tried, since rights and file systems say no in more ways than can be asked for.
bool can_hold_folder(const fs::path& parent) {
  std::string folder = (parent / ".papaya-doctor-XXXXXX").string();
  return mkdtemp(folder.data()) != nullptr && rmdir(folder.c_str()) == 0;
}

}  // namespace

Job job_of(const char* (*get)(const char* name)) {
  Job job;
  job.launcher = bench::launcher_of(get);
  job.rank = bench::rank_of(get);
  const auto number = [&](std::initializer_list<const char*> names) {
    for (const char* name : names)
      if (const char* const value = get(name); value != nullptr && std::atoi(value) > 0) return std::atoi(value);
    return 0;
  };
  job.ranks = std::max(1, number({"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS"}));
  const int on_node =
      number({"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "SLURM_NTASKS_PER_NODE", "PALS_LOCAL_SIZE"});
  job.node_ranks = on_node > 0 ? on_node : job.ranks;
  return job;
}

std::vector<std::string> built_flavours() {
  std::vector<std::string> names;
  for (const char* name : flavour_names)
    if (!find_beside(fmt::format("libpapaya-{}.so", name), PAPAYA_LIBDIR).empty()) names.push_back(name);
  return names;
}

void check_installation(const Job& job, Checks& checks) {
  const std::string library = find_beside("libpapaya.so", PAPAYA_LIBDIR);
  const std::vector<std::string> flavours = built_flavours();
  if (library.empty())
    checks.push_back({"papaya", Level::problem,
                      "libpapaya.so is neither beside this command nor in the library folder. Install both."});
  else if (library.find_first_of(" :") != library.npos)
    checks.push_back(
        {"papaya", Level::problem,
         fmt::format("{}: the dynamic loader takes no library to preload whose path has a space or a colon. Install "
                     "papaya elsewhere.",
                     library)});
  else if (flavours.empty())
    checks.push_back({"papaya", Level::problem,
                      fmt::format("Beside {} there is no library for any MPI. Install the whole of papaya.", library)});
  else
    checks.push_back(
        {"papaya", Level::ok, fmt::format("papaya {} for {}.", PAPAYA_VERSION, fmt::join(flavours, " and "))});
  if (!job.launcher.empty()) {
    const bool known =
        job.launcher == "pmix" || std::find(flavours.begin(), flavours.end(), job.launcher) != flavours.end();
    checks.push_back(
        {"launcher", known ? Level::ok : Level::problem,
         job.launcher == "pmix" ? fmt::format("A launcher for any MPI (PMIx) started {} ranks.", job.ranks)
         : known
             ? fmt::format("{}'s launcher started {} {}.", job.launcher, job.ranks, job.ranks == 1 ? "rank" : "ranks")
             : fmt::format("This is {}'s launcher, and papaya was built without that MPI.", job.launcher)});
    return;
  }
  std::string says;
  const std::string mpirun = mpirun_in_path(says);
  if (mpirun.empty())
    checks.push_back({"launcher", Level::warning,
                      says.empty() ? "There is no mpirun in PATH that answers to --version."
                                   : fmt::format("The mpirun in PATH belongs to no MPI that papaya knows: {}", says)});
  else if (std::find(flavours.begin(), flavours.end(), mpirun) == flavours.end())
    checks.push_back(
        {"launcher", Level::warning,
         fmt::format("The mpirun in PATH is {}'s ({}), and papaya was built without that MPI.", mpirun, says)});
  else
    checks.push_back({"launcher", Level::ok, fmt::format("The mpirun in PATH is {}'s: {}.", mpirun, says)});
}

void check_machine(const Job& job, const Settings& settings, Checks& checks) {
  check_clock(checks);
  check_shared_memory(settings, checks);
  check_single_copy(checks);
  check_cores(job, checks);
  check_parts(checks);
}

Settings check_settings(Checks& checks) {
  std::vector<std::string> warnings;
  Settings settings = Settings::from_environment(environ, warnings);
  std::string rules;
  if (const std::string path(settings.text(Variable::tuning)); !path.empty()) {
    std::string problem;
    rules = tuning::load(path, problem);
    if (!problem.empty())
      warnings.push_back(fmt::format("PAPAYA_TUNING={}: {}; using the built-in table.", path, problem));
  }
  const tuning::Selection selection(settings, rules, warnings);
  if (const std::string_view text = settings.text(Variable::approx); !text.empty()) {
    std::vector<tuning::ApproxRule> approximate;
    std::string problem;
    if (!tuning::parse_approx(text, weak_registry(), approximate, problem))
      warnings.push_back(tuning::without_effect(text, problem));
    for (const tuning::ApproxRule& rule : problem.empty() ? approximate : std::vector<tuning::ApproxRule>())
      checks.push_back({"settings", Level::warning,
                        fmt::format("PAPAYA_APPROX: approximate results of MPI_{} for {} ({}).",
                                    name_of(rule.collective), rule.places(), rule.bound())});
  }
  for (const std::string& warning : warnings) checks.push_back({"settings", Level::warning, warning});
  if (!warnings.empty()) return settings;
  std::string set;
  for (const VariableRow& row : variable_rows())
    if (const char* const value = std::getenv(row.name.data()); value != nullptr && *value != '\0')
      set += fmt::format("{}{}={}", set.empty() ? "" : " ", row.name, value);
  checks.push_back(
      {"settings", Level::ok, set.empty() ? "All PAPAYA_ variables have their defaults." : "In force: " + set});
  if (settings.number(Variable::disable) == 1)
    checks.push_back({"settings", Level::warning, "PAPAYA_DISABLE=1: papaya does nothing in this environment."});
  return settings;
}

void check_output(const Job& job, const Settings& settings, Checks& checks) {
  if (settings.text(Variable::profile) == "off") {
    checks.push_back({"output", Level::ok, "PAPAYA_PROFILE=off: nothing is recorded."});
    return;
  }
  std::error_code error;
  fs::path parent(std::string(settings.text(Variable::output)));
  parent = parent.empty() ? fs::current_path(error) : fs::absolute(parent, error).parent_path();
  while (!fs::exists(parent, error) && parent.has_relative_path()) parent = parent.parent_path();
  const double needed =
      static_cast<double>(trace::file_bytes(trace::event_capacity, registry().size() + 1, trace::most_timed));
  if (!can_hold_folder(parent)) {
    checks.push_back(
        {"output", Level::problem,
         fmt::format("No folder can be made in {}: nothing would be recorded. Name another with PAPAYA_OUTPUT.",
                     parent.string())});
    return;
  }
  rlimit limit{};
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && static_cast<double>(limit.rlim_cur) < needed) {
    checks.push_back(
        {"output", Level::problem,
         fmt::format("Files may not be larger than {} here (ulimit -f), and a rank's record takes {}. Raise it.",
                     bytes_text(static_cast<double>(limit.rlim_cur)), bytes_text(needed))});
    return;
  }
  struct statvfs space {};
  const double free = statvfs(parent.c_str(), &space) == 0
                          ? static_cast<double>(space.f_bavail) * static_cast<double>(space.f_frsize)
                          : INFINITY;
  if (free < needed * job.ranks)
    checks.push_back({"output", Level::warning,
                      fmt::format("{} has {} free, and the job's records take {} at least. Name another folder with "
                                  "PAPAYA_OUTPUT.",
                                  parent.string(), bytes_text(free), bytes_text(needed * job.ranks))});
  else
    checks.push_back(
        {"output", Level::ok,
         fmt::format("{} can be written; a rank's record takes {} at least.", parent.string(), bytes_text(needed))});
}

void check_overhead(const Overhead& overhead, Checks& checks) {
  if (overhead.no_frames < 0) {
    checks.push_back({"overhead", Level::warning,
                      "What recording costs could not be measured: no file can be made in the temporary "
                      "folder (TMPDIR)."});
    return;
  }
  const std::string four = overhead.four_frames < 0 ? "" : fmt::format(", {:.0f} ns with four", overhead.four_frames);
  checks.push_back(
      {"overhead", overhead.one_frame > dear_call_ns ? Level::warning : Level::ok,
       fmt::format(
           "Recording a call takes {:.0f} ns, {:.0f} ns with one frame of its call site{} (two clock reads "
           "and the recorder; medians)."
           "{}",
           overhead.no_frames, overhead.one_frame, four,
           overhead.one_frame > dear_call_ns
               ? " That is slow: the machine is busy or reading its clock is slow. PAPAYA_CALLSITES=0 saves some."
               : "")});
}

}  // namespace papaya::doctor
