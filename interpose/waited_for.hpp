// For whom a call of MPI's waits, by what its function's parameters mean: each kind of function a Watch, made before
// the call and asked after it: one that polls only when it has found something. What a call costs by this is a look at
// one table or a store into it; only a call that took long is looked at closer.
#pragma once

#include <mpi.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <tuple>

#include "interpose/attention.hpp"
#include "interpose/peers.hpp"
#include "profiler/record/mpi_times.hpp"

namespace papaya::waited_for {

enum class Role : std::uint8_t {
  none,
  message,          // sends, receives or waits for one
  matched_message,  // receives what a probe has matched
  polled_message,   // asks for one
  start,            // of an operation with a request
  start_matched,    // the same, of what a probe has matched
  wait,             // for one request
  wait_all,
  wait_some,  // for any
  test,       // the same without waiting
  test_all,
  test_some,
  test_partition,  // of a partitioned receive
  frees_request
};

inline constexpr std::size_t nowhere = ~std::size_t{0};
// Of the parameters.
struct Places {
  Role role = Role::none;
  std::size_t rank = nowhere;  // the other side of a message, in
  std::size_t comm = nowhere;
  std::size_t status = nowhere;
  std::size_t request = nowhere;  // one or an array
  std::size_t flag = nowhere;     // whether it is there; of an array's requests how many have ended
  std::size_t indices = nowhere;  // which they are
  std::size_t message = nowhere;  // a matched one
  bool is_kept = false;           // the request is persistent
};

constexpr Places places_of(std::string_view name) {
  if (name.ends_with("_c")) name.remove_suffix(2);
  const auto is_one_of = [&](auto... ones) { return ((name == ones) || ...); };
  if (name == "Recv") return {.role = Role::message, .rank = 3, .comm = 5, .status = 6};
  if (is_one_of("Send", "Ssend", "Rsend")) return {.role = Role::message, .rank = 3, .comm = 5};
  if (name == "Sendrecv") return {.role = Role::message, .rank = 8, .comm = 10, .status = 11};
  if (name == "Sendrecv_replace") return {.role = Role::message, .rank = 5, .comm = 7, .status = 8};
  if (name == "Probe") return {.role = Role::message, .rank = 0, .comm = 2, .status = 3};
  if (name == "Mprobe") return {.role = Role::message, .rank = 0, .comm = 2, .status = 4, .message = 3};
  if (name == "Mrecv") return {.role = Role::matched_message, .status = 4, .message = 3};
  if (name == "Iprobe") return {.role = Role::polled_message, .rank = 0, .comm = 2, .status = 4, .flag = 3};
  if (name == "Improbe")
    return {.role = Role::polled_message, .rank = 0, .comm = 2, .status = 5, .flag = 3, .message = 4};
  if (is_one_of("Irecv", "Isend", "Issend", "Irsend")) return {.role = Role::start, .rank = 3, .comm = 5, .request = 6};
  if (is_one_of("Recv_init", "Send_init", "Ssend_init", "Rsend_init"))
    return {.role = Role::start, .rank = 3, .comm = 5, .request = 6, .is_kept = true};
  if (is_one_of("Precv_init", "Psend_init"))
    return {.role = Role::start, .rank = 4, .comm = 6, .request = 8, .is_kept = true};
  if (name == "Imrecv") return {.role = Role::start_matched, .request = 4, .message = 3};
  if (name == "Wait") return {.role = Role::wait, .status = 1, .request = 0};
  if (name == "Waitall") return {.role = Role::wait_all, .status = 2, .request = 1};
  if (name == "Waitany") return {.role = Role::wait_some, .status = 3, .request = 1, .indices = 2};
  if (name == "Waitsome") return {.role = Role::wait_some, .status = 4, .request = 1, .flag = 2, .indices = 3};
  if (name == "Test") return {.role = Role::test, .status = 2, .request = 0, .flag = 1};
  if (name == "Testall") return {.role = Role::test_all, .status = 3, .request = 1, .flag = 2};
  if (name == "Testany") return {.role = Role::test_some, .status = 4, .request = 1, .flag = 3, .indices = 2};
  if (name == "Testsome") return {.role = Role::test_some, .status = 4, .request = 1, .flag = 2, .indices = 3};
  if (name == "Parrived") return {.role = Role::test_partition, .request = 0, .flag = 2};
  if (name == "Request_free") return {.role = Role::frees_request, .request = 0};
  return {};
}

// Whether it asks for something that may not be there, and returns at once.
constexpr bool is_poll(std::string_view name) {
  switch (places_of(name).role) {
    case Role::polled_message:
    case Role::test:
    case Role::test_all:
    case Role::test_some:
    case Role::test_partition:
      return true;
    default:
      return false;
  }
}

// Handles of an array of requests, which MPI overwrites as they end: of more than fit nothing is known.
class Handles {
 public:
  Handles(int count, const MPI_Request* all) noexcept
      : count_(count < 0 || all == nullptr ? 0 : static_cast<std::size_t>(count)) {
    if (!fits()) return;
    for (std::size_t i = 0; i < count_; ++i) {
      handles_[i] = all[i];
      __asm__ volatile("");  // no block copy, which takes longer to start than the usual few handles
    }
  }
  // Whom those with these numbers were for, and their statuses are in that order; not known if for several ranks.
  peers::Peer peer_of(std::span<const int> which, const MPI_Status* statuses) const noexcept;
  peers::Peer peer_of_all(const MPI_Status* statuses) const noexcept;
  void end(std::span<const int> which) const noexcept;
  void end_all() const noexcept;

 private:
  static constexpr std::size_t most = 64;
  bool fits() const noexcept { return count_ <= most; }

  std::size_t count_;
  MPI_Request handles_[most];  // so many: to clear the others would take longer than all else
};

// What MPI_Waitall waits for.
class AllRequests {
 public:
  // Before it does. `site`: where it is called.
  AllRequests(int count, const MPI_Request* all, const void* site) noexcept;
  // It has waited, and written these statuses. Whom it waited for last.
  peers::Peer ended(const MPI_Status* statuses, bool was_long) const noexcept;

 private:
  void find_last(int count, const MPI_Request* all) noexcept;

  peers::Peer peer_;      // whose requests completed last
  std::size_t last_ = 0;  // one of these
  std::uint64_t site_bit_;
};

// The last call has waited for `peer`, with what it polled before for so long.
inline void waited(const MpiTimes& times, const peers::Peer& peer, std::uint64_t ticks) noexcept {
  if (peer.is_known() && times.is_long(ticks)) MpiTimes::wait_for(peers::world_rank(peer), ticks);
}

template <Places places, Role = places.role>
struct Watch;

// MPI says itself that a pointer is null.
template <class Handle>
Handle value_at(const Handle* handle, Handle none) noexcept {
  return handle != nullptr ? *handle : none;
}

template <Places places>
peers::Peer peer_in(const auto& all) noexcept {
  return peers::Peer::now(std::get<places.comm>(all), std::get<places.rank>(all));
}
template <Places places>
const MPI_Status* status_in(const auto& all) noexcept {
  if constexpr (places.status == nowhere)
    return nullptr;
  else
    return std::get<places.status>(all);
}

// Which of an array's requests have ended.
template <Places places>
std::span<const int> ended_in(const auto& all) noexcept {
  const int* const which = std::get<places.indices>(all);
  int count = 1;
  if constexpr (places.flag != nowhere) count = *std::get<places.flag>(all);
  const bool is_any = count > 0 && *which >= 0;  // MPI_UNDEFINED is negative: there was nothing to wait for
  return {which, is_any ? static_cast<std::size_t>(count) : 0};
}

template <Places places>
struct Watch<places, Role::message> {
  Watch(const auto& all, const void*) noexcept : peer(peer_in<places>(all)) {}
  void ended(const auto& all, const MpiTimes& times, std::uint64_t inside) noexcept {
    if constexpr (places.message != nowhere)
      peers::messages.put(*std::get<places.message>(all), peer.resolved(status_in<places>(all)));
    if (times.is_long(inside)) waited(times, peer.resolved(status_in<places>(all)), inside);
  }
  peers::Peer peer;
};

template <Places places>
struct Watch<places, Role::matched_message> {
  Watch(const auto& all, const void*) noexcept
      : peer(peers::messages.take(value_at(std::get<places.message>(all), MPI_MESSAGE_NULL))) {}
  void ended(const auto& all, const MpiTimes& times, std::uint64_t inside) noexcept {
    if (times.is_long(inside)) waited(times, peer.resolved(status_in<places>(all)), inside);
  }
  peers::Peer peer;
};

template <Places places>
struct Watch<places, Role::polled_message> {
  Watch(const auto& all, const void*) noexcept : peer(peer_in<places>(all)) {}
  std::uint64_t key(const auto&) const noexcept {
    return peers::key_of(peer.comm) * 31 + static_cast<std::uint32_t>(peer.rank) + 1;
  }
  void found(const auto& all, const MpiTimes& times, std::uint64_t inside) noexcept {
    inside += MpiTimes::end_polling(key(all));
    peer = peer.resolved(status_in<places>(all));
    if constexpr (places.message != nowhere) peers::messages.put(*std::get<places.message>(all), peer);
    waited(times, peer, inside);
  }
  peers::Peer peer;
};

template <Places places>
struct Watch<places, Role::start> {
  Watch(const auto& all, const void*) noexcept : peer(peer_in<places>(all)) {}
  void ended(const auto& all, const MpiTimes&, std::uint64_t) noexcept {
    peers::requests.put(*std::get<places.request>(all), peer, places.is_kept);
  }
  peers::Peer peer;
};

template <Places places>
struct Watch<places, Role::start_matched> {
  Watch(const auto& all, const void*) noexcept
      : peer(peers::messages.take(value_at(std::get<places.message>(all), MPI_MESSAGE_NULL))) {}
  void ended(const auto& all, const MpiTimes&, std::uint64_t) noexcept {
    peers::requests.put(*std::get<places.request>(all), peer);
  }
  peers::Peer peer;
};

template <Places places>
struct Watch<places, Role::wait> {
  Watch(const auto& all, const void*) noexcept
      : peer(peers::requests.take(value_at(std::get<places.request>(all), MPI_REQUEST_NULL))) {}
  void ended(const auto& all, const MpiTimes& times, std::uint64_t inside) noexcept {
    if (times.is_long(inside)) waited(times, peer.resolved(status_in<places>(all)), inside);
  }
  peers::Peer peer;
};

template <Places places>
struct Watch<places, Role::wait_all> {
  Watch(const auto& all, const void* site) noexcept : requests(std::get<0>(all), std::get<places.request>(all), site) {}
  void ended(const auto& all, const MpiTimes& times, std::uint64_t inside) noexcept {
    waited(times, requests.ended(status_in<places>(all), times.is_long(inside)), inside);
  }
  AllRequests requests;
};

template <Places places>
struct Watch<places, Role::wait_some> {
  Watch(const auto& all, const void*) noexcept : handles(std::get<0>(all), std::get<places.request>(all)) {}
  void ended(const auto& all, const MpiTimes& times, std::uint64_t inside) noexcept {
    const std::span<const int> which = ended_in<places>(all);
    if (times.is_long(inside)) waited(times, handles.peer_of(which, status_in<places>(all)), inside);
    handles.end(which);
  }
  Handles handles;
};

template <Places places>
struct Watch<places, Role::test> {
  Watch(const auto& all, const void*) noexcept : request(value_at(std::get<places.request>(all), MPI_REQUEST_NULL)) {}
  std::uint64_t key(const auto&) const noexcept { return peers::key_of(request); }
  void found(const auto& all, const MpiTimes& times, std::uint64_t inside) noexcept {
    inside += MpiTimes::end_polling(key(all));
    waited(times, peers::requests.take(request).resolved(status_in<places>(all)), inside);
  }
  MPI_Request request;
};

template <Places places>
struct Watch<places, Role::test_all> {
  Watch(const auto& all, const void*) noexcept : handles(std::get<0>(all), std::get<places.request>(all)) {}
  std::uint64_t key(const auto& all) const noexcept { return peers::key_of(std::get<places.request>(all)); }
  void found(const auto& all, const MpiTimes& times, std::uint64_t inside) noexcept {
    inside += MpiTimes::end_polling(key(all));
    if (times.is_long(inside)) waited(times, handles.peer_of_all(status_in<places>(all)), inside);
    handles.end_all();
  }
  Handles handles;
};

template <Places places>
struct Watch<places, Role::test_some> {
  Watch(const auto& all, const void*) noexcept : handles(std::get<0>(all), std::get<places.request>(all)) {}
  std::uint64_t key(const auto& all) const noexcept { return peers::key_of(std::get<places.request>(all)); }
  void found(const auto& all, const MpiTimes& times, std::uint64_t inside) noexcept {
    const std::span<const int> which = ended_in<places>(all);
    inside += MpiTimes::end_polling(key(all));
    if (times.is_long(inside)) waited(times, handles.peer_of(which, status_in<places>(all)), inside);
    handles.end(which);
  }
  Handles handles;
};

template <Places places>
struct Watch<places, Role::test_partition> {
  Watch(const auto&, const void*) noexcept {}
  std::uint64_t key(const auto& all) const noexcept { return peers::key_of(std::get<places.request>(all)); }
  void found(const auto& all, const MpiTimes& times, std::uint64_t inside) noexcept {
    inside += MpiTimes::end_polling(key(all));
    if (times.is_long(inside)) waited(times, peers::requests.find(std::get<places.request>(all)), inside);
  }
};

template <Places places>
struct Watch<places, Role::frees_request> {
  Watch(const auto& all, const void*) noexcept {
    peers::requests.forget(value_at(std::get<places.request>(all), MPI_REQUEST_NULL));
  }
  void ended(const auto&, const MpiTimes&, std::uint64_t) noexcept {}
};

}  // namespace papaya::waited_for
