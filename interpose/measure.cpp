#include "interpose/measure.hpp"

#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "algorithms/transport/mpi/mpi_out_of_band.hpp"
#include "base/clock.hpp"

namespace papaya::measure {

namespace {
// To a clock: until the quickest agree, or for so long.
constexpr std::size_t least_questions = 32;
constexpr double good_clock_ns = 300;
constexpr double clock_budget_ns = 150e6;
constexpr double clock_read_ns = 50;
// The shortest of so many is the same from run to run within some per cent.
constexpr int rounds_of(std::uint64_t bytes) noexcept {
  return bytes <= 1024 ? 200 : bytes <= 16384 ? 50 : 10;
}
constexpr std::size_t core_at = 4;  // in the message
constexpr std::uint64_t failed = ~std::uint64_t{0};
constexpr int most_moves = 20;
constexpr int patient_rounds = 16;
constexpr double longest_alone_ns = 200e3;
constexpr std::uint64_t implausible_alpha_ns = 500'000;
constexpr int tag = 1;
}  // namespace

namespace {

// Waits for the request: asleep, or giving the core to whoever wants it.
bool finish(MPI_Request& request, bool asleep) noexcept {
  if (asleep) return wait_asleep(request);
  for (int done = 0;;) {
    if (PMPI_Test(&request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS) return false;
    if (done != 0) return true;
    sched_yield();
  }
}

template <class Value>
bool receive(Value& value, int peer, MPI_Comm comm, bool asleep) noexcept {
  MPI_Request request = MPI_REQUEST_NULL;
  return PMPI_Irecv(&value, sizeof value, MPI_BYTE, peer, tag, comm, &request) == MPI_SUCCESS &&
         finish(request, asleep);
}

template <class Value>
bool send(const Value& value, int peer, MPI_Comm comm) noexcept {
  return PMPI_Send(&value, sizeof value, MPI_BYTE, peer, tag, comm) == MPI_SUCCESS;
}

struct NodeTime {
  double ns_per_tick;
  std::uint64_t begin_ticks;

  double now_ns() const noexcept { return static_cast<double>(clock::ticks() - begin_ticks) * ns_per_tick; }
  std::uint64_t ticks_at(double ns) const noexcept {
    return begin_ticks + static_cast<std::uint64_t>(ns / ns_per_tick);
  }
};

// Two that share a core while another is free take a context switch a message, and the scheduler may leave them so for
// longer than is measured: this thread goes to another of its cores, and may come back.
bool leave_core(int core) noexcept {
  cpu_set_t all;
  if (sched_getaffinity(0, sizeof all, &all) != 0) return false;
  cpu_set_t others = all;
  CPU_CLR(static_cast<std::size_t>(core), &others);
  if (CPU_COUNT(&others) == 0 || sched_setaffinity(0, sizeof others, &others) != 0) return false;
  sched_setaffinity(0, sizeof all, &all);
  return true;
}

constexpr std::int32_t last_question = 1;

// Tells `peer` this clock's time as often as it asks.
void serve_clock(const trace::ClockOffset& own, int peer, MPI_Comm comm, const NodeTime& time) noexcept {
  if (!send(own, peer, comm)) return;
  for (std::int32_t question = 0; question != last_question;) {
    if (!receive(question, peer, comm, false)) return;
    if (!send(time.now_ns(), peer, comm)) return;
  }
}

// A question and its answer.
struct Answer {
  double round_trip_ns;
  double offset_ns;  // if the ways took equally long
  double at_ns;      // halfway
};

// The quickest of the answers: what lengthens a message is added on one way or the other, and by little in these.
class Quickest {
 public:
  void add(const Answer& answer) noexcept {
    ++asked_;
    std::size_t slot = count_ < kept ? count_++ : kept - 1;
    if (slot == kept - 1 && asked_ > kept && answers_[slot].round_trip_ns <= answer.round_trip_ns) return;
    for (; slot > 0 && answers_[slot - 1].round_trip_ns > answer.round_trip_ns; --slot)
      answers_[slot] = answers_[slot - 1];
    answers_[slot] = answer;
  }

  std::size_t asked() const noexcept { return asked_; }
  double offset_ns() const noexcept { return mean(&Answer::offset_ns); }
  double at_ns() const noexcept { return mean(&Answer::at_ns); }
  // An answer is off by half of what its ways took longer than they need. That is not known; the quickest took more by
  // about as much as they differ.
  double error_ns() const noexcept {
    const double offset = offset_ns();
    double squares = 0;
    for (std::size_t i = 0; i < count_; ++i)
      squares += (answers_[i].offset_ns - offset) * (answers_[i].offset_ns - offset);
    return (answers_[count_ - 1].round_trip_ns - answers_[0].round_trip_ns) / 2 +
           2 * std::sqrt(squares) / static_cast<double>(count_) + 2 * clock_read_ns;
  }
  double bound_ns() const noexcept { return std::max(answers_[count_ - 1].round_trip_ns, 0.0) / 2; }

 private:
  static constexpr std::size_t kept = 8;

  double mean(double Answer::*what) const noexcept {
    double sum = 0;
    for (std::size_t i = 0; i < count_; ++i) sum += answers_[i].*what;
    return sum / static_cast<double>(count_);
  }

  Answer answers_[kept];  // by round trip
  std::size_t count_ = 0;
  std::size_t asked_ = 0;
};

trace::ClockOffset ask_clock(int reference, MPI_Comm comm, const NodeTime& time) noexcept {
  trace::ClockOffset result{};
  trace::ClockOffset of_reference{};
  result.reference = reference;
  if (!receive(of_reference, reference, comm, true)) return result;
  Quickest quickest;
  const double begin = time.now_ns();
  for (bool last = false; !last;) {
    double there = 0;
    const double sent = time.now_ns();
    last =
        quickest.asked() >= least_questions && (sent - begin > clock_budget_ns || quickest.error_ns() < good_clock_ns);
    if (!send(std::int32_t{last ? last_question : 0}, reference, comm) || !receive(there, reference, comm, false))
      return result;
    const double received = time.now_ns();
    quickest.add({received - sent, there - (sent + received) / 2, (sent + received) / 2});
  }
  result.to_reference_ns = std::llround(quickest.offset_ns());
  result.reference_error_ns = static_cast<std::uint64_t>(std::ceil(quickest.error_ns()));
  result.offset_ns = result.to_reference_ns + of_reference.offset_ns;
  result.error_ns = result.reference_error_ns + of_reference.error_ns;
  result.bound_ns = static_cast<std::uint64_t>(std::ceil(quickest.bound_ns())) + of_reference.bound_ns;
  result.at_ticks = time.ticks_at(quickest.at_ns());
  result.measured = of_reference.measured;
  return result;
}

}  // namespace

trace::ClockOffset clock_offset(MPI_Comm leaders, double ns_per_tick, std::uint64_t begin_ticks) noexcept {
  int rank = 0;
  int size = 1;
  PMPI_Comm_rank(leaders, &rank);
  PMPI_Comm_size(leaders, &size);
  const NodeTime time{ns_per_tick, begin_ticks};
  trace::ClockOffset result{};
  result.at_ticks = clock::ticks();
  result.measured = rank == 0 ? 1 : 0;
  result.reference = -1;
  for (int served = 1; served < size; served *= 2) {
    if (rank >= 2 * served) continue;
    if (rank >= served)
      result = ask_clock(rank - served, leaders, time);
    else if (rank + served < size)
      serve_clock(result, rank + served, leaders, time);
  }
  return result;
}

cpu_set_t processors_of(OutOfBand& node) noexcept {
  cpu_set_t own;
  CPU_ZERO(&own);
  cpu_set_t all = own;
  if (sched_getaffinity(0, sizeof own, &own) != 0) CPU_ZERO(&own);
  for (const cpu_set_t& one : node.gather(own)) CPU_OR(&all, &all, &one);
  return all;
}

void message_times(MPI_Comm comm, int peer, double budget_ms, std::uint64_t* ns) noexcept {
  int rank = 0;
  PMPI_Comm_rank(comm, &rank);
  std::fill(ns, ns + alpha_size_count, 0);
  if (rank != 0 && rank != peer) return;
  const int other = rank == 0 ? peer : 0;
  std::vector<char> buffer(alpha_sizes[alpha_size_count - 1]);
  const std::uint64_t begin = clock::monotonic_ns();
  // Where the two share a core, one that waits inside MPI keeps it from the other for a slice of the scheduler's,
  // milliseconds. Elsewhere MPI's own waiting is what is to be measured.
  int patience = 0;  // rounds for which the core is given away
  const auto exchange = [&](int bytes, bool first) {
    const auto send_now = [&] {
      if (patience == 0) return PMPI_Send(buffer.data(), bytes, MPI_BYTE, other, tag, comm) == MPI_SUCCESS;
      MPI_Request request = MPI_REQUEST_NULL;
      return PMPI_Isend(buffer.data(), bytes, MPI_BYTE, other, tag, comm, &request) == MPI_SUCCESS &&
             finish(request, false);
    };
    const auto receive_now = [&] {
      if (patience == 0)
        return PMPI_Recv(buffer.data(), bytes, MPI_BYTE, other, tag, comm, MPI_STATUS_IGNORE) == MPI_SUCCESS;
      MPI_Request request = MPI_REQUEST_NULL;
      return PMPI_Irecv(buffer.data(), bytes, MPI_BYTE, other, tag, comm, &request) == MPI_SUCCESS &&
             finish(request, false);
    };
    const std::uint64_t sent = clock::monotonic_ns();
    if (first) {
      if (!send_now() || !receive_now()) return failed;
    } else {
      if (!receive_now()) return failed;
      const std::int32_t core = sched_getcpu();
      std::memcpy(&buffer[core_at], &core, sizeof core);
      if (!send_now()) return failed;
    }
    const std::uint64_t time = clock::monotonic_ns() - sent;
    patience = static_cast<double>(time) > longest_alone_ns ? patient_rounds : std::max(patience - 1, 0);
    return time;
  };
  int moves = 0;
  for (int i = 0; i < alpha_size_count; ++i) {
    const int bytes = static_cast<int>(alpha_sizes[i]);
    std::uint64_t shortest = ~std::uint64_t{0};
    // Rank 0 decides whether there is time for another one and says so in the message; the other says where it is.
    for (int left = rounds_of(alpha_sizes[i]);;) {
      if (rank == 0)
        buffer[0] = left == 1 || static_cast<double>(clock::monotonic_ns() - begin) > budget_ms * 1e6 ? 1 : 0;
      const std::uint64_t time = exchange(bytes, rank == 0);
      shortest = std::min(shortest, time);
      if (buffer[0] != 0 || time == failed) break;
      if (rank != 0) continue;
      std::int32_t core_of_other = -1;
      std::memcpy(&core_of_other, &buffer[core_at], sizeof core_of_other);
      const bool is_shared = core_of_other >= 0 && core_of_other == sched_getcpu();
      if (is_shared && moves < most_moves && leave_core(core_of_other))
        ++moves;
      else
        --left;
    }
    ns[i] = std::max<std::uint64_t>(shortest / 2, 1);
  }
  // Not a message's time, but that of other work.
  if (ns[0] > implausible_alpha_ns) std::fill(ns, ns + alpha_size_count, 0);
}

}  // namespace papaya::measure
