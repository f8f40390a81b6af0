#include "api/notified_segment.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "api/shared_segment.hpp"
#include "base/clock.hpp"
#include "base/log.hpp"
#include "base/memory.hpp"
#include "include/papaya_segment.h"
#include "interpose/copy_communicator.hpp"

namespace papaya::weak {

namespace {

// In shared memory each takes a cache line, of every rank.
constexpr int most_notifications = 1 << 20;

// At another process, which takes a few microseconds.
constexpr double ns_between_looks = 1e6;

std::uint64_t deadline_after(double seconds) noexcept {
  if (seconds < 0) return ~std::uint64_t{0};
  return clock::ticks() + policy().to_ticks(std::min(seconds * 1e9, 1e18));
}

}  // namespace

NotifiedSegment::~NotifiedSegment() {
  leave_process();
  if (handler_ != MPI_ERRHANDLER_NULL) PMPI_Errhandler_free(&handler_);
}

Error NotifiedSegment::prepare(std::size_t bytes, int notifications, Settings& settings) {
  prepare_process();
  Error found;
  if (notifications < 1 || notifications > most_notifications)
    found = {MPI_ERR_ARG, fmt::format("notifications is {}; it must be 1 to {}", notifications, most_notifications)};
  else if (bytes > memory::available())
    found = {MPI_ERR_NO_MEM, fmt::format("a rank has no memory for {} bytes; create it for fewer", bytes)};
  Terms terms;
  terms.is_good = !found.is_set();
  terms.put(static_cast<std::int64_t>(bytes));
  terms.put(notifications);
  meeting_->agree(terms, settings);
  birth_ = terms.birth;
  if (!terms.is_same_version)
    return {MPI_ERR_OTHER, "the ranks have different versions of papaya; install one on all nodes"};
  if (!terms.is_good) return meeting_->agree(found);
  for (std::size_t i = 0; i < 2; ++i)
    if (const auto [lowest, highest] = terms.facts()[i]; lowest != highest)
      return {MPI_ERR_ARG, fmt::format("{} differs between the ranks of the communicator: {} to {}",
                                       i == 0 ? "bytes" : "notifications", lowest, highest)};
  bytes_ = bytes;
  notifications_ = notifications;
  losses_.assign(static_cast<std::size_t>(meeting_->ranks()), Loss::none);
  processes_.exchange(meeting_->comm(), number_of_node());
  const SegmentShape shape{.bytes = in_lines(std::max<std::size_t>(bytes, 1)),
                           .notifications = notifications + meeting_->ranks()};
  if (meeting_->is_on_one_node()) {
    const bool are_shared = meeting_->least(meeting_->share_memory(shape, 0) ? 1 : 0) != 0;
    meeting_->forget_name();
    if (are_shared) return {};
  }
  return meeting_->connect(shape, OnFailure::lose_peer);
}

std::unique_ptr<NotifiedSegment> NotifiedSegment::create(MPI_Comm comm, std::size_t bytes, int notifications,
                                                         Error& error) {
  MPI_Comm copy = MPI_COMM_NULL;
  if (!copy_communicator(comm, &copy)) {
    error = {MPI_ERR_COMM, "MPI cannot copy the communicator"};
    return nullptr;
  }
  std::unique_ptr<NotifiedSegment> self(new NotifiedSegment);
  self->meeting_ = std::make_unique<Meeting>(copy);
  Settings settings = settings_of_process(self->meeting_->rank());
  error = self->prepare(bytes, notifications, settings);
  if (error.is_set()) return nullptr;
  char name[MPI_MAX_OBJECT_NAME] = "";
  int length = 0;
  PMPI_Comm_get_name(comm, name, &length);
  self->name_ = *name != '\0' ? name : fmt::format("a communicator of {} ranks", self->meeting_->ranks());
  PMPI_Comm_get_errhandler(comm, &self->handler_);
  enter(*self);
  self->is_entered_ = true;
  return self;
}

Error NotifiedSegment::check_rank(int rank) const {
  if (rank >= 0 && rank < meeting_->ranks()) return {};
  return {MPI_ERR_RANK, fmt::format("rank is {}; the segment has ranks 0 to {}", rank, meeting_->ranks() - 1)};
}

Error NotifiedSegment::check_ids(int first, int count) const {
  if (first >= 0 && count >= 1 && count <= notifications_ && first <= notifications_ - count) return {};
  if (count == 1)
    return {MPI_ERR_ARG, fmt::format("the notification is {}; the segment has 0 to {}", first, notifications_ - 1)};
  return {MPI_ERR_ARG,
          fmt::format("{} notifications from {} on; the segment has 0 to {}", count, first, notifications_ - 1)};
}

Error NotifiedSegment::write(int rank, std::size_t offset, const void* source, std::size_t bytes, int id,
                             unsigned value) {
  if (Error error = check_rank(rank); error.is_set()) return error;
  if (Error error = check_ids(id, 1); error.is_set()) return error;
  if (value == 0) return {MPI_ERR_ARG, "value is 0, which a notification has that nobody has set"};
  if (offset > bytes_ || bytes > bytes_ - offset)
    return {MPI_ERR_ARG,
            fmt::format("{} bytes at offset {} do not fit into the segment of {} bytes", bytes, offset, bytes_)};
  if (source == nullptr && bytes != 0) return {MPI_ERR_BUFFER, "the source is a null pointer"};
  if (bytes > std::numeric_limits<std::int32_t>::max())
    return {MPI_ERR_COUNT, fmt::format("a write has at most 2147483647 bytes, not {}; write it in parts", bytes)};
  look_at_next();
  if (losses_[static_cast<std::size_t>(rank)] == Loss::none)
    wire().write_notify(rank, offset, source, bytes, id, numbered(value));
  // The failure may have been found out in writing.
  return look_at(rank) == Loss::none ? Error{} : error_of(rank);
}

// What costs nothing to know.
NotifiedSegment::Loss NotifiedSegment::look_at(int rank) {
  Loss& known = losses_[static_cast<std::size_t>(rank)];
  if (known == Loss::none && meeting_->is_lost(rank)) lose(rank, Loss::unreachable);
  return known;
}

void NotifiedSegment::lose(int rank, Loss how) {
  losses_[static_cast<std::size_t>(rank)] = how;
  meeting_->lose(rank);
  log::info(fmt::format("A segment on {}: {}.", name_, error_of(rank).sentence));
}

// One rank after the other, now and then, so that who writes or waits notices a death.
void NotifiedSegment::look_at_next() {
  const std::uint64_t now = clock::ticks();
  if (now - looked_ < policy().to_ticks(ns_between_looks)) return;
  looked_ = now;
  next_peer_ = (next_peer_ + 1) % meeting_->ranks();
  if (next_peer_ != meeting_->rank() && look_at(next_peer_) == Loss::none && processes_.has_ended(next_peer_))
    lose(next_peer_, Loss::ended);
}

// -1: none is.
int NotifiedSegment::first_lost() {
  int rank = 0;
  while (rank < meeting_->ranks() && look_at(rank) == Loss::none) ++rank;
  return rank < meeting_->ranks() ? rank : -1;
}

Error NotifiedSegment::error_of(int rank) const {
  const Loss how = losses_[static_cast<std::size_t>(rank)];
  return {MPI_ERR_OTHER,
          fmt::format("rank {} is lost: {}; go on with the ranks that papaya_segment_state shows as "
                      "healthy",
                      rank,
                      how == Loss::ended      ? "its process has ended"
                      : how == Loss::excluded ? "papaya_segment_exclude has been called for it"
                                              : fmt::format("it cannot be reached by {} any more", meeting_->place()))};
}

void NotifiedSegment::show_states(int* states) {
  for (int rank = 0; rank < meeting_->ranks(); ++rank) {
    if (rank != meeting_->rank() && look_at(rank) == Loss::none && processes_.has_ended(rank)) lose(rank, Loss::ended);
    states[rank] = losses_[static_cast<std::size_t>(rank)] == Loss::none ? PAPAYA_STATE_HEALTHY : PAPAYA_STATE_CORRUPT;
  }
}

Error NotifiedSegment::exclude(int rank) {
  if (Error error = check_rank(rank); error.is_set()) return error;
  if (rank == meeting_->rank()) return {MPI_ERR_RANK, "a rank cannot exclude itself; discard the segment"};
  if (look_at(rank) == Loss::none) lose(rank, Loss::excluded);
  return {};
}

// Looks at what MPI moves too, which rings no bell.
template <class Ready>
bool NotifiedSegment::wait_until(Ready&& ready, double seconds) {
  if (ready()) return true;
  if (seconds == 0) {
    look_at_next();
    wire().progress();
    // What it looks for may need another segment or collective of this rank's first. But MPI may give the core away
    // where it finds nothing, and who only looks has work to do.
    constexpr unsigned looks_for_a_poke = 16;
    if (++looks_ % looks_for_a_poke == 0) policy().poke();
    return ready();
  }
  const std::uint64_t deadline = deadline_after(seconds);
  const Waiting waiting(*this);
  bool is_late = false;
  wire().wait(
      policy(), site_,
      [&] {
        if (ready()) return true;
        look_at_next();
        return is_late = clock::ticks() >= deadline;
      },
      nullptr);
  return !is_late;
}

bool NotifiedSegment::wait_for_sources(double seconds) {
  awaited_ = "what it has written to be sent";
  return wait_until([this] { return wire().are_sources_free(); }, seconds);
}

// In turn, so that no writer is passed over for ever.
int NotifiedSegment::find(int first, int count) noexcept {
  const int middle = std::clamp(next_, first, first + count);
  int id = wire().look_for(middle, first + count - middle);
  if (id < 0) id = wire().look_for(first, middle - first);
  if (id >= 0) next_ = id + 1;
  return id;
}

Error NotifiedSegment::wait(int first, int count, double seconds, int& id) {
  if (Error error = check_ids(first, count); error.is_set()) return error;
  if (seconds != 0)
    awaited_ = count == 1 ? fmt::format("notification {}", first)
                          : fmt::format("notifications {} to {}", first, first + count - 1);
  id = -1;
  wait_until([&] { return (id = find(first, count)) >= 0; }, seconds);
  return {};
}

Error NotifiedSegment::reset(int id, unsigned& value) {
  if (Error error = check_ids(id, 1); error.is_set()) return error;
  value = static_cast<unsigned>(wire().reset(id));
  return {};
}

bool NotifiedSegment::have_all_left() noexcept {
  for (int rank = 0; rank < meeting_->ranks(); ++rank)
    if (wire().look(notifications_ + rank) == 0) return false;
  return wire().are_sources_free();
}

Error NotifiedSegment::close() {
  if (!has_left_ && first_lost() < 0)
    for (int rank = 0; rank < meeting_->ranks(); ++rank)
      wire().notify(rank, notifications_ + meeting_->rank(), numbered(1));
  has_left_ = true;
  awaited_ = "the others to free it";
  wait_until([this] { return first_lost() >= 0 || have_all_left(); }, -1);
  if (const int lost = first_lost(); lost >= 0 && !have_all_left())
    return {MPI_ERR_OTHER, fmt::format("rank {} is lost and cannot free it; call papaya_segment_discard", lost)};
  leave_process();
  meeting_.reset();
  return {};
}

void NotifiedSegment::leave_process() noexcept {
  if (is_entered_) leave(*this);
  is_entered_ = false;
}

void NotifiedSegment::discard() noexcept {
  leave_process();
  meeting_->discard();
}

// Of the thread that waits.
std::string NotifiedSegment::stalled(double seconds) const {
  return fmt::format("rank {} has waited {:.0f} s in a segment on {} for {}.", meeting_->rank(), seconds, name_,
                     awaited_);
}

}  // namespace papaya::weak
