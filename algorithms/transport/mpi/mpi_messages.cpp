#include "algorithms/transport/mpi/mpi_messages.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include "base/clock.hpp"
#include "base/last_words.hpp"

namespace papaya {

namespace {

constexpr std::size_t receives_posted = 32;
constexpr int message_tag = 1;
constexpr int data_tag = 2;
constexpr std::uint64_t patience_ns = 250'000'000;

bool agree(bool good, MPI_Comm comm) noexcept {
  int mine = good ? 1 : 0;
  int all = 0;
  return PMPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_MIN, comm) == MPI_SUCCESS && all == 1;
}

}  // namespace

thread_local constinit bool MpiMessages::inside_ = false;

bool MpiMessages::create(MPI_Comm comm, std::size_t bytes, bool is_own, OnFailure on_failure) noexcept {
  is_copy_ = !is_own;
  if (is_own)
    comm_ = comm;
  else if (PMPI_Comm_dup(comm, &comm_) != MPI_SUCCESS)
    comm_ = MPI_COMM_NULL;
  bool good = comm_ != MPI_COMM_NULL && arena_.reserve(bytes);
  memory_bytes_ = arena_.bytes();
  void* base = MAP_FAILED;
  // Pages are taken as communicators use them.
  if (good)
    base = mmap(nullptr, memory_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  good = base != MAP_FAILED;
  if (comm_ != MPI_COMM_NULL) {
    PMPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
    PMPI_Comm_rank(comm_, &rank_);
    PMPI_Comm_size(comm_, &ranks_);
  }
  if (on_failure == OnFailure::lose_peer) {
    lost_.reset(new (std::nothrow) std::atomic<bool>[static_cast<std::size_t>(ranks_)] {});
    good = good && lost_ != nullptr;
  }
  if (agree(good, comm)) {
    arena_.set_base(static_cast<std::byte*>(base));
    return true;
  }
  if (base != MAP_FAILED) munmap(base, memory_bytes_);
  leave_communicator();
  return false;
}

void MpiMessages::start_receiving() {
  const Turn turn{std::unique_lock(mutex_)};
  if (!receives_.empty()) return;
  arriving_from_.assign(static_cast<std::size_t>(ranks_), 0);
  held_up_.assign(static_cast<std::size_t>(ranks_), 0);
  is_broken_from_.assign(static_cast<std::size_t>(ranks_), false);
  slots_ = std::make_unique_for_overwrite<Message[]>(receives_posted);
  receives_.assign(receives_posted, MPI_REQUEST_NULL);
  for (std::size_t slot = 0; slot < receives_posted; ++slot) receive_next(slot);
}

void MpiMessages::free() noexcept {
  if (!exists()) return;
  // Whoever is here has nothing more to write, but what it has written may still be on its way.
  MPI_Request all_here = MPI_REQUEST_NULL;
  int are_here = PMPI_Ibarrier(comm_, &all_here) == MPI_SUCCESS ? 0 : 1;
  while (are_here == 0 || has_sends()) {
    progress();
    if (are_here == 0 && PMPI_Test(&all_here, &are_here, MPI_STATUS_IGNORE) != MPI_SUCCESS) are_here = 1;
  }
  for (MPI_Request& request : receives_) {
    PMPI_Cancel(&request);
    PMPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  munmap(arena_.base(), memory_bytes_);
  arena_.set_base(nullptr);
  leave_communicator();
}

// What a receive already has of a message MPI still puts into its slot. No request is waited for: its sender may be
// dead.
void MpiMessages::discard() noexcept {
  const Turn turn{std::unique_lock(mutex_)};
  for (MPI_Request& request : receives_) {
    if (request == MPI_REQUEST_NULL) continue;
    PMPI_Cancel(&request);
    PMPI_Request_free(&request);
  }
  receives_.clear();  // so there is no more progress
}

void MpiMessages::leave_communicator() noexcept {
  if (is_copy_ && comm_ != MPI_COMM_NULL) PMPI_Comm_free(&comm_);
  comm_ = MPI_COMM_NULL;
}

bool MpiMessages::has_sends() noexcept {
  const std::lock_guard lock(mutex_);
  return !sends_.empty();
}

void MpiMessages::end_after_failure() const noexcept {
  log::last_words(
      lost_ == nullptr
          ? "A message of papaya's failed in the middle of a collective, or there is no memory for it; the job cannot "
            "go on. Run it without an algorithm that works across nodes: PAPAYA_ALLREDUCE=auto and its like."
          : "There is no memory for a message of a segment; the job cannot go on. Wait for writes by papaya_write_wait "
            "before there are more of them.");
  PMPI_Abort(comm_, MPI_ERR_OTHER);
  std::abort();
}

// False where the job goes on after a failure. Of an unknown rank's more is known once something is sent to it.
bool MpiMessages::check(int code, int peer) {
  if (code == MPI_SUCCESS) return true;
  if (lost_ == nullptr) end_after_failure();
  if (peer != unknown && !is_lost(peer)) give_up(peer);
  return false;
}

void MpiMessages::lose(int target) noexcept {
  if (lost_ == nullptr || is_lost(target)) return;
  const Turn turn{std::unique_lock(mutex_)};
  try {
    give_up(target);
  } catch (const std::bad_alloc&) {
    end_after_failure();
  }
}

void MpiMessages::give_up(int target) {
  lost_[static_cast<std::size_t>(target)].store(true, std::memory_order_relaxed);
  std::size_t kept = 0;
  for (std::size_t i = 0; i < sends_.size(); ++i) {
    if (sends_[i].target == target) {
      let_go(sends_[i]);
      given_up_.push_back(std::move(sends_[i]));
      continue;
    }
    std::swap(sends_[kept], sends_[i]);
    send_requests_[kept++] = send_requests_[i];
  }
  sends_.resize(kept);
  send_requests_.resize(kept);
}

bool MpiMessages::receive_next(std::size_t slot) {
  return check(PMPI_Irecv(&slots_[slot], static_cast<int>(sizeof(Header) + most_inline_bytes), MPI_BYTE, MPI_ANY_SOURCE,
                          message_tag, comm_, &receives_[slot]));
}

void MpiMessages::write(int target, std::size_t offset, const void* source, std::size_t bytes, std::size_t flag_offset,
                        std::uint64_t value, UnderWay& under_way, std::size_t most_copied) noexcept {
  const Header header{offset, bytes, flag_offset, value};
  if (target == rank_) {
    if (bytes != 0) std::memcpy(arena_.base() + offset, source, bytes);
    return raise(header);
  }
  const Turn turn{std::unique_lock(mutex_)};
  try {
    if (bytes > most_copied) {
      send_copy(target, header, nullptr, 0, under_way);
      return send(target, nullptr, source, bytes, under_way);
    }
    const auto* from = static_cast<const std::byte*>(source);
    for (; bytes > most_inline_bytes; bytes -= most_inline_bytes) {
      send_copy(target, {offset, most_inline_bytes, no_flag, 0}, from, most_inline_bytes, under_way);
      from += most_inline_bytes;
      offset += most_inline_bytes;
    }
    send_copy(target, {offset, bytes, flag_offset, value}, from, bytes, under_way);
  } catch (const std::bad_alloc&) {
    end_after_failure();
  }
}

void MpiMessages::redirect(std::size_t offset, std::size_t bytes, void* place) noexcept {
  const std::lock_guard lock(mutex_);
  try {
    redirected_.push_back({offset, bytes, bytes, static_cast<std::byte*>(place)});
  } catch (const std::bad_alloc&) {
    end_after_failure();
  }
}

void MpiMessages::send_copy(int target, const Header& header, const void* source, std::size_t bytes,
                            UnderWay& under_way) {
  std::unique_ptr<Message> message;
  if (unused_.empty()) {
    message = std::make_unique_for_overwrite<Message>();
  } else {
    message = std::move(unused_.back());
    unused_.pop_back();
  }
  message->header = header;
  if (bytes != 0) std::memcpy(message->data, source, bytes);
  const void* const first = message.get();
  send(target, std::move(message), first, sizeof(Header) + bytes, under_way);
}

void MpiMessages::send(int target, std::unique_ptr<Message> message, const void* source, std::size_t bytes,
                       UnderWay& under_way) {
  MPI_Request request = MPI_REQUEST_NULL;
  // A message that needs nothing of its receiver is usually gone by now.
  int gone = 1;
  if (!is_lost(target) && check(PMPI_Isend(source, static_cast<int>(bytes), MPI_BYTE, target,
                                           message == nullptr ? data_tag : message_tag, comm_, &request),
                                target))
    check(PMPI_Test(&request, &gone, MPI_STATUS_IGNORE), target);
  if (is_lost(target) && request != MPI_REQUEST_NULL) {
    given_up_.push_back({target, 0, nullptr, std::move(message)});
    return;
  }
  if (gone != 0) {
    if (message != nullptr) unused_.push_back(std::move(message));
    return;
  }
  under_way.sends.fetch_add(1, std::memory_order_relaxed);
  if (message == nullptr) under_way.sources.fetch_add(1, std::memory_order_relaxed);
  sends_.push_back({target, lost_ == nullptr ? 0 : clock::monotonic_ns(), &under_way, std::move(message)});
  send_requests_.push_back(request);
}

void MpiMessages::progress() noexcept {
  if (inside_) return;
  std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return;
  const Turn turn(std::move(lock));
  if (receives_.empty()) return;
  try {
    take_messages();
    if (!arriving_.empty()) test_arriving();
    if (!sends_.empty()) test_sends();
    if (lost_ != nullptr && !sends_.empty()) ask_silent();
  } catch (const std::bad_alloc&) {
    end_after_failure();
  }
}

// At most a round of slots, so that a rank that is written to without end comes back.
void MpiMessages::take_messages() {
  for (std::size_t taken = 0; taken < receives_posted; ++taken) {
    // None where MPI has failed.
    if (receives_[next_] != MPI_REQUEST_NULL) {
      int has_come = 0;
      MPI_Status status;
      const bool is_good = check(PMPI_Test(&receives_[next_], &has_come, &status));
      if (is_good ? has_come == 0 : receives_[next_] != MPI_REQUEST_NULL) return;
      if (is_good) take(status.MPI_SOURCE, slots_[next_]);
    }
    receive_next(next_);
    next_ = (next_ + 1) % receives_posted;
  }
}

void MpiMessages::take(int source, const Message& message) {
  const Header& header = message.header;
  MPI_Request request = MPI_REQUEST_NULL;
  std::uint32_t& before = arriving_from_[static_cast<std::size_t>(source)];
  if (is_broken_from_[static_cast<std::size_t>(source)]) return;
  if (header.bytes > most_inline_bytes) {
    if (!check(
            PMPI_Irecv(place_of(header), static_cast<int>(header.bytes), MPI_BYTE, source, data_tag, comm_, &request),
            source)) {
      is_broken_from_[static_cast<std::size_t>(source)] = true;
      return;
    }
  } else {
    if (header.bytes != 0) std::memcpy(place_of(header), message.data, header.bytes);
    if (before == 0) return raise(header);
  }
  ++before;
  arriving_.push_back({source, header});
  arriving_requests_.push_back(request);
}

// A write that is redirected may come in several messages.
std::byte* MpiMessages::place_of(const Header& header) noexcept {
  for (Redirected& one : redirected_) {
    if (header.offset < one.offset || header.offset - one.offset >= one.bytes) continue;
    std::byte* const place = one.place + (header.offset - one.offset);
    one.awaited -= header.bytes;
    if (one.awaited == 0) {
      one = redirected_.back();
      redirected_.pop_back();
    }
    return place;
  }
  return arena_.base() + header.offset;
}

// How many are complete, with failed_ those that never will be right.
int MpiMessages::test_some(std::vector<MPI_Request>& requests) {
  int done = 0;
  indices_.resize(requests.size());
  statuses_.resize(requests.size());
  failed_.clear();
  const int code = PMPI_Testsome(static_cast<int>(requests.size()), requests.data(), &done, indices_.data(),
                                 lost_ == nullptr ? MPI_STATUSES_IGNORE : statuses_.data());
  if (check(code)) return done;
  int error_class = MPI_ERR_OTHER;
  PMPI_Error_class(code, &error_class);
  if (error_class != MPI_ERR_IN_STATUS) return 0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(done); ++i)
    if (statuses_[i].MPI_ERROR != MPI_SUCCESS) failed_.push_back(indices_[i]);
  return done;
}

void MpiMessages::test_arriving() {
  if (test_some(arriving_requests_) == 0) return;
  for (const int place : failed_) {
    const int source = arriving_[static_cast<std::size_t>(place)].source;
    check(MPI_ERR_OTHER, source);
    is_broken_from_[static_cast<std::size_t>(source)] = true;
  }
  ++pass_;
  std::size_t kept = 0;
  for (std::size_t i = 0; i < arriving_.size(); ++i) {
    const auto source = static_cast<std::size_t>(arriving_[i].source);
    if (is_broken_from_[source]) continue;
    if (arriving_requests_[i] == MPI_REQUEST_NULL && held_up_[source] != pass_) {
      raise(arriving_[i].header);
      --arriving_from_[source];
      continue;
    }
    held_up_[source] = pass_;
    arriving_[kept] = arriving_[i];
    arriving_requests_[kept++] = arriving_requests_[i];
  }
  arriving_.resize(kept);
  arriving_requests_.resize(kept);
}

void MpiMessages::let_go(Sending& one) noexcept {
  if (one.user == nullptr) return;
  if (one.message == nullptr) one.user->sources.fetch_sub(1, std::memory_order_relaxed);
  one.user->sends.fetch_sub(1, std::memory_order_relaxed);
  one.user = nullptr;
}

void MpiMessages::test_sends() {
  if (test_some(send_requests_) == 0) return;
  for (int& place : failed_) place = sends_[static_cast<std::size_t>(place)].target;
  std::size_t kept = 0;
  for (std::size_t i = 0; i < sends_.size(); ++i) {
    if (send_requests_[i] != MPI_REQUEST_NULL) {
      std::swap(sends_[kept], sends_[i]);
      send_requests_[kept++] = send_requests_[i];
      continue;
    }
    let_go(sends_[i]);
    if (sends_[i].message != nullptr) unused_.push_back(std::move(sends_[i].message));
  }
  sends_.resize(kept);
  send_requests_.resize(kept);
  for (const int target : failed_) check(MPI_ERR_OTHER, target);
}

void MpiMessages::disown(UnderWay& under_way) noexcept {
  const std::lock_guard lock(mutex_);
  for (Sending& one : sends_)
    if (one.user == &under_way) one.user = nullptr;
}

// MPICH tells who sends of a failure, and not who has sent: those who have not taken a message for long get another
// one, which says nothing.
void MpiMessages::ask_silent() {
  const std::uint64_t now = clock::monotonic_ns();
  if (now - asked_ns_ < patience_ns) return;
  asked_ns_ = now;
  failed_.clear();
  for (const Sending& one : sends_)
    if (now - one.since_ns > patience_ns && std::find(failed_.begin(), failed_.end(), one.target) == failed_.end())
      failed_.push_back(one.target);
  for (const int target : failed_) send_copy(target, {0, 0, no_flag, 0}, nullptr, 0, asking_);
}

// Release: partner of the acquire in look(); the bytes come first.
void MpiMessages::raise(const Header& header) noexcept {
  if (header.flag_offset == no_flag) return;
  std::atomic_ref(*reinterpret_cast<std::uint64_t*>(arena_.base() + header.flag_offset))
      .store(header.value, std::memory_order_release);
}

}  // namespace papaya
