#include "interpose/timed_calls.hpp"

#include <mpi.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>
#include <tuple>

#include "base/mpi_kind.hpp"
#include "interpose/dispatch.hpp"
#include "interpose/peers.hpp"
#include "interpose/runtime.hpp"

// Wrappers of other files, which libpapaya.so otherwise finds by name.
#define UNTIMED(name)
#define TIMED(name, kind, function) extern "C" decltype(PMPI_##name) papaya_MPI_##name;
#include "interpose/timed_rows.def"

namespace papaya::timed_calls {

namespace {

enum Number : std::size_t {
#define UNTIMED(name)
#define TIMED(name, kind, function) number_of_##name,
#include "interpose/timed_rows.def"
};

constexpr std::string_view names[] = {
#define UNTIMED(name)
#define TIMED(name, kind, function) #name,
#include "interpose/timed_rows.def"
};

// Which parameters of a function tell whom it waits for.
enum class Role : std::uint8_t { none, message, start, wait, wait_all, test, other_completion, frees_communicator };
struct Places {
  Role role = Role::none;
  std::size_t rank = 0;  // the other side of a message, in
  std::size_t comm = 0;
  std::size_t last =
      0;  // status; of `start` the request; of a completion whether something has ended; 0: there is none
};
constexpr Places places_of(std::string_view name) {
  if (name.ends_with("_c")) name.remove_suffix(2);
  const auto is_one_of = [&](auto... ones) { return ((name == ones) || ...); };
  if (name == "Recv") return {Role::message, 3, 5, 6};
  if (is_one_of("Send", "Ssend", "Rsend")) return {Role::message, 3, 5, 0};
  if (name == "Sendrecv") return {Role::message, 8, 10, 11};
  if (name == "Sendrecv_replace") return {Role::message, 5, 7, 8};
  if (name == "Probe") return {Role::message, 0, 2, 3};
  if (name == "Mprobe") return {Role::message, 0, 2, 4};
  if (is_one_of("Irecv", "Isend", "Issend", "Irsend")) return {Role::start, 3, 5, 6};
  if (name == "Wait") return {Role::wait};
  if (name == "Waitall") return {Role::wait_all};
  if (name == "Test") return {Role::test};
  if (is_one_of("Testall", "Testsome", "Waitsome")) return {Role::other_completion, 0, 0, 2};
  if (name == "Testany") return {Role::other_completion, 0, 0, 3};
  if (name == "Waitany") return {Role::other_completion};
  if (is_one_of("Comm_free", "Comm_disconnect")) return {Role::frees_communicator};
  return {};
}

peers::Requests requests;  // not with MPI_THREAD_MULTIPLE

// Whom MPI_Waitall waits for, if that is the same rank for all requests.
peers::Peer peer_of_all(int count, const MPI_Request* all) noexcept {
  peers::Peer peer;
  for (int i = 0; i < count; ++i) {
    if (all[i] == MPI_REQUEST_NULL) continue;
    const peers::Peer own = requests.find(all[i]);
    if (own.rank < 0 || (peer.is_known() && (own.rank != peer.rank || own.comm != peer.comm))) return {};
    peer = own;
  }
  return peer;
}

// Calls `function` as the program called it, and counts it as `number`. Not what MPI calls back from inside another
// call that is timed or recorded, nor what papaya's own code leads to: that is time of the call around it.
template <Number number, auto function>
struct Timed;
template <Number number, class... Parameters, int (*function)(Parameters...)>
struct Timed<number, function> {
  static int call(Parameters... arguments) {
    Runtime& process = runtime();
    const void* const frame = __builtin_frame_address(0);
    if (!process.active.load(std::memory_order_acquire) || Entry::is_inside() || native_event != no_event ||
        MpiTimes::Call::is_nested(frame) || !process.records.recording.load(std::memory_order_relaxed))
      return function(arguments...);
    MpiTimes::Call timed(process.records.mpi_times, number, __builtin_return_address(0), frame);
    constexpr Places places = places_of(names[number]);
    if constexpr (places.role == Role::none) {
      return function(arguments...);
    } else {
      return call_with_peer<places>(process.records.mpi_times, timed, arguments...);
    }
  }

 private:
  template <Places places>
  static int call_with_peer(MpiTimes& times, MpiTimes::Call& timed, Parameters... arguments) {
    const auto all = std::forward_as_tuple(arguments...);
    const bool knows_requests = !times.is_concurrent();
    peers::Peer peer;
    MPI_Request request = MPI_REQUEST_NULL;
    if constexpr (places.role == Role::wait || places.role == Role::test) {
      if (knows_requests && std::get<0>(all) != nullptr) request = *std::get<0>(all);
    } else if constexpr (places.role == Role::wait_all) {
      if (knows_requests) {
        const int count = std::get<0>(all);
        peer = peer_of_all(count, std::get<1>(all));
        for (int i = 0; i < count; ++i) requests.end(std::get<1>(all)[i]);
      }
    }
    const int code = function(arguments...);
    const std::uint64_t inside = timed.end();
    if constexpr (places.role == Role::frees_communicator) peers::forget_communicators();
    if (code != MPI_SUCCESS) return code;
    const MPI_Status* status = nullptr;
    if constexpr (places.role == Role::message) {
      if (!times.is_long(inside)) return code;
      peer = {std::get<places.comm>(all), std::get<places.rank>(all)};
      if constexpr (places.last != 0) status = std::get<places.last>(all);
    } else if constexpr (places.role == Role::start) {
      if (knows_requests)
        requests.start(*std::get<places.last>(all), {std::get<places.comm>(all), std::get<places.rank>(all)});
    } else if constexpr (places.role == Role::wait) {
      if (times.is_long(inside)) peer = requests.find(request);
      if (knows_requests) requests.end(request);
      status = std::get<1>(all);
    } else if constexpr (places.role == Role::test) {
      if (knows_requests && *std::get<1>(all) != 0) requests.end(request);
    } else if constexpr (places.role == Role::other_completion) {
      bool has_ended = true;
      if constexpr (places.last != 0) has_ended = *std::get<places.last>(all) != 0;
      if (knows_requests && has_ended) requests.end_any();
    }
    if (times.is_long(inside) && peer.is_known()) MpiTimes::wait_for(peers::world_rank(peer, status), inside);
    return code;
  }
};

constexpr Recorder::Function function_rows[] = {
#define UNTIMED(name)
#define TIMED(name, kind, function) {"MPI_" #name, MpiKind::kind},
#include "interpose/timed_rows.def"
};

static_assert(std::size(function_rows) <= trace::most_timed);

void* const wrapper_rows[] = {
#define UNTIMED(name) nullptr,
#define TIMED(name, kind, function) reinterpret_cast<void*>(&Timed<number_of_##name, &(function)>::call),
#include "interpose/timed_rows.def"
};

}  // namespace

std::span<const Recorder::Function> functions() noexcept {
  return function_rows;
}

void* const* wrappers() noexcept {
  return wrapper_rows;
}

}  // namespace papaya::timed_calls
