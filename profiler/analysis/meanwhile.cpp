#include "profiler/analysis/meanwhile.hpp"

#include "base/mpi_name.hpp"
#include "profiler/analysis/archive.hpp"
#include "profiler/analysis/sites.hpp"
#include "profiler/record/waits.hpp"

namespace papaya::report {

Meanwhile::Meanwhile(const Run& run, const Clocks& clocks, const Analysis& analysis)
    : run_(run), clocks_(clocks), waits_(run.files.size()) {
  for (std::size_t i = 0; i < analysis.costly_calls.size(); ++i) {
    const CostlyCall& costly = analysis.costly_calls[i];
    const double begin_ns = costly.begin_ns + analysis.begin_ns;
    for (std::size_t file = 0; file < run.files.size(); ++file)
      if (run.files[file].header.rank == costly.rank)
        waits_[file].push_back({i, begin_ns, begin_ns + costly.delay_ns, {}});
  }
}

void Meanwhile::add(std::size_t file, const trace::Event& event) {
  if (waits_[file].empty()) return;
  const double arrival_ns = clocks_.of_file(file).ns(event.arrival_ticks);
  for (Wait& wait : waits_[file]) {
    // The last one is the call itself, as exactly as its end is known.
    if (arrival_ns <= wait.begin_ns || arrival_ns >= wait.end_ns - tie_ns) continue;
    const std::uint32_t what = event.collective | static_cast<std::uint32_t>(event.form) << 8;
    Calls& calls = wait.calls[{event.call_site, what}];
    if (calls.count++ == 0) calls.first = event;
  }
}

void Meanwhile::merge(const Meanwhile& next) {
  for (std::size_t file = 0; file < waits_.size(); ++file)
    for (std::size_t w = 0; w < waits_[file].size(); ++w)
      for (const auto& [what, other] : next.waits_[file][w].calls) {
        Calls& own = waits_[file][w].calls[what];
        if (own.count == 0) own.first = other.first;
        own.count += other.count;
      }
}

void Meanwhile::pack(Archive& archive) {
  for (std::vector<Wait>& of_file : waits_)
    for (Wait& wait : of_file) archive(wait.calls);
}

void Meanwhile::write(std::vector<CostlyCall>& calls) const {
  for (std::size_t file = 0; file < waits_.size(); ++file)
    for (const Wait& wait : waits_[file]) {
      const Calls* most = nullptr;
      for (const auto& [what, own] : wait.calls)
        if (most == nullptr || own.count > most->count) most = &own;
      if (most == nullptr) continue;
      calls[wait.costly].meanwhile = {
          most->count, mpi_name(static_cast<Collective>(most->first.collective), static_cast<Form>(most->first.form)),
          frames_of(run_.files[file], most->first)};
    }
}

}  // namespace papaya::report
