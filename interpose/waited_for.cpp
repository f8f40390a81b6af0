#include "interpose/waited_for.hpp"

#include <bit>

#include "interpose/runtime.hpp"

namespace papaya::waited_for {

namespace {

// Where MPI_Waitall took long the last time, bit by bit of a hash of the call site.
thread_local constinit std::uint64_t long_sites = 0;

std::uint64_t bit_of(const void* site) noexcept {
  return std::uint64_t{1} << (peers::key_of(site) * 0x9e3779b97f4a7c15u >> 58);
}

// The one rank that all of several requests are for; not known if there are several, or one request's is not known.
class Common {
 public:
  void add(const peers::Peer& peer) noexcept {
    are_all_known_ = are_all_known_ && peer.is_known();
    is_one_ = is_one_ && peer.is_known() && (is_empty_ || (peer == peer_ && peer.rank >= 0));
    is_empty_ = false;
    peer_ = peer;
  }
  bool is_several() const noexcept { return !is_one_; }
  bool are_all_known() const noexcept { return are_all_known_; }
  peers::Peer peer() const noexcept { return is_one_ ? peer_ : peers::Peer{}; }

 private:
  bool is_empty_ = true;
  bool are_all_known_ = true;
  bool is_one_ = true;
  peers::Peer peer_;
};

const MPI_Status* status_at(const MPI_Status* statuses, std::size_t i) noexcept {
  return statuses == MPI_STATUSES_IGNORE || statuses == nullptr ? nullptr : statuses + i;
}

}  // namespace

AllRequests::AllRequests(int count, const MPI_Request* all, const void* site) noexcept : site_bit_(bit_of(site)) {
  if (all == nullptr) return;
  Common common;
  for (int i = 0; i < count; ++i) {
    if (all[i] == MPI_REQUEST_NULL) continue;
    common.add(peers::requests.find(all[i]));
    last_ = static_cast<std::size_t>(i);
  }
  peer_ = common.peer();
  if (common.is_several() && common.are_all_known() && (long_sites & site_bit_) != 0) find_last(count, all);
  for (int i = 0; i < count; ++i) peers::requests.end(all[i]);
}

// The requests are of several ranks, and which of them completes last only finds out who asks for each. That is done
// where the call took long the last time, in time in which this rank waits anyway, until one rank's requests are left:
// for those MPI_Waitall then waits. To be asked moves MPI on as MPI_Waitall does, and takes nothing from a request.
// Only messages are asked for: of another request MPI would call its query function, and of an invalid one the error
// handler, once more than the program expects. Nor where several threads may wait: each would contend for MPI all that
// time.
void AllRequests::find_last(int count, const MPI_Request* all) noexcept {
  if (count > 64 || runtime().job.thread_level == MPI_THREAD_MULTIPLE) return;
  std::uint64_t left = 0;
  for (int i = 0; i < count; ++i)
    if (all[i] != MPI_REQUEST_NULL) left |= std::uint64_t{1} << i;
  while (left != 0 && !nonblocking::needs_attention()) {
    std::uint64_t ended = 0;
    Common of_ended;
    Common of_others;
    for (std::uint64_t rest = left; rest != 0; rest &= rest - 1) {
      const auto i = static_cast<std::size_t>(std::countr_zero(rest));
      int flag = 0;
      if (PMPI_Request_get_status(all[i], &flag, MPI_STATUS_IGNORE) != MPI_SUCCESS) return;
      (flag != 0 ? of_ended : of_others).add(peers::requests.find(all[i]));
      if (flag != 0) ended |= std::uint64_t{1} << i;
    }
    if (const bool is_last = ended == left; is_last || !of_others.is_several() || std::has_single_bit(left & ~ended)) {
      peer_ = (is_last ? of_ended : of_others).peer();
      last_ = static_cast<std::size_t>(std::countr_zero(is_last ? ended : left & ~ended));
      return;
    }
    left &= ~ended;
  }
}

peers::Peer AllRequests::ended(const MPI_Status* statuses, bool was_long) const noexcept {
  long_sites = was_long ? long_sites | site_bit_ : long_sites & ~site_bit_;
  return peer_.resolved(status_at(statuses, last_));
}

peers::Peer Handles::peer_of(std::span<const int> which, const MPI_Status* statuses) const noexcept {
  if (!fits()) return {};
  Common common;
  for (std::size_t i = 0; i < which.size(); ++i) {
    const auto at = static_cast<std::size_t>(which[i]);
    if (at < count_) common.add(peers::requests.find(handles_[at]).resolved(status_at(statuses, i)));
  }
  return common.peer();
}

peers::Peer Handles::peer_of_all(const MPI_Status* statuses) const noexcept {
  if (!fits()) return {};
  Common common;
  for (std::size_t i = 0; i < count_; ++i)
    if (handles_[i] != MPI_REQUEST_NULL) common.add(peers::requests.find(handles_[i]).resolved(status_at(statuses, i)));
  return common.peer();
}

void Handles::end(std::span<const int> which) const noexcept {
  if (!fits()) return peers::requests.forget_all();
  for (const int i : which)
    if (static_cast<std::size_t>(i) < count_) peers::requests.end(handles_[static_cast<std::size_t>(i)]);
}

void Handles::end_all() const noexcept {
  if (!fits()) return peers::requests.forget_all();
  for (std::size_t i = 0; i < count_; ++i) peers::requests.end(handles_[i]);
}

}  // namespace papaya::waited_for
