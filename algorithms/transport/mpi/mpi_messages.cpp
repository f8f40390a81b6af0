#include "algorithms/transport/mpi/mpi_messages.hpp"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include "base/log.hpp"

namespace papaya {

namespace {

constexpr std::size_t receives_posted = 32;
constexpr int message_tag = 1;
constexpr int data_tag = 2;

bool agree(bool good, MPI_Comm comm) noexcept {
  int mine = good ? 1 : 0;
  int all = 0;
  return PMPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_MIN, comm) == MPI_SUCCESS && all == 1;
}

}  // namespace

thread_local constinit bool MpiMessages::inside_ = false;

bool MpiMessages::create(MPI_Comm comm, std::size_t bytes, bool is_own) noexcept {
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
  }
  if (agree(good, comm)) {
    arena_.set_base(static_cast<std::byte*>(base));
    return true;
  }
  if (good) munmap(base, memory_bytes_);
  leave_communicator();
  return false;
}

void MpiMessages::start_receiving() {
  const Turn turn{std::unique_lock(mutex_)};
  if (!receives_.empty()) return;
  int ranks = 1;
  PMPI_Comm_size(comm_, &ranks);
  arriving_from_.assign(static_cast<std::size_t>(ranks), 0);
  held_up_.assign(static_cast<std::size_t>(ranks), 0);
  slots_.resize(receives_posted);
  receives_.assign(receives_posted, MPI_REQUEST_NULL);
  for (std::size_t slot = 0; slot < receives_posted; ++slot) receive_next(slot);
}

void MpiMessages::free() noexcept {
  if (!exists()) return;
  // Whoever is here has nothing more to write, but what it has written may still be on its way.
  MPI_Request all_here = MPI_REQUEST_NULL;
  int are_here = PMPI_Ibarrier(comm_, &all_here) == MPI_SUCCESS ? 0 : 1;
  const auto has_sends = [&] {
    const std::lock_guard lock(mutex_);
    return !sends_.empty();
  };
  while (are_here == 0 || has_sends()) {
    progress();
    if (are_here == 0) check(PMPI_Test(&all_here, &are_here, MPI_STATUS_IGNORE));
  }
  for (MPI_Request& request : receives_) {
    PMPI_Cancel(&request);
    PMPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  munmap(arena_.base(), memory_bytes_);
  arena_.set_base(nullptr);
  leave_communicator();
}

void MpiMessages::leave_communicator() noexcept {
  if (is_copy_ && comm_ != MPI_COMM_NULL) PMPI_Comm_free(&comm_);
  comm_ = MPI_COMM_NULL;
}

// The others wait for what will never come, and cannot be told: as after an error in a collective of MPI's
// own, the job ends.
void MpiMessages::end_after_failure() const noexcept {
  log::error(
      "A message of papaya's failed in the middle of a collective, or there is no memory for it; the job cannot go on. "
      "Run it without an algorithm that works across nodes: PAPAYA_ALLREDUCE=auto and its like.");
  PMPI_Abort(comm_, MPI_ERR_OTHER);
  std::abort();
}

void MpiMessages::check(int code) const noexcept {
  if (code != MPI_SUCCESS) end_after_failure();
}

void MpiMessages::receive_next(std::size_t slot) {
  check(PMPI_Irecv(&slots_[slot], static_cast<int>(sizeof(Header) + most_inline_bytes), MPI_BYTE, MPI_ANY_SOURCE,
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
    message = std::make_unique<Message>();
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
  check(PMPI_Isend(source, static_cast<int>(bytes), MPI_BYTE, target, message == nullptr ? data_tag : message_tag,
                   comm_, &request));
  // A message that needs nothing of its receiver is usually gone by now.
  int gone = 0;
  check(PMPI_Test(&request, &gone, MPI_STATUS_IGNORE));
  if (gone != 0) {
    if (message != nullptr) unused_.push_back(std::move(message));
    return;
  }
  under_way.sends.fetch_add(1, std::memory_order_relaxed);
  if (message == nullptr) under_way.sources.fetch_add(1, std::memory_order_relaxed);
  sends_.push_back({&under_way, std::move(message)});
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
  } catch (const std::bad_alloc&) {
    end_after_failure();
  }
}

// At most a round of slots, so that a rank that is written to without end comes back.
void MpiMessages::take_messages() {
  for (std::size_t taken = 0; taken < receives_posted; ++taken) {
    int has_come = 0;
    MPI_Status status;
    check(PMPI_Test(&receives_[next_], &has_come, &status));
    if (has_come == 0) return;
    take(status.MPI_SOURCE, slots_[next_]);
    receive_next(next_);
    next_ = (next_ + 1) % receives_posted;
  }
}

void MpiMessages::take(int source, const Message& message) {
  const Header& header = message.header;
  MPI_Request request = MPI_REQUEST_NULL;
  std::uint32_t& before = arriving_from_[static_cast<std::size_t>(source)];
  if (header.bytes > most_inline_bytes) {
    check(PMPI_Irecv(place_of(header), static_cast<int>(header.bytes), MPI_BYTE, source, data_tag, comm_, &request));
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

void MpiMessages::test_arriving() {
  int done = 0;
  indices_.resize(arriving_.size());
  check(PMPI_Testsome(static_cast<int>(arriving_.size()), arriving_requests_.data(), &done, indices_.data(),
                      MPI_STATUSES_IGNORE));
  if (done == 0) return;
  ++pass_;
  std::size_t kept = 0;
  for (std::size_t i = 0; i < arriving_.size(); ++i) {
    const auto source = static_cast<std::size_t>(arriving_[i].source);
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

void MpiMessages::test_sends() {
  int done = 0;
  indices_.resize(sends_.size());
  check(PMPI_Testsome(static_cast<int>(sends_.size()), send_requests_.data(), &done, indices_.data(),
                      MPI_STATUSES_IGNORE));
  if (done == 0) return;
  std::size_t kept = 0;
  for (std::size_t i = 0; i < sends_.size(); ++i) {
    if (send_requests_[i] != MPI_REQUEST_NULL) {
      std::swap(sends_[kept], sends_[i]);
      send_requests_[kept++] = send_requests_[i];
      continue;
    }
    Sending& gone = sends_[i];
    if (gone.user != nullptr) {
      if (gone.message == nullptr) gone.user->sources.fetch_sub(1, std::memory_order_relaxed);
      gone.user->sends.fetch_sub(1, std::memory_order_relaxed);
    }
    if (gone.message != nullptr) unused_.push_back(std::move(gone.message));
  }
  sends_.resize(kept);
  send_requests_.resize(kept);
}

void MpiMessages::disown(UnderWay& under_way) noexcept {
  const std::lock_guard lock(mutex_);
  for (Sending& one : sends_)
    if (one.user == &under_way) one.user = nullptr;
}

// Release: partner of the acquire in look(); the bytes come first.
void MpiMessages::raise(const Header& header) noexcept {
  if (header.flag_offset == no_flag) return;
  std::atomic_ref(*reinterpret_cast<std::uint64_t*>(arena_.base() + header.flag_offset))
      .store(header.value, std::memory_order_release);
}

}  // namespace papaya
