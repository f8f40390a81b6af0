#include "interpose/timed_calls.hpp"

#include <mpi.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>
#include <tuple>

#include "base/mpi_kind.hpp"
#include "interpose/attention.hpp"
#include "interpose/dispatch.hpp"
#include "interpose/mpi_features.hpp"
#include "interpose/next.hpp"
#include "interpose/peers.hpp"
#include "interpose/runtime.hpp"
#include "interpose/waited_for.hpp"

// Wrappers of other files, which libpapaya.so otherwise finds by name.
#define UNTIMED(name)
#define TIMED(name, kind, function) extern "C" decltype(PMPI_##name) papaya_MPI_##name;
#include "interpose/timed_rows.def"

namespace papaya::timed_calls {

namespace {

// A function that waits, by its wrapper only if that has something to do.
template <auto wrapper, auto next>
struct Unattended;
template <class... Parameters, int (*wrapper)(Parameters...), int (*next)(Parameters...)>
struct Unattended<wrapper, next> {
  static int call(Parameters... arguments) {
    return nonblocking::needs_attention() ? wrapper(arguments...) : next(arguments...);
  }
};
#define PAPAYA_UNATTENDED(name) (Unattended<papaya_MPI_##name, PAPAYA_NEXT(name)>::call)

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

// The functions that poll are numbered among themselves.
constexpr std::size_t poll_of(std::size_t number) {
  std::size_t polls = 0;
  for (std::size_t i = 0; i < number; ++i)
    if (waited_for::is_poll(names[i])) ++polls;
  return polls;
}
static_assert(poll_of(std::size(names)) <= QuickPolls::most);

// Not what MPI calls back from inside another call that is timed or recorded, nor what papaya's own code leads to: that
// is time of the call around it.
bool counts(const void* frame) noexcept {
  const Runtime& process = runtime();
  return process.active.load(std::memory_order_acquire) && !Entry::is_inside() && native_event == no_event &&
         !MpiTimes::Call::is_nested(frame) && process.records.recording.load(std::memory_order_relaxed);
}
// Once in 64 polls of a process whose threads do not call MPI at once.
[[gnu::noinline, gnu::cold]] bool start_polls(const void* frame) noexcept {
  if (!counts(frame)) return false;
  Records& records = runtime().records;
  records.mpi_times.start_polls(!records.recorder.is_concurrent());
  return true;
}

// Calls `function` as the program called it, and counts it as `number`.
template <Number number, auto function>
struct Timed;
template <Number number, class... Parameters, int (*function)(Parameters...)>
struct Timed<number, function> {
  static int call(Parameters... arguments) {
    const void* const frame = __builtin_frame_address(0);
    const void* const site = __builtin_return_address(0);
    constexpr waited_for::Places places = waited_for::places_of(names[number]);
    if constexpr (waited_for::is_poll(names[number])) {
      if (!MpiTimes::may_poll() && !start_polls(frame)) return function(arguments...);
      constexpr std::size_t of_polls = poll_of(number);
      MpiTimes::Poll timed(number, of_polls, site, frame);
      return poll<places>(timed, site, arguments...);
    } else {
      if (!counts(frame)) return function(arguments...);
      MpiTimes& times = runtime().records.mpi_times;
      MpiTimes::Call timed(times, number, site, frame);
      if constexpr (places.role == waited_for::Role::none)
        return function(arguments...);
      else
        return call_with_peer<places>(times, timed, site, arguments...);
    }
  }

 private:
  template <waited_for::Places places>
  static int call_with_peer(const MpiTimes& times, MpiTimes::Call& timed, const void* site, Parameters... arguments) {
    const auto all = std::forward_as_tuple(arguments...);
    waited_for::Watch<places> watch(all, site);
    const int code = function(arguments...);
    const std::uint64_t inside = timed.end();
    if (code == MPI_SUCCESS)
      watch.ended(all, times, inside);
    else
      peers::requests.forget_all();
    return code;
  }
  template <waited_for::Places places>
  static int poll(MpiTimes::Poll& timed, const void* site, Parameters... arguments) {
    const auto all = std::forward_as_tuple(arguments...);
    waited_for::Watch<places> watch(all, site);
    const int code = function(arguments...);
    if (code != MPI_SUCCESS) {
      timed.end_found();
      peers::requests.forget_all();
    } else if (*std::get<places.flag>(all) == 0) {
      if (const std::uint64_t inside = timed.end(); inside != 0) MpiTimes::poll(watch.key(all), inside);
    } else {
      const std::uint64_t inside = timed.end_found();
      watch.found(all, runtime().records.mpi_times, inside);
    }
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
