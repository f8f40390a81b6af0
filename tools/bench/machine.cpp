#include "tools/bench/machine.hpp"

#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <fstream>
#include <new>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tools/bench/quiet.hpp"

namespace papaya::bench {

namespace {

constexpr std::size_t line_bytes = 64;
constexpr int most_lines = 33;
constexpr int line_batches = 20;
constexpr int line_rounds = 1000;
constexpr double longest_line_us = 1e6;  // it takes about 10 ms where nobody disturbs
constexpr double copy_us = 3000;         // per measurement
constexpr int copy_repeats = 3;
constexpr int message_rounds = 10;

struct alignas(line_bytes) Line {
  std::atomic<std::uint64_t> value;
};

// Ties the calling process to one processor while it lives.
class Tied {
 public:
  explicit Tied(int processor) {
    tied_ = processor >= 0 && sched_getaffinity(0, sizeof before_, &before_) == 0;
    if (!tied_) return;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(processor, &one);
    tied_ = sched_setaffinity(0, sizeof one, &one) == 0;
  }
  ~Tied() {
    if (tied_) sched_setaffinity(0, sizeof before_, &before_);
  }
  Tied(const Tied&) = delete;
  Tied& operator=(const Tied&) = delete;
  bool is_tied() const noexcept { return tied_; }

 private:
  cpu_set_t before_;
  bool tied_ = false;
};

// All processors that any rank of the node may use.
std::vector<int> allowed_processors(MPI_Comm node) {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  sched_getaffinity(0, sizeof allowed, &allowed);
  quiet::unite(&allowed, static_cast<int>(sizeof allowed), node);
  std::vector<int> result;
  for (int i = 0; i < CPU_SETSIZE; ++i)
    if (CPU_ISSET(i, &allowed)) result.push_back(i);
  return result;
}

// One of each core.
std::vector<int> processors(MPI_Comm node) {
  std::vector<int> result;
  std::set<std::string> cores;
  for (const int i : allowed_processors(node)) {
    std::ifstream file("/sys/devices/system/cpu/cpu" + std::to_string(i) + "/topology/thread_siblings_list");
    std::string siblings = std::to_string(i);
    std::getline(file, siblings);
    if (cores.insert(siblings).second) result.push_back(i);
  }
  return result;
}

// Two ranks take turns at a line: even numbers are the first one's turn, odd ones the second's. A turn that
// does not come (the other rank has lost its core for long) ends the measurement on both.
class Turns {
 public:
  Turns(Line& line, Line& given_up, std::uint64_t own, const CommonClock& clock)
      : line_(line), given_up_(given_up), own_(own), clock_(clock), deadline_us_(clock.now_us() + longest_line_us) {}

  bool wait() noexcept {
    for (unsigned looks = 1;; ++looks) {
      seen_ = line_.value.load(std::memory_order_acquire);
      if (seen_ % 2 == own_) return true;
      if (looks % 4096 != 0) continue;
      if (clock_.now_us() > deadline_us_) given_up_.value.store(1, std::memory_order_relaxed);
      if (given_up_.value.load(std::memory_order_relaxed) != 0) return false;
    }
  }
  void pass() noexcept { line_.value.store(seen_ + 1, std::memory_order_release); }
  std::uint64_t seen() const noexcept { return seen_; }

 private:
  Line& line_;
  Line& given_up_;
  std::uint64_t own_;
  const CommonClock& clock_;
  double deadline_us_;
  std::uint64_t seen_ = 0;
};

// Each turn moves the line, dirty, to the other core. 0 if given up.
double line_turn_us(Turns& turns, const CommonClock& clock) {
  double shortest = 1e300;
  for (int batch = 0; batch < line_batches; ++batch) {
    const double begin = clock.now_us();
    for (int round = 0; round < line_rounds; ++round) {
      if (!turns.wait()) return 0;
      turns.pass();
    }
    shortest = std::min(shortest, (clock.now_us() - begin) / (2 * line_rounds));
  }
  return shortest;
}

// One rank dirties lines, the other reads the first `count` of them at once.
double read_lines_us(Line* lines, Turns& turns, int count, bool reader, const CommonClock& clock) {
  double shortest = 1e300;
  for (int batch = 0; batch < 10 * line_batches; ++batch) {
    // The reader's own turn comes first, and last.
    if (reader && batch == 0) {
      if (!turns.wait()) return 0;
      turns.pass();
    }
    if (!turns.wait()) return 0;
    if (reader) {
      const double begin = clock.now_us();
      std::uint64_t sum = 0;
      for (int i = 0; i < count; ++i) sum += lines[i].value.load(std::memory_order_relaxed);
      __asm__ volatile("" ::"r"(sum));
      shortest = std::min(shortest, clock.now_us() - begin);
    } else {
      for (int i = 0; i < most_lines; ++i) lines[i].value.store(turns.seen() + 2, std::memory_order_relaxed);
    }
    if (!reader || batch + 1 < 10 * line_batches) turns.pass();
  }
  return shortest;
}

void measure_lines(const CommonClock& clock, int node_rank, const std::vector<int>& cpus, Machine& machine) {
  MPI_Win window = MPI_WIN_NULL;
  void* own = nullptr;
  PMPI_Win_allocate_shared(node_rank == 0 ? static_cast<MPI_Aint>((most_lines + 3) * sizeof(Line)) : 0, 1,
                           MPI_INFO_NULL, clock.node(), &own, &window);
  MPI_Aint size = 0;
  int unit = 0;
  void* base = nullptr;
  PMPI_Win_shared_query(window, 0, &size, &unit, &base);
  // The window need not begin at a cache line.
  const auto address = (reinterpret_cast<std::uintptr_t>(base) + line_bytes - 1) / line_bytes * line_bytes;
  auto* const lines = reinterpret_cast<Line*>(address);
  if (node_rank == 0) std::memset(static_cast<void*>(lines), 0, (most_lines + 2) * sizeof(Line));
  quiet::barrier(clock.node());
  if (node_rank < 2) {
    const Tied tied(cpus[static_cast<std::size_t>(node_rank)]);
    const bool first = node_rank == 0;
    Turns turns(lines[most_lines], lines[most_lines + 1], first ? 0 : 1, clock);
    const double turn = line_turn_us(turns, clock);
    const double one = read_lines_us(lines, turns, 1, first, clock);
    const double many = read_lines_us(lines, turns, most_lines, first, clock);
    machine.line_us = turn;
    machine.further_line_us = std::clamp((many - one) / (most_lines - 1), 0.0, turn);
  }
  quiet::barrier(clock.node());
  PMPI_Win_free(&window);
}

double own_s() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  return static_cast<double>(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
         static_cast<double>(used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1e-6;
}

double copies_per_us(std::vector<char>& from, std::vector<char>& to, std::size_t bytes, const CommonClock& clock) {
  double copies = 0;
  const double begin = clock.now_us();
  double now = begin;
  for (std::size_t batch = std::max<std::size_t>(1, 65536 / bytes); now < begin + copy_us; now = clock.now_us()) {
    for (std::size_t i = 0; i < batch; ++i) {
      std::memcpy(to.data(), from.data(), bytes);
      __asm__ volatile("" ::"r"(to.data()) : "memory");
    }
    copies += static_cast<double>(batch);
  }
  return copies / (now - begin);
}

}  // namespace

void measure_lines_again(const CommonClock& clock, MPI_Comm world, Machine& machine) {
  int rank = 0, node_rank = 0, node_ranks = 1;
  PMPI_Comm_rank(world, &rank);
  PMPI_Comm_rank(clock.node(), &node_rank);
  PMPI_Comm_size(clock.node(), &node_ranks);
  if (quiet::maximum(rank == 0 ? 1 : 0, clock.node()) > 0 && node_ranks > 1) {
    const std::vector<int> cpus = processors(clock.node());
    Machine again;
    if (cpus.size() > 1) measure_lines(clock, node_rank, cpus, again);
    if (again.line_us > 0 && (machine.line_us == 0 || again.line_us < machine.line_us)) {
      machine.line_us = again.line_us;
      machine.further_line_us = again.further_line_us;
    }
  }
  quiet::barrier(world);
}

Machine measure_machine(const CommonClock& clock, MPI_Comm world, int cores_of_node, std::size_t largest_bytes) {
  Machine machine;
  int rank = 0, node_rank = 0, node_ranks = 1;
  PMPI_Comm_rank(world, &rank);
  PMPI_Comm_rank(clock.node(), &node_rank);
  PMPI_Comm_size(clock.node(), &node_ranks);
  const bool measures = quiet::maximum(rank == 0 ? 1 : 0, clock.node()) > 0;
  if (measures) {
    const std::vector<int> cpus = processors(clock.node());
    if (node_ranks > 1 && cpus.size() > 1) measure_lines(clock, node_rank, cpus, machine);

    const int copying = std::min({node_ranks, cores_of_node, static_cast<int>(cpus.size())});
    std::vector<std::size_t> sizes = {4096, 65536, 262144, 1u << 20};
    if (node_ranks <= 32 || largest_bytes > sizes.back()) sizes.push_back(16u << 20);
    const bool takes_part = node_rank < copying;
    const Tied tied(takes_part ? cpus[static_cast<std::size_t>(node_rank)] : -1);
    std::vector<char> from(takes_part ? sizes.back() : 0, 1), to(from.size(), 2);
    for (const std::size_t bytes : sizes) {
      CopyRate rate{bytes, 0, 0};
      for (int repeat = 0; repeat < copy_repeats; ++repeat) {
        quiet::barrier(clock.node());
        const double alone = node_rank == 0 ? copies_per_us(from, to, bytes, clock) : 0;
        quiet::barrier(clock.node());
        const double start = quiet::share(clock.now_us() + 1000, clock.node());
        if (takes_part) clock.wait_until(start, true);
        const double all = quiet::sum(takes_part ? copies_per_us(from, to, bytes, clock) : 0, clock.node());
        rate.one_core = std::max(rate.one_core, alone * static_cast<double>(bytes) * 1e6);
        rate.all_cores = std::max(rate.all_cores, all * static_cast<double>(bytes) * 1e6);
      }
      rate.all_cores = std::max(rate.all_cores, rate.one_core);
      machine.copy_rates.push_back(rate);
    }
  }
  quiet::barrier(world);
  return machine;
}

Others::Others(const CommonClock& clock)
    : clock_(clock),
      processors_(allowed_processors(clock.node())),
      begin_us_(clock.now_us()),
      begin_busy_s_(busy_s()),
      begin_own_s_(own_s()) {}

// Lines "cpuN user nice system idle iowait irq softirq steal ..." in clock ticks; what is stolen from a
// virtual machine went to others as well.
double Others::busy_s() const {
  std::ifstream file("/proc/stat");
  double ticks = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.compare(0, 3, "cpu") != 0) break;
    std::istringstream words(line.substr(3));
    int processor = -1;
    double user = 0, nice = 0, system = 0, idle = 0, waiting = 0, interrupts = 0, soft = 0, stolen = 0;
    if (line[3] == ' ' ||
        !(words >> processor >> user >> nice >> system >> idle >> waiting >> interrupts >> soft >> stolen))
      continue;
    if (std::find(processors_.begin(), processors_.end(), processor) != processors_.end())
      ticks += user + nice + system + interrupts + soft + stolen;
  }
  return ticks / static_cast<double>(sysconf(_SC_CLK_TCK));
}

double Others::share() const {
  const double own = quiet::sum(own_s() - begin_own_s_, clock_.node());
  const double all = (clock_.now_us() - begin_us_) * 1e-6 * static_cast<double>(processors_.size());
  return begin_busy_s_ > 0 ? std::clamp((busy_s() - begin_busy_s_ - own) / all, 0.0, 1.0) : 0;
}

double message_us(const CommonClock& clock, MPI_Comm world, std::size_t bytes) {
  int rank = 0, ranks = 1;
  PMPI_Comm_rank(world, &rank);
  PMPI_Comm_size(world, &ranks);
  double shortest = 1e300;
  if (rank < 2 && ranks > 1) {
    std::vector<char> buffer(std::max<std::size_t>(bytes, 1));
    const int other = 1 - rank;
    const int count = static_cast<int>(bytes);
    for (int round = 0; round < message_rounds; ++round) {
      const double begin = clock.now_us();
      if (rank == 0) PMPI_Send(buffer.data(), count, MPI_BYTE, other, 1, world);
      PMPI_Recv(buffer.data(), count, MPI_BYTE, other, 1, world, MPI_STATUS_IGNORE);
      if (rank == 1) PMPI_Send(buffer.data(), count, MPI_BYTE, other, 1, world);
      shortest = std::min(shortest, clock.now_us() - begin);
    }
  }
  return quiet::share(ranks > 1 ? shortest / 2 : 0, world);
}

}  // namespace papaya::bench
