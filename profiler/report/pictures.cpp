#include "profiler/report/pictures.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "base/mpi_name.hpp"
#include "profiler/analysis/in_order.hpp"
#include "profiler/read/clocks.hpp"
#include "profiler/read/event_reader.hpp"
#include "profiler/read/units.hpp"

namespace papaya::report {

namespace {

constexpr std::size_t events_per_piece = 4096;

}  // namespace

// ---- ranks over time

HeatMap::HeatMap(double begin_ns, double end_ns, std::size_t rows, std::uint64_t calls)
    : begin_ns_(begin_ns), end_ns_(end_ns), rows_(rows) {
  const std::size_t most = std::clamp<std::size_t>(most_cells / std::max<std::size_t>(rows, 1), 1, most_bins);
  bins_ = static_cast<std::size_t>(std::clamp<std::uint64_t>(calls, 1, most));
  bin_ns_ = std::max(1.0, (end_ns - begin_ns) / static_cast<double>(bins_));
  cells_.resize(rows_ * bins_);
}

void HeatMap::add(const ComparedCall& call) {
  const std::size_t bin = bin_of(call);
  for (std::size_t i = 0; i < call.files.size(); ++i) {
    Cell& cell = cells_[call.files[i] * bins_ + bin];
    const double late_ns = call.arrivals_ns[i] - call.first_ns;
    cell.sum_ns += late_ns;
    cell.worst_ns = std::max(cell.worst_ns, static_cast<float>(late_ns));
    cell.caused_ns += static_cast<float>(call.caused_ns[i]);
    ++cell.calls;
    top_ns_ = std::max(top_ns_, late_ns);
    const double arrival_ns = call.arrivals_ns[i];
    const double exit_ns = std::isnan(call.exits_ns[i]) ? end_ns_ : call.exits_ns[i];
    spread(call.files[i], arrival_ns, arrival_ns + call.waits_ns[i], &Cell::waiting_ns);
    spread(call.files[i], arrival_ns, std::max(exit_ns, arrival_ns + call.waits_ns[i]), &Cell::inside_ns);
  }
}

std::size_t HeatMap::bin_of(const ComparedCall& call) const {
  return bin_at(call.arrivals_ns[call.last]);
}

std::size_t HeatMap::bin_at(double ns) const {
  const double at = (ns - begin_ns_) / bin_ns_;
  return at > 0 ? static_cast<std::size_t>(std::min(at, static_cast<double>(bins_ - 1))) : 0;
}

void HeatMap::spread(std::size_t row, double from_ns, double to_ns, float Cell::*time) {
  for (std::size_t bin = bin_at(from_ns), last = bin_at(to_ns); bin <= last; ++bin) {
    const double bin_begin_ns = begin_ns_ + static_cast<double>(bin) * bin_ns_;
    const double in_bin_ns = std::min(to_ns, bin_begin_ns + bin_ns_) - std::max(from_ns, bin_begin_ns);
    if (in_bin_ns > 0) cells_[row * bins_ + bin].*time += static_cast<float>(in_bin_ns);
  }
}

double HeatMap::most_caused_ns() const {
  float most = 0;
  for (const Cell& cell : cells_) most = std::max(most, cell.caused_ns);
  return static_cast<double>(most);
}

double HeatMap::waiting(std::size_t row, std::size_t bin) const {
  return std::min(1.0, static_cast<double>(cell(row, bin).waiting_ns) / bin_ns_);
}

double HeatMap::inside(std::size_t row, std::size_t bin) const {
  return std::min(1.0, static_cast<double>(cell(row, bin).inside_ns) / bin_ns_);
}

double HeatMap::mean_ns(std::size_t row, std::size_t bin) const {
  const Cell& cell = cells_[row * bins_ + bin];
  return cell.calls > 0 ? cell.sum_ns / cell.calls : -1;
}

double HeatMap::worst_ns(std::size_t row, std::size_t bin) const {
  const Cell& cell = cells_[row * bins_ + bin];
  return cell.calls > 0 ? static_cast<double>(cell.worst_ns) : -1;
}

// ---- imbalance factors

std::size_t FactorFigures::bin_of(double factor) {
  if (!(factor > smallest)) return 0;
  const double bin = std::floor(std::log10(factor / smallest) * bins_per_decade);
  return static_cast<std::size_t>(std::min(bin, static_cast<double>(bins - 1)));
}

void FactorFigures::add(const ComparedCall& call) {
  Point point{call.first_ns, {-1, -1, -1, -1}};
  const auto set = [&](std::size_t first_kind, const WorstAverage& imbalance, double alpha_ns) {
    const double factors[] = {imbalance.worst_ns / alpha_ns, imbalance.average_ns / alpha_ns};
    for (std::size_t i = 0; i < 2; ++i) {
      ++counts[first_kind + i][bin_of(factors[i])];
      point.factors[first_kind + i] = static_cast<float>(factors[i]);
    }
  };
  set(0, call.cluster, call.cluster_alpha_ns);
  if (call.has_node) set(2, call.node, call.node_alpha_ns);
  if (points.takes_next()) points.add(point);
}

// ---- single calls

namespace {

// Of the blocking calls of ranks: from when to when they are, and how many of the rank that has most.
struct CallSpan {
  double begin_ns = std::numeric_limits<double>::max();
  double end_ns = std::numeric_limits<double>::lowest();
  bool is_unfinished = false;
  std::uint64_t calls = 0;

  void add(const CallSpan& other) {
    begin_ns = std::min(begin_ns, other.begin_ns);
    end_ns = std::max(end_ns, other.end_ns);
    is_unfinished = is_unfinished || other.is_unfinished;
    calls = std::max(calls, other.calls);
  }
};

CallSpan span_of_calls(const RankFile& file, const NodeClock& clock) {
  CallSpan span;
  EventReader reader(file, events_per_piece, true);
  for (std::span<const trace::Event> piece = reader.next(); !piece.empty(); piece = reader.next())
    for (const trace::Event& event : piece) {
      if (static_cast<Form>(event.form) != Form::blocking) continue;
      ++span.calls;
      const double at_ns = clock.ns(event.arrival_ticks);
      span.begin_ns = std::min(span.begin_ns, at_ns);
      span.end_ns = std::max({span.end_ns, at_ns, event.exit_ticks > 0 ? clock.ns(event.exit_ticks) : at_ns});
      span.is_unfinished = span.is_unfinished || event.exit_ticks == 0;
    }
  return span;
}

}  // namespace

Pictures::Pictures(const Run& run) : run_(run) {
  const Clocks clocks(run);
  CallSpan all;
  in_order(
      run.files.size(), threads_for_reading(run.files.size()),
      [&](std::size_t f) { return span_of_calls(run.files[f], clocks.of_file(f)); },
      [&](std::size_t, const CallSpan& span) { all.add(span); });
  // A call that never ended lasts as long as there are signs of the job.
  if (all.is_unfinished)
    for (std::size_t f = 0; f < run.files.size(); ++f)
      if (const std::uint64_t end = run.files[f].header.end_ticks; end > 0)
        all.end_ns = std::max(all.end_ns, clocks.of_file(f).ns(end));
  const bool has_calls = all.calls > 0;
  heat_map_ = HeatMap(has_calls ? all.begin_ns : 0, has_calls ? all.end_ns : 0, run.files.size(), all.calls);
}

ShownCall Pictures::shown(const ComparedCall& call) const {
  ShownCall shown;
  shown.communicator = call.communicator_id;
  shown.call = call.call;
  shown.bytes = call.bytes;
  shown.algorithm = algorithm_name(run_.files[call.files.front()], call.algorithm);
  shown.phase = call.phase;
  shown.first_ns = call.first_ns;
  shown.worst_ns = call.cluster.worst_ns;
  shown.last = call.last;
  for (std::size_t i = 0; i < call.files.size(); ++i) {
    const double exit_ns = call.exits_ns[i];
    shown.arrivals_us.push_back(static_cast<float>((call.arrivals_ns[i] - call.first_ns) / 1e3));
    shown.waits_us.push_back(static_cast<float>(call.waits_ns[i] / 1e3));
    shown.exits_us.push_back(std::isnan(exit_ns) ? -1.0F : static_cast<float>((exit_ns - call.first_ns) / 1e3));
  }
  return shown;
}

void Pictures::add(const ComparedCall& call) {
  heat_map_.add(call);
  const auto collective = call.collective;
  if (call.site != ComparedCall::no_site) {
    SiteLosses& losses = losses_.try_emplace({call.site, collective}, heat_map_.bins()).first->second;
    losses.add(call, heat_map_.bin_of(call), most_loss_cells / losses_.size());
  }
  factors_[{collective, size_class_of(call.bytes)}].add(call);

  Communicator& communicator = communicators_[call.communicator_id];
  if (communicator.files.empty()) {
    communicator.name = call.communicator;
    communicator.files.assign(call.files.begin(), call.files.end());
  }
  // A communicator's ranks stay the same; where damaged files say otherwise the call cannot be drawn.
  if (!std::equal(call.files.begin(), call.files.end(), communicator.files.begin(), communicator.files.end())) return;
  const std::size_t capacity = std::clamp<std::size_t>(most_entries / 8 / call.files.size(), 2, most_shown / 2);
  ShownCalls& group = calls_.try_emplace({call.site, collective}, capacity).first->second;
  if (group.even.takes_next()) group.even.add(shown(call));
  const auto milder = [](const ShownCall& a, const ShownCall& b) { return a.worst_ns > b.worst_ns; };
  if (group.worst.size() < most_worst || call.cluster.worst_ns > group.worst.back().worst_ns) {
    if (group.worst.size() == most_worst) group.worst.pop_back();
    ShownCall worst = shown(call);
    group.worst.insert(std::upper_bound(group.worst.begin(), group.worst.end(), worst, milder), std::move(worst));
  }
}

}  // namespace papaya::report
