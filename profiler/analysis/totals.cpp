#include "profiler/analysis/totals.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <string>
#include <utility>

#include "base/mpi_name.hpp"

namespace papaya::report {

std::vector<CollectiveFigures> totals_of(const Run& run, const Clocks& clocks) {
  std::array<std::array<CollectiveFigures, form_count>, collective_count> all;
  for (std::size_t i = 0; i < run.files.size(); ++i) {
    const trace::Totals totals = run.files[i].totals.unpack();
    const double ns_per_tick = clocks.of_file(i).ns_per_tick;
    for (std::size_t c = 0; c < collective_count; ++c)
      for (std::size_t f = 0; f < form_count; ++f)
        for (std::size_t s = 0; s < size_class_count; ++s) {
          const trace::Total& total = totals.by_size[c][f][s];
          SizeFigures& size = all[c][f].by_size[s];
          size.calls += total.calls;
          size.bytes += total.bytes;
          size.ns += static_cast<double>(total.ticks) * ns_per_tick;
        }
  }
  std::vector<CollectiveFigures> collectives;
  for (std::size_t c = 0; c < collective_count; ++c)
    for (std::size_t f = 0; f < form_count; ++f) {
      CollectiveFigures& figures = all[c][f];
      figures.collective = static_cast<Collective>(c);
      figures.form = static_cast<Form>(f);
      for (const SizeFigures& size : figures.by_size) {
        figures.calls += size.calls;
        figures.bytes += size.bytes;
        figures.ns += size.ns;
      }
      if (figures.calls == 0) continue;
      figures.name = mpi_name(figures.collective, figures.form);
      collectives.push_back(std::move(figures));
    }
  return collectives;
}

namespace {

// Calls by algorithm and reason, by name: each rank numbers its algorithms and reasons by itself.
using CallsBy = std::map<std::pair<std::string, std::string>, std::uint64_t>;

// Of one collective on one rank. Native keeps what no reason accounts for.
void add_calls(const trace::Totals& totals, const RankFile& file, const std::vector<std::string>& reasons,
               std::size_t collective, Form form, CallsBy& calls) {
  const auto& by_reason = form == Form::blocking ? totals.native_calls_by_reason : totals.native_nonblocking_by_reason;
  std::uint64_t explained = 0;
  for (std::size_t r = 1; r < trace::reason_capacity; ++r) {
    const std::uint64_t native = by_reason[collective][r];
    if (native == 0) continue;
    calls[{"native", reasons[r]}] += native;
    explained += native;
  }
  for (const AlgorithmCalls& row : file.algorithm_calls) {
    if (row.collective != collective || row.form != form) continue;
    const std::uint64_t count = row.calls - (row.algorithm == 0 ? std::min(row.calls, explained) : 0);
    if (count == 0) continue;
    std::string name = row.algorithm == 0 ? "native" : algorithm_name(file, row.algorithm);
    if (name.empty()) name = fmt::format("algorithm {}", row.algorithm);
    calls[{std::move(name), std::string()}] += count;
  }
}

}  // namespace

std::vector<AlgorithmFigures> algorithms_of(const Run& run) {
  constexpr Form forms[] = {Form::blocking, Form::nonblocking};
  std::array<std::array<CallsBy, std::size(forms)>, collective_count> all;
  for (const RankFile& file : run.files) {
    const trace::Totals totals = file.totals.unpack();
    std::vector<std::string> reasons;
    for (std::size_t r = 0; r < trace::reason_capacity; ++r) {
      reasons.push_back(clean_text(file.texts->reason_names[r]));
      if (reasons.back().empty()) reasons.back() = fmt::format("reason {}", r);
    }
    for (std::size_t c = 0; c < collective_count; ++c)
      for (std::size_t f = 0; f < std::size(forms); ++f) add_calls(totals, file, reasons, c, forms[f], all[c][f]);
  }
  std::vector<AlgorithmFigures> algorithms;
  for (std::size_t c = 0; c < collective_count; ++c)
    for (std::size_t f = 0; f < std::size(forms); ++f) {
      const std::size_t first = algorithms.size();
      for (const auto& [key, count] : all[c][f])
        algorithms.push_back({mpi_name(static_cast<Collective>(c), forms[f]), key.first, key.second, count});
      std::stable_sort(algorithms.begin() + static_cast<std::ptrdiff_t>(first), algorithms.end(),
                       [](const auto& one, const auto& other) { return one.calls > other.calls; });
    }
  return algorithms;
}

void count_cores(const Run& run, Analysis& analysis) {
  for (const RankFile& file : run.files) {
    const RankHeader& own = file.header;
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
