// What the report of a large run costs, on synthetic records as many ranks would leave them.
//
//   measure_report make FOLDER RANKS [EVENTS]   writes them: 32 ranks a node, EVENTS calls each, a full ring without;
//                                               of more, the ring has wrapped
//   measure_report write FOLDER [NODES]         the report as rank 0 makes it in MPI_Finalize, with so many processes
//                                               in place of the nodes' leaders: seconds and memory of each
//   measure_report run COMMAND ARGUMENTS...     the same of a command, such as `papaya report FOLDER`
#include <fcntl.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "base/mpi_kind.hpp"
#include "base/version.hpp"
#include "profiler/analysis/readers.hpp"
#include "profiler/record/format.hpp"
#include "profiler/report/report.hpp"

namespace {

using namespace papaya;

constexpr int ranks_of_node = 32;
constexpr std::uint64_t origin_ticks = 1'000'000;  // a tick is a nanosecond
constexpr std::uint64_t period_ns = 100'000;       // from call to call
constexpr std::uint64_t most_late_ns = 20'000;
constexpr std::uint64_t world_id = 1;
constexpr std::uint64_t node_id = 100;  // of node n: + n
constexpr std::uint64_t node_calls_every = 8;

std::uint64_t random_of(std::uint64_t key) {
  return trace::arrival_key(key, 17);
}

template <std::size_t size>
void set(char (&field)[size], const std::string& text) {
  std::memcpy(field, text.data(), std::min(text.size(), size - 1));
}

class Writer {
 public:
  Writer(std::string folder, int ranks, std::uint64_t events) : folder_(std::move(folder)), ranks_(ranks) {
    const std::uint64_t kept = std::min(events, trace::event_capacity);
    header_.event_count = events;
    events_.resize(kept);
    intervals_.resize(kept);
    fill_header();
  }

  bool write(int rank) {
    const int node = rank / ranks_of_node;
    header_.rank = rank;
    header_.node = node;
    header_.node_rank = rank % ranks_of_node;
    header_.node_ranks = std::min(ranks_of_node, ranks_ - node * ranks_of_node);
    header_.process = 1000 + rank;
    std::memset(header_.host, 0, sizeof header_.host);
    set(header_.host, "node" + std::to_string(node));
    const trace::ClockOffset offset{0, 100, origin_ticks, node == 0 ? 0u : 1u, 0, 100, 200};
    header_.clock[0] = header_.clock[1] = offset;
    header_.clock[1].at_ticks = header_.end_ticks;
    fill_events(rank, node);
    return write_file(rank, node);
  }

 private:
  void fill_header() {
    std::memcpy(header_.magic, trace::magic, sizeof header_.magic);
    header_.version = trace::format_version;
    header_.endian_mark = trace::endian_mark;
    header_.header_bytes = sizeof(trace::Header);
    header_.event_bytes = sizeof(trace::Event);
    header_.totals_offset = trace::totals_offset;
    header_.communicators_offset = trace::communicators_offset;
    header_.communicator_capacity = trace::communicator_capacity;
    header_.communicator_count = 2;
    header_.events_offset = trace::events_offset;
    header_.event_capacity = trace::event_capacity;
    header_.ranks = ranks_;
    header_.nodes = (ranks_ + ranks_of_node - 1) / ranks_of_node;
    header_.cores = ranks_of_node;
    header_.ending = static_cast<std::uint32_t>(trace::Ending::finalized);
    header_.ns_per_tick = 1;
    header_.begin_ticks = header_.init_ticks = origin_ticks;
    header_.begin_unix_ns = 1'700'000'000'000'000'000;
    header_.end_ticks = origin_ticks + (header_.event_count + 1) * period_ns;
    for (std::size_t i = 0; i < 3; ++i) header_.alpha[i] = {std::uint64_t{8} << (8 * i), 500u << i, 1500u << i};
    set(header_.mpi, "Open MPI 4.1.4");
    set(header_.papaya_version, PAPAYA_VERSION);
    set(header_.program, "synthetic");
    set(header_.command, "synthetic");
    header_.modules_offset = trace::modules_offset;
    header_.module_count = 1;
    header_.frames_offset = trace::frames_offset;
    header_.frame_count = 2;
    header_.call_sites_offset = trace::call_sites_offset;
    header_.call_site_count = 2;
    header_.node_board_offset = trace::node_board_offset;
    header_.node_calls_offset = trace::node_calls_offset;
    header_.node_calls_capacity = trace::node_calls_capacity;
    header_.phase_count = 1;
    header_.algorithms_offset = trace::algorithms_offset(trace::event_capacity);
    header_.algorithm_count = 1;
    set(header_.reason_ids[0], "none");
    header_.timed_offset = trace::timed_offset(trace::event_capacity, 1);
    header_.timed_count = 1;
    header_.intervals_offset = trace::intervals_offset(trace::event_capacity, 1, 1);
    header_.interval_capacity = trace::interval_capacity;
  }

  // The same calls on all ranks, each up to 20 us late; every eighth on the node alone.
  void fill_events(int rank, int node) {
    totals_ = {};
    timed_ticks_ = 0;
    for (std::uint64_t number = header_.event_count - events_.size(); number < header_.event_count; ++number) {
      const bool is_of_node = number % node_calls_every == node_calls_every - 1;
      const bool is_bcast = number % 16 == 4;
      const std::uint64_t random = random_of(number << 20 | static_cast<std::uint64_t>(rank));
      const std::uint64_t begin = origin_ticks + (number + 1) * period_ns;
      trace::Event& event = events_[number & (trace::event_capacity - 1)];
      event = {};
      event.arrival_ticks = begin + random % most_late_ns;
      event.exit_ticks = begin + most_late_ns + 1000 + (random >> 32) % 2000;
      event.communicator = is_of_node ? node_id + static_cast<std::uint64_t>(node) : world_id;
      const std::uint64_t of_node = number / node_calls_every;
      event.call = is_of_node ? of_node : number - of_node;
      event.bytes = std::uint64_t{8} << number % 4;
      event.call_site = static_cast<std::uint32_t>(1 + number % 2);
      event.commit = static_cast<std::uint32_t>(number + 1);
      event.root = is_bcast ? 0 : -1;
      event.collective = static_cast<std::uint8_t>(is_bcast ? Collective::bcast : Collective::allreduce);
      trace::Total& total = totals_.by_size[event.collective][static_cast<std::size_t>(Form::blocking)]
                                           [static_cast<std::size_t>(size_class_of(event.bytes))];
      ++total.calls;
      total.bytes += event.bytes;
      total.ticks += event.exit_ticks - event.arrival_ticks;
      trace::Interval& interval = intervals_[number & (trace::interval_capacity - 1)];
      interval = {random % 5000, period_ns / 2, 0, 2, event.commit, 0};
      timed_ticks_ += interval.mpi_ticks;
    }
  }

  bool write_file(int rank, int node) {
    char name[32];
    std::snprintf(name, sizeof name, "/rank-%05d.pap", rank);
    file_ = open((folder_ + name).c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (file_ < 0) return false;
    trace::Communicator communicators[2]{};
    communicators[0] = {world_id, 0, header_.event_count, ranks_, rank, header_.nodes, 0, "MPI_COMM_WORLD"};
    communicators[1] = {node_id + static_cast<std::uint64_t>(node),
                        world_id,
                        header_.event_count / node_calls_every,
                        header_.node_ranks,
                        header_.node_rank,
                        1,
                        static_cast<std::int32_t>(trace::Origin::node_split),
                        ""};
    trace::Module module{};
    set(module.path, "/usr/bin/synthetic");
    const trace::Frame frames[2] = {{1, 0, 0x1000}, {1, 0, 0x2000}};
    const trace::CallSite sites[2] = {{0, 1}, {1, 1}};
    trace::Algorithm algorithm{};
    set(algorithm.name, "native");
    trace::TimedFunction timed{};
    set(timed.name, "MPI_Send");
    timed.kind = static_cast<std::uint32_t>(MpiKind::point_to_point);
    timed.calls = 2 * header_.event_count;
    timed.ticks = timed_ticks_;
    const bool good = ftruncate(file_, static_cast<off_t>(trace::file_bytes(trace::event_capacity, 1, 1))) == 0 &&
                      put(0, &header_, sizeof header_) && put(trace::totals_offset, &totals_, sizeof totals_) &&
                      put(trace::communicators_offset, communicators, sizeof communicators) &&
                      put(trace::modules_offset, &module, sizeof module) &&
                      put(trace::frames_offset, frames, sizeof frames) &&
                      put(trace::call_sites_offset, sites, sizeof sites) &&
                      put(trace::events_offset, events_.data(), events_.size() * sizeof(trace::Event)) &&
                      put(header_.algorithms_offset, &algorithm, sizeof algorithm) &&
                      put(header_.timed_offset, &timed, sizeof timed) &&
                      put(header_.intervals_offset, intervals_.data(), intervals_.size() * sizeof(trace::Interval));
    return close(file_) == 0 && good;
  }

  bool put(std::uint64_t offset, const void* from, std::size_t bytes) const {
    return pwrite(file_, from, bytes, static_cast<off_t>(offset)) == static_cast<ssize_t>(bytes);
  }

  std::string folder_;
  int ranks_;
  int file_ = -1;
  trace::Header header_{};
  trace::Totals totals_{};
  std::uint64_t timed_ticks_ = 0;
  std::vector<trace::Event> events_;
  std::vector<trace::Interval> intervals_;
};

int make(const std::string& folder, int ranks, std::uint64_t events) {
  mkdir(folder.c_str(), 0777);
  Writer writer(folder, ranks, events);
  for (int rank = 0; rank < ranks; ++rank)
    if (!writer.write(rank)) {
      std::perror(folder.c_str());
      return 1;
    }
  return 0;
}

void print(std::chrono::steady_clock::time_point begin, int who) {
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - begin;
  rusage usage{};
  getrusage(who, &usage);
  const auto seconds = [](const timeval& value) {
    return static_cast<double>(value.tv_sec) + 1e-6 * static_cast<double>(value.tv_usec);
  };
  std::printf("%.2f s (%.2f s user, %.2f s system), %.0f MiB\n", time.count(), seconds(usage.ru_utime),
              seconds(usage.ru_stime), static_cast<double>(usage.ru_maxrss) / 1024);
}

// Processes of this machine, each with a socket to each other.
class SocketReaders final : public report::Readers {
 public:
  // Returns in all of them.
  explicit SocketReaders(std::size_t all) : sockets_(all) {
    std::vector<std::vector<int>> of(all, std::vector<int>(all, -1));
    for (std::size_t a = 0; a < all; ++a)
      for (std::size_t b = a + 1; b < all; ++b)
        if (int ends[2]; socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0) {
          of[a][b] = ends[0];
          of[b][a] = ends[1];
        }
    while (number_ + 1 < all) {
      const pid_t child = fork();
      if (child != 0) break;
      ++number_;
    }
    sockets_ = of[number_];
  }
  std::size_t number() const override { return number_; }
  std::size_t all() const override { return sockets_.size(); }
  void send(std::size_t to, std::span<const std::byte> message) noexcept override {
    const std::size_t size = message.size();
    put(to, std::as_bytes(std::span(&size, 1)));
    put(to, message);
  }
  std::vector<std::byte> receive(std::size_t from) noexcept override {
    std::size_t size = 0;
    get(from, std::as_writable_bytes(std::span(&size, 1)));
    std::vector<std::byte> message(size);
    get(from, message);
    return message;
  }
  void ask(std::size_t count) noexcept override {
    for (std::size_t to = 1; to < all(); ++to) send(to, std::as_bytes(std::span(&count, 1)));
  }
  std::size_t asked() noexcept override {
    std::size_t count = 0;
    if (const std::vector<std::byte> message = receive(0); message.size() == sizeof count)
      std::memcpy(&count, message.data(), sizeof count);
    return count;
  }

 private:
  void put(std::size_t to, std::span<const std::byte> bytes) const {
    for (ssize_t now = 0; !bytes.empty(); bytes = bytes.subspan(static_cast<std::size_t>(now)))
      if (now = ::write(sockets_[to], bytes.data(), bytes.size()); now <= 0) std::exit(1);
  }
  void get(std::size_t from, std::span<std::byte> bytes) const {
    for (ssize_t now = 0; !bytes.empty(); bytes = bytes.subspan(static_cast<std::size_t>(now)))
      if (now = ::read(sockets_[from], bytes.data(), bytes.size()); now <= 0) std::exit(1);
  }

  std::vector<int> sockets_;
  std::size_t number_ = 0;
};

int write(const std::string& folder, std::size_t nodes) {
  SocketReaders readers(nodes);
  const auto begin = std::chrono::steady_clock::now();
  std::string error;
  if (readers.number() != 0) {
    report::help_to_write_reports(folder, readers);
  } else if (!report::write_reports(folder, folder, &error, &readers)) {
    std::fprintf(stderr, "%s\n", error.c_str());
    return 1;
  }
  if (nodes > 1) std::printf("node %zu: ", readers.number());
  print(begin, RUSAGE_SELF);
  std::fflush(stdout);
  while (wait(nullptr) > 0) {
  }
  return 0;
}

int run(char** command) {
  const auto begin = std::chrono::steady_clock::now();
  pid_t child = 0;
  int status = 0;
  if (posix_spawnp(&child, command[0], nullptr, nullptr, command, environ) != 0 || waitpid(child, &status, 0) != child)
    return 1;
  std::fflush(stdout);
  print(begin, RUSAGE_CHILDREN);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 2 ? argv[1] : "";
  if (what == "make" && argc >= 4)
    return make(argv[2], std::atoi(argv[3]), argc > 4 ? std::strtoull(argv[4], nullptr, 10) : trace::event_capacity);
  if (what == "write") return write(argv[2], argc > 3 ? std::strtoul(argv[3], nullptr, 10) : 1);
  if (what == "run") return run(argv + 2);
  std::fprintf(stderr, "usage: measure_report make FOLDER RANKS [EVENTS] | write FOLDER [NODES] | run COMMAND...\n");
  return 2;
}
