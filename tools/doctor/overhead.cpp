#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "profiler/record/call_sites.hpp"
#include "profiler/record/recorder.hpp"
#include "tools/doctor/checks.hpp"

namespace papaya::doctor {
namespace {

constexpr int batches = 31;
constexpr std::uint64_t calls_a_batch = 2000;

// As dispatch does it around a call: the arrival and its call site, then the exit.
[[gnu::noinline]] void record(Recorder& recorder, CallSites& sites, std::uint64_t call) {
  const Recorder::Arrival arrival{clock::ticks(), 1, call, 8, -1, Collective::allreduce, Form::blocking};
  const std::uint64_t number = recorder.begin(arrival, sites.number_of(__builtin_return_address(0)));
  recorder.finish(number, arrival, clock::ticks(), 0, static_cast<std::uint8_t>(Reason::selected));
}

// The median over batches; below 0 if it cannot be measured.
double measure(const std::string& folder, int frames) {
  Recorder recorder;
  const std::string path = folder + "/overhead.pap";
  std::string error;
  if (!recorder.open(path, trace::event_capacity, {}, error)) return -1;
  std::filesystem::remove(path);
  recorder.set_concurrent(false);
  const auto sites = std::make_unique<CallSites>();
  if (!sites->open(recorder, frames, nullptr)) return -1;
  std::vector<double> times;
  std::uint64_t call = 0;
  for (int batch = 0; batch < batches; ++batch) {
    const std::uint64_t begin = clock::monotonic_ns();
    for (std::uint64_t i = 0; i < calls_a_batch; ++i) record(recorder, *sites, call++);
    times.push_back(static_cast<double>(clock::monotonic_ns() - begin) / static_cast<double>(calls_a_batch));
  }
  std::nth_element(times.begin(), times.begin() + batches / 2, times.end());
  return times[batches / 2];
}

}  // namespace

Overhead measure_overhead(const std::string& folder) {
  clock::choose(clock::counter_is_trusted());
  Overhead overhead;
  std::string own = folder + "/papaya-doctor-XXXXXX";
  if (mkdtemp(own.data()) == nullptr) return overhead;
  overhead.no_frames = measure(own, 0);
  overhead.one_frame = measure(own, 1);
  overhead.four_frames = measure(own, 4);
  std::error_code error;
  std::filesystem::remove_all(own, error);
  return overhead;
}

}  // namespace papaya::doctor
