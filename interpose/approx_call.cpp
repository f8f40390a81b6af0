#include "interpose/approx_call.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstring>

#include "base/log.hpp"
#include "base/mpi_name.hpp"
#include "base/saturating.hpp"
#include "interpose/approx_error.hpp"
#include "interpose/device_memory.hpp"
#include "interpose/end_job.hpp"
#include "interpose/nonblocking.hpp"
#include "interpose/run.hpp"
#include "interpose/runtime.hpp"
#include "interpose/staging.hpp"

namespace papaya::approx {

namespace {

// A collective's memory is given back in MPI_Finalize only, since MPI_Comm_free waits for nobody: so there is an end to
// them. Of a process.
constexpr int most_collectives = 256;
constinit std::atomic<int> collectives{0};
// A rank that waits looks after other things as often.
constexpr double look_every_s = 1e-3;

// What a rank waits for may need this one's operations that are under way.
void move_others_on() noexcept {
  if (nonblocking::needs_attention()) nonblocking::progress();
  runtime().between_nodes.progress();
}

// The same for a rank that waits for an answer of the others.
void pause() noexcept {
  move_others_on();
  sched_yield();
}

}  // namespace

bool has_errors(const Communicator& state, const Arguments& a) noexcept {
  if (a.count < 0 || (is_rooted(a.collective) && (a.root < 0 || a.root >= state.size))) return true;
  if (!is_plausible(a.type) || !is_usable(a.type)) return true;
  return is_erroneous(state, a, is_dense(a.type));
}

bool Call::is_agreed(bool is_named) noexcept {
  return sites_->is_approximate(is_named, pause);
}

bool Call::is_exact(std::string_view why) const noexcept {
  facts_.records.approx.count_exact(number_, why);
  return false;
}

bool Call::run(Series& series) {
  if (!series.refusal.empty()) return is_exact(series.refusal);
  series.collectives.resize(static_cast<std::size_t>(rule_.cycle));
  void*& collective = series.collectives[series.calls % series.collectives.size()];
  if (collective == nullptr) collective = create(series.refusal);
  if (collective == nullptr) return is_exact(series.refusal);
  ++series.calls;
  run(collective);
  return true;
}

const char* Call::why_exact() noexcept {
  if (a_.count == 0) return "a call without data";
  if (reduces(a_.collective)) {
    if (!describe(a_.type, a_.op, reduction_, context_)) return "the operation is not defined for the type";
    kernels::ElementType type{};
    kernels::Operation operation{};
    if (!reduction_.by_table || !element_type_of(a_.type, type) || !operation_of(a_.op, operation))
      return "a type or operation that is not predefined";
    element_bytes_ = reduction_.element_bytes;
    kind_ = {a_.collective, a_.count, element_bytes_, static_cast<int>(type), static_cast<int>(operation), a_.root};
  } else {
    element_bytes_ = static_cast<std::uint64_t>(std::max<std::int64_t>(element_bytes_of(a_.type), 0));
    kind_ = {a_.collective, 0, 0, 0, 0, a_.root};
  }
  bytes_ = saturating::product(static_cast<std::uint64_t>(a_.count), element_bytes_);
  if (bytes_ == 0) return "a call without data";
  if (bytes_ > largest_message) return "more than 1 GiB";
  if (a_.collective == Collective::bcast) {
    // Only the bytes are the same on all ranks: one may have a derived type for what is an array on another.
    for (unit_ = 16; bytes_ % unit_ != 0;) unit_ /= 2;
    kind_.count = static_cast<std::int64_t>(bytes_ / unit_);
    kind_.element_bytes = unit_;
  }
  return nullptr;
}

MPI_Datatype Call::unit_type() const noexcept {
  switch (unit_) {
    case 1:
      return MPI_BYTE;
    case 2:
      return MPI_UINT16_T;
    case 4:
      return MPI_UINT32_T;
    case 8:
      return MPI_UINT64_T;
    default:
      return MPI_C_DOUBLE_COMPLEX;
  }
}

// Collective.
void* Call::create(std::string& refusal) const {
  const nonblocking::InsideMpi inside_mpi;
  int number = collectives.fetch_add(1, std::memory_order_relaxed);
  PMPI_Allreduce(MPI_IN_PLACE, &number, 1, MPI_INT, MPI_MAX, state_.handle);
  if (number >= most_collectives) {
    refusal = fmt::format("a rank has {} such collectives, of different communicators, sizes and types, already",
                          most_collectives);
  } else {
    const std::string algorithm = rule_.selection();
    const bool is_bcast = a_.collective == Collective::bcast;
    void* const made = service_.create(state_.handle,
                                       {.collective = rule_.algorithm->collective,
                                        .count = is_bcast ? kind_.count : a_.count,
                                        .type = is_bcast ? unit_type() : a_.type,
                                        .op = a_.op,
                                        .root = a_.root,
                                        .share = rule_.threshold,
                                        .algorithm = algorithm.c_str()},
                                       refusal);
    if (made != nullptr) return made;
  }
  // A program may make communicators in a loop.
  static std::atomic<bool> has_warned{false};
  if (state_.rank == 0 && (number < most_collectives || !has_warned.exchange(true)))
    log::warn(fmt::format("PAPAYA_APPROX: calls of {} bytes of {} for {} stay exact: {}.", bytes_,
                          mpi_name(a_.collective, Form::blocking), rule_.places(), refusal));
  return nullptr;
}

void Call::run(void* collective) {
  const std::uint64_t every = facts_.job.verify_every;
  const bool is_verified = every != 0 && ++state_.replaced % every == 0;
  ExactResult exact;
  if (is_verified) exact = ExactResult(a_, state_, reduction_, is_on_device(state_, a_, facts_));
  const WeakStatus status = a_.collective == Collective::bcast ? broadcast(collective) : reduce(collective);
  facts_.records.approx.count_approximate(
      number_,
      status.oldest == 0 ? -1 : static_cast<std::int64_t>(status.clock - std::min(status.clock, status.oldest)));
  double error = 0;
  if (is_verified && exact.error_of(a_, reduction_, is_on_device(state_, a_, facts_), error))
    facts_.records.approx.count_error(number_, error);
}

WeakStatus Call::wait(void* collective, const void* contribution, void* result) const {
  std::string problem;
  if (!service_.start(collective, facts_.site, contribution, result, problem))
    end_job(fmt::format("PAPAYA_APPROX: {}, and the other ranks count on this one; the job cannot go on.", problem),
            MPI_ERR_NO_MEM);
  while (!service_.wait(collective, look_every_s)) {
    move_others_on();
    if (sites_ != nullptr) sites_->progress();
  }
  return service_.status(collective);
}

WeakStatus Call::reduce(void* collective) const {
  const bool receives_it = receives(state_, a_);
  const WeakStatus status = wait(collective, a_.send, receives_it ? a_.receive : nullptr);
  // What a threshold leaves out is this rank's own, as if it were alone.
  if (a_.collective == Collective::reduce && receives_it && a_.send != MPI_IN_PLACE && status.bytes < bytes_) {
    auto* const to = static_cast<std::byte*>(a_.receive) + status.bytes;
    const auto* const from = static_cast<const std::byte*>(a_.send) + status.bytes;
    const std::uint64_t rest = bytes_ - status.bytes;
    const void* on_device = device_memory::holds(a_.receive, facts_.arrival_ticks) ? a_.receive : nullptr;
    if (on_device == nullptr && device_memory::holds(a_.send, facts_.arrival_ticks)) on_device = a_.send;
    if (on_device == nullptr)
      std::memcpy(to, from, rest);
    else if (device_memory::copy(to, from, rest, on_device).error != 0)
      end_job("PAPAYA_APPROX: a device's memory cannot be copied; the job cannot go on.", MPI_ERR_BUFFER);
  }
  return status;
}

WeakStatus Call::broadcast(void* collective) const {
  const bool is_root = state_.rank == a_.root;
  const auto call = [&](void* bytes) { return wait(collective, is_root ? bytes : nullptr, is_root ? nullptr : bytes); };
  // No element is cut.
  if (is_named(a_.type) && is_dense(a_.type) && unit_ % element_bytes_ == 0) return call(a_.receive);
  const auto count = static_cast<std::size_t>(a_.count);
  const bool on_device = device_memory::holds(a_.receive, facts_.arrival_ticks);
  Staging mine(a_.receive, count, a_.type, element_bytes_, is_root ? Staging::Use::read : Staging::Use::both,
               on_device);
  const Scratch whole(is_root ? 0 : bytes_);
  if (mine.lacks() != 0 || (!is_root && whole.data() == nullptr)) end_for_lack_of_memory(bytes_);
  if (is_root) return call(mine.bytes());
  const WeakStatus status = call(whole.data());
  // Only elements that have come as a whole.
  const std::size_t elements = status.bytes / element_bytes_;
  std::memcpy(mine.bytes(), whole.data(), elements * element_bytes_);
  mine.write_back(elements);
  return status;
}

}  // namespace papaya::approx
