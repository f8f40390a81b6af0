#include "api/instance.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <mutex>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "interpose/device_memory.hpp"
#include "interpose/mpi_types.hpp"

namespace papaya::weak {

namespace {

std::uint64_t deadline_after(double seconds) noexcept {
  if (seconds < 0) return ~std::uint64_t{0};
  const double ns = std::min(seconds * 1e9, 1e18);
  return clock::ticks() + policy().to_ticks(ns);
}

}  // namespace

Instance::~Instance() {
  if (is_entered_) leave(*this);
  algorithm_.reset();
  if (!is_named(type_) && type_ != MPI_DATATYPE_NULL) PMPI_Type_free(&type_);
  if (handler_ != MPI_ERRHANDLER_NULL) PMPI_Errhandler_free(&handler_);
}

Instance::Part Instance::part() const noexcept {
  const bool is_root = request_.root == meeting_->rank();
  switch (choice_.algorithm->collective) {
    case WeakCollective::threshold_bcast:
      return {.reads = is_root, .writes = !is_root};
    case WeakCollective::threshold_reduce:
      return {.reads = true, .writes = is_root};
    default:
      return {.reads = true, .writes = true};
  }
}

// MPI_BOTTOM is a null pointer as well, but only types that are not contiguous begin elsewhere.
bool Instance::is_missing(const void* buffer) const noexcept {
  return buffer == nullptr && request_.bytes() != 0 && is_dense(type_);
}

Error Instance::start(const void* contribution, void* result) {
  const auto [reads, writes] = part();
  const bool is_in_place = reads && contribution == MPI_IN_PLACE;
  const bool takes_contribution = reads && !is_in_place;
  const bool takes_result = writes || is_in_place;
  if (takes_contribution && is_missing(contribution)) return {MPI_ERR_BUFFER, "the contribution is a null pointer"};
  if (takes_result && is_missing(result)) return {MPI_ERR_BUFFER, "the result is a null pointer"};
  const std::uint64_t now = clock::ticks();
  const auto stage = [&](const void* buffer, Staging::Use use) {
    return Staging(buffer, request_.count, type_, request_.element_bytes, use, device_memory::holds(buffer, now));
  };
  contribution_ = takes_contribution ? stage(contribution, Staging::Use::read) : Staging();
  result_ = takes_result ? stage(result, !is_in_place ? Staging::Use::write
                                         : writes     ? Staging::Use::both
                                                      : Staging::Use::read)
                         : Staging();
  if (contribution_.lacks() != 0 || result_.lacks() != 0)
    return {MPI_ERR_NO_MEM, fmt::format("there is no memory to pack {} bytes in", request_.bytes())};
  const std::byte* const mine = is_in_place ? result_.bytes() : contribution_.bytes();
  const std::byte* const brought = total_ == nullptr ? mine : total_->add(mine);
  const std::lock_guard turn(turn_);
  is_under_way_ = true;
  recording_.begin();
  algorithm_->start({.send = brought,
                     .receive = writes ? result_.bytes() : nullptr,
                     .count = request_.count,
                     .bytes = request_.bytes(),
                     .root = request_.root,
                     .reduction = request_.reduction});
  algorithm_->progress();
  recording_.leave();
  return {};
}

void Instance::finish() {
  if (total_ != nullptr) total_->complete(*algorithm_, result_.bytes());
  result_.write_back(algorithm_->status().bytes / std::max<std::size_t>(request_.element_bytes, 1));
  contribution_ = {};
  result_ = {};
  is_under_way_ = false;
  recording_.finish([this] { return status(); }, request_.element_bytes);
  meeting_->leave_call(request_.bytes());
}

Error Instance::flush() {
  if (choice_.algorithm->collective != WeakCollective::sparse_allreduce)
    return {MPI_ERR_ARG, "only a sparse allreduce keeps something back"};
  algorithm_->flush();
  return {};
}

Error Instance::withdraw(void* contributions, long long& calls) {
  if (choice_.algorithm->collective != WeakCollective::partial_allreduce)
    return {MPI_ERR_ARG, "only a partial allreduce carries contributions over"};
  if (is_missing(contributions)) return {MPI_ERR_BUFFER, "the buffer is a null pointer"};
  Staging to(contributions, request_.count, type_, request_.element_bytes, Staging::Use::write,
             device_memory::holds(contributions, clock::ticks()));
  if (to.lacks() != 0) return {MPI_ERR_NO_MEM, fmt::format("there is no memory to pack {} bytes in", to.lacks())};
  calls = static_cast<long long>(algorithm_->withdraw(to.bytes()));
  if (calls != 0) to.write_back();
  return {};
}

void Turn::lock() noexcept {
  while (!try_lock()) sched_yield();
}

// A call that has all it waits for stays under way until its own thread finds so.
void Instance::progress() noexcept {
  meeting_->progress();
  const std::unique_lock turn(turn_, std::try_to_lock);
  if (!turn) return;
  if (is_under_way_) algorithm_->progress();
  algorithm_->stand_in();
}

bool Instance::test() {
  if (!is_under_way_) return true;
  recording_.enter();
  bool is_done = false;
  {
    const std::lock_guard turn(turn_);
    int found = 0;
    PMPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, meeting_->comm(), &found, MPI_STATUS_IGNORE);
    is_done = algorithm_->progress();
    if (is_done) finish();
  }
  // As whoever waits does: what it tests for may need another collective of this rank's first.
  if (!is_done) {
    move_all_on();
    recording_.leave();
  }
  return is_done;
}

bool Instance::wait(double seconds) {
  if (!is_under_way_) return true;
  if (seconds == 0) return test();
  recording_.enter();
  const std::lock_guard turn(turn_);
  const Waiting waiting(*this);
  const bool is_done = algorithm_->finish(deadline_after(seconds), site_);
  is_done ? finish() : recording_.leave();
  return is_done;
}

papaya_weak_status Instance::status() const {
  const WeakStatus& status = algorithm_->status();
  return {.clock = static_cast<long long>(status.clock),
          .oldest = static_cast<long long>(status.oldest),
          .own = static_cast<long long>(total_ != nullptr ? status.clock : status.own),
          .unused = static_cast<long long>(status.unused),
          .ranks = status.ranks,
          .elements = static_cast<MPI_Count>(status.bytes / std::max<std::size_t>(request_.element_bytes, 1)),
          .share = status.share,
          .residual = status.residual,
          .waited = policy().to_ns(status.waited_ticks) * 1e-9};
}

Error Instance::late() {
  const std::lock_guard turn(turn_);
  const int rank = algorithm_->awaited_rank();
  return {MPI_ERR_PENDING,
          fmt::format("the limit of {:g} s has passed, and call {} still waits for {}; "
                      "papaya_weak_wait goes on with it",
                      limit_, algorithm_->status().clock, rank < 0 ? "other ranks" : fmt::format("rank {}", rank))};
}

// Of a thread whose turn it is.
std::string Instance::stalled(double seconds) const {
  const int rank = algorithm_->awaited_rank();
  return fmt::format("rank {} has waited {:.0f} s in call {} of {} for {}.", meeting_->rank(), seconds,
                     algorithm_->status().clock, name_, rank < 0 ? "other ranks" : fmt::format("rank {}", rank));
}

// Looks at what MPI moves too, which rings no bell.
template <class Ready>
bool Instance::wait_for(Ready&& ready, std::uint64_t deadline_ticks) {
  bool is_late = false;
  meeting_->team().wire->wait(
      policy(), site_, [&] { return ready() || (is_late = clock::ticks() >= deadline_ticks); }, nullptr);
  return !is_late;
}

// True once it has come to that stage, or there is nothing more to be done.
bool Instance::advance_to(Closing stage) {
  const auto is_complete = [this] {
    int flag = 0;
    return PMPI_Test(&request_of_closing_, &flag, MPI_STATUS_IGNORE) != MPI_SUCCESS || flag != 0;
  };
  while (closing_ < stage) switch (closing_) {
      case Closing::not_begun: {
        // Who has made fewer calls will never send what the others wait for.
        const auto calls = static_cast<std::int64_t>(algorithm_->status().clock);
        calls_ = {calls, -calls};
        PMPI_Iallreduce(calls_.data(), least_calls_.data(), 2, MPI_INT64_T, MPI_MIN, meeting_->comm(),
                        &request_of_closing_);
        closing_ = Closing::comparing;
        break;
      }
      case Closing::comparing:
        if (!is_complete()) return false;
        closing_ = least_calls_[0] == -least_calls_[1] ? Closing::ending : Closing::uneven;
        break;
      case Closing::ending:
        // What follows waits in MPI for all: a rank that has given up before is not among them.
        if (is_under_way_ || !algorithm_->may_end()) return false;
        PMPI_Ibarrier(meeting_->comm(), &request_of_closing_);
        closing_ = Closing::leaving;
        break;
      case Closing::leaving:
        if (!is_complete()) return false;
        closing_ = Closing::done;
        break;
      case Closing::done:
      case Closing::uneven:
        break;
    }
  return true;
}

Error Instance::tear_down() {
  if (closing_ == Closing::uneven)
    return {MPI_ERR_ARG,
            fmt::format("ranks have made different numbers of calls, {} to {}; its memory is not given back",
                        least_calls_[0], -least_calls_[1])};
  leave(*this);
  is_entered_ = false;
  algorithm_.reset();
  meeting_.reset();
  return {};
}

Error Instance::close() {
  const std::uint64_t deadline = deadline_after(limit());
  if (wait_for([this] { return advance_to(Closing::done); }, deadline)) return tear_down();
  return {MPI_ERR_PENDING,
          fmt::format("other ranks have not come to free it within {} s; its memory is not given back", limit_)};
}

// All ranks come here, or have been to close(): what is waited for first is that, as MPI_Finalize does.
void Instance::end() noexcept {
  if (closing_ == Closing::uneven) return;
  called_from(nullptr);
  if (!wait_for([this] { return advance_to(Closing::ending); }, deadline_after(limit()))) return;
  // From here on there is nothing that takes long, but for what a rank does that has given up.
  const double long_enough = limit_ > 0 ? limit_ : 10;
  if (closing_ != Closing::uneven && is_under_way_ && !wait(long_enough)) return;
  if (!wait_for([this] { return advance_to(Closing::done); }, deadline_after(long_enough))) return;
  if (const Error error = tear_down(); error.is_set()) log::info(error.sentence + ".");
}

}  // namespace papaya::weak
