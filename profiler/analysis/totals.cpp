#include "profiler/analysis/totals.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "base/mpi_name.hpp"

namespace papaya::report {

std::vector<CollectiveFigures> totals_of(const Run& run, const Clocks& clocks) {
  std::vector<CollectiveFigures> collectives;
  for (std::size_t c = 0; c < collective_count; ++c) {
    for (std::size_t f = 0; f < form_count; ++f) {
      CollectiveFigures figures;
      figures.collective = static_cast<Collective>(c);
      figures.form = static_cast<Form>(f);
      for (std::size_t i = 0; i < run.files.size(); ++i) {
        for (std::size_t s = 0; s < size_class_count; ++s) {
          const trace::Total& total = run.files[i].totals.by_size[c][f][s];
          SizeFigures& size = figures.by_size[s];
          size.calls += total.calls;
          size.bytes += total.bytes;
          size.ns += static_cast<double>(total.ticks) * clocks.of_file(i).ns_per_tick;
        }
      }
      for (const SizeFigures& size : figures.by_size) {
        figures.calls += size.calls;
        figures.bytes += size.bytes;
        figures.ns += size.ns;
      }
      if (figures.calls == 0) continue;
      figures.name = mpi_name(figures.collective, figures.form);
      collectives.push_back(std::move(figures));
    }
  }
  return collectives;
}

std::vector<AlgorithmFigures> algorithms_of(const Run& run) {
  std::vector<AlgorithmFigures> algorithms;
  for (std::size_t c = 0; c < collective_count; ++c)
    for (const Form form : {Form::blocking, Form::nonblocking}) {
      const bool blocking = form == Form::blocking;
      // By name: each rank numbers its algorithms and reasons by itself. Native keeps what no reason accounts
      // for.
      std::map<std::pair<std::string, std::string>, std::uint64_t> calls;
      for (const RankFile& file : run.files) {
        const trace::Totals& totals = file.totals;
        const auto& by_reason = blocking ? totals.native_calls_by_reason : totals.native_nonblocking_by_reason;
        std::uint64_t explained = 0;
        for (std::size_t r = 1; r < trace::reason_capacity; ++r) {
          const std::uint64_t native = by_reason[c][r];
          if (native == 0) continue;
          std::string reason = clean_text(file.header.reason_names[r]);
          if (reason.empty()) reason = fmt::format("reason {}", r);
          calls[{"native", std::move(reason)}] += native;
          explained += native;
        }
        for (std::size_t a = 0; a < file.algorithms.size(); ++a) {
          const trace::Algorithm& row = file.algorithms[a];
          std::uint64_t count = blocking ? row.calls[c] : row.nonblocking[c];
          if (a == 0) count -= std::min(count, explained);
          if (count == 0) continue;
          std::string algorithm = a == 0 ? "native" : clean_text(row.name);
          if (algorithm.empty()) algorithm = fmt::format("algorithm {}", a);
          calls[{std::move(algorithm), std::string()}] += count;
        }
      }
      const std::size_t first = algorithms.size();
      for (const auto& [key, count] : calls)
        algorithms.push_back({mpi_name(static_cast<Collective>(c), form), key.first, key.second, count});
      std::stable_sort(algorithms.begin() + static_cast<std::ptrdiff_t>(first), algorithms.end(),
                       [](const auto& one, const auto& other) { return one.calls > other.calls; });
    }
  return algorithms;
}

void count_cores(const Run& run, Analysis& analysis) {
  for (const RankFile& file : run.files) {
    const trace::Header& own = file.header;
    if (own.node_rank == 0) analysis.cores += std::max(0, own.cores);
    // The node with the most ranks for each core, compared without dividing.
    if (own.cores > 0 && own.node_ranks > own.cores &&
        std::int64_t{own.node_ranks} * analysis.crowded_cores >= std::int64_t{analysis.crowded_ranks} * own.cores) {
      analysis.crowded_ranks = own.node_ranks;
      analysis.crowded_cores = own.cores;
    }
  }
}

}  // namespace papaya::report
