#include "profiler/report/pictures.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <span>

#include "base/mpi_name.hpp"
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
  const std::size_t bin = bin_at(call.arrivals_ns[call.last]);
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

Pictures::Pictures(const Run& run) : run_(run) {
  const Clocks clocks(run);
  double begin_ns = std::numeric_limits<double>::max();
  double end_ns = std::numeric_limits<double>::lowest();
  std::uint64_t calls = 0;
  for (std::size_t f = 0; f < run.files.size(); ++f) {
    std::uint64_t own = 0;
    EventReader reader(run.files[f], events_per_piece, true);
    for (std::span<const trace::Event> piece = reader.next(); !piece.empty(); piece = reader.next())
      for (const trace::Event& event : piece) {
        if (static_cast<Form>(event.form) != Form::blocking) continue;
        ++own;
        const double at_ns = clocks.of_file(f).ns(event.arrival_ticks);
        begin_ns = std::min(begin_ns, at_ns);
        end_ns = std::max({end_ns, at_ns, event.exit_ticks > 0 ? clocks.of_file(f).ns(event.exit_ticks) : at_ns});
      }
    calls = std::max(calls, own);
  }
  heat_map_ = HeatMap(calls > 0 ? begin_ns : 0, calls > 0 ? end_ns : 0, run.files.size(), calls);
}

ShownCall Pictures::shown(const ComparedCall& call) const {
  ShownCall shown;
  shown.communicator = call.event->communicator;
  shown.call = call.event->call;
  shown.bytes = call.bytes;
  shown.algorithm = algorithm_name(run_.files[call.files.front()], call.event->algorithm);
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
  const auto collective = static_cast<Collective>(call.event->collective);
  factors_[{collective, size_class_of(call.bytes)}].add(call);

  Communicator& communicator = communicators_[call.event->communicator];
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

// ---- JSON

namespace {

using Json = nlohmann::ordered_json;

constexpr const char* size_names[size_class_count] = {"small", "medium", "large"};
// Of the colours; arrivals closer than that, or than the clocks' error, are together.
constexpr double least_floor_ns = 100;

std::string base64(std::span<const std::uint8_t> bytes) {
  constexpr char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t count = std::min<std::size_t>(3, bytes.size() - i);
    std::uint32_t word = 0;
    for (std::size_t k = 0; k < 3; ++k) word = word << 8 | (k < count ? bytes[i + k] : 0u);
    for (std::size_t k = 0; k < 4; ++k) text += k <= count ? digits[word >> (18 - 6 * k) & 63] : '=';
  }
  return text;
}

// Little-endian, as the page reads them.
void append(std::vector<std::uint8_t>& bytes, float value) {
  // Of damaged stamps: too large for a float is no number in the page.
  const auto bits = std::bit_cast<std::uint32_t>(std::isfinite(value) ? value : std::numeric_limits<float>::max());
  for (int shift = 0; shift < 32; shift += 8) bytes.push_back(static_cast<std::uint8_t>(bits >> shift));
}

double finite(double value) {
  return std::isfinite(value) ? value : 0;
}

// 0: no call; 1 to 255: floor_ns to top_ns, by the logarithm.
std::uint8_t level_of(double ns, double floor_ns, double top_ns) {
  if (ns < 0) return 0;
  if (!(ns > floor_ns)) return 1;
  return static_cast<std::uint8_t>(
      1 + std::lround(254 * std::min(1.0, std::log(ns / floor_ns) / std::log(top_ns / floor_ns))));
}

// Sixteenths of a bin, rounded up: what is not zero shows.
unsigned sixteenths(double share) {
  return static_cast<unsigned>(std::clamp(std::ceil(15 * share - 1e-6), 0.0, 15.0));
}

Json to_object(const HeatMap& map, const Run& run, const Analysis& analysis) {
  const double floor_ns = std::max(least_floor_ns, finite(analysis.clock_error_ns));
  const double top_ns = std::max(finite(map.top_ns()), 10 * floor_ns);
  std::vector<std::uint8_t> mean;
  std::vector<std::uint8_t> worst;
  std::vector<std::uint8_t> caused;
  std::vector<std::uint8_t> inside;  // four bits of waiting, four of being inside
  const double most_caused_ns = std::max(finite(map.most_caused_ns()), 10 * floor_ns);
  std::vector<double> lost_ns(map.bins());
  for (std::size_t row = 0; row < map.rows(); ++row)
    for (std::size_t bin = 0; bin < map.bins(); ++bin) {
      const double caused_ns = map.caused_ns(row, bin);
      lost_ns[bin] += caused_ns;
      caused.push_back(caused_ns > 0 ? level_of(caused_ns, floor_ns, most_caused_ns) : 0);
      inside.push_back(
          static_cast<std::uint8_t>(sixteenths(map.waiting(row, bin)) << 4 | sixteenths(map.inside(row, bin))));
      mean.push_back(level_of(map.mean_ns(row, bin), floor_ns, top_ns));
      worst.push_back(level_of(map.worst_ns(row, bin), floor_ns, top_ns));
    }
  std::vector<std::uint8_t> lost;
  for (const double ns : lost_ns) append(lost, static_cast<float>(ns / 1e9));
  Json ranks = Json::array();
  Json nodes = Json::array();
  for (const RankFile& file : run.files) {
    ranks.push_back(file.header.rank);
    nodes.push_back(file.header.node);
  }
  return {{"begin_seconds", finite((map.begin_ns() - analysis.begin_ns) / 1e9)},
          {"bin_seconds", finite(map.bin_ns() / 1e9)},
          {"bins", map.bins()},
          {"ranks", std::move(ranks)},
          {"nodes", std::move(nodes)},
          {"floor_us", floor_ns / 1e3},
          {"top_us", top_ns / 1e3},
          {"caused_top_us", most_caused_ns / 1e3},
          {"mean", base64(mean)},
          {"worst", base64(worst)},
          {"caused", base64(caused)},
          {"inside", base64(inside)},
          {"lost_seconds", base64(lost)}};
}

Json to_object(const FactorFigures& figures, double begin_ns) {
  Json counts = Json::array();
  for (const auto& kind : figures.counts) counts.push_back(kind);
  std::vector<std::uint8_t> points;
  for (const FactorFigures::Point& point : figures.points.items()) {
    append(points, static_cast<float>((point.at_ns - begin_ns) / 1e9));
    for (const float factor : point.factors) append(points, factor);
  }
  return {{"calls", figures.points.seen()}, {"counts", std::move(counts)}, {"points", base64(points)}};
}

Json to_array(const Pictures& pictures, double begin_ns) {
  Json array = Json::array();
  for (const auto& [key, figures] : pictures.factors()) {
    Json object = {{"collective", mpi_name(key.first, Form::blocking)},
                   {"size", size_names[static_cast<std::size_t>(key.second)]}};
    object.update(to_object(figures, begin_ns));
    array.push_back(std::move(object));
  }
  return array;
}

// Those of a call site that the page holds, in the order they were made: not more than `most`, and the worst.
std::vector<std::pair<const ShownCall*, bool>> chosen(const ShownCalls& group, std::size_t most) {
  std::vector<std::pair<const ShownCall*, bool>> calls;
  const auto is_worst = [&](const ShownCall& call) {
    return std::any_of(group.worst.begin(), group.worst.end(), [&](const ShownCall& worst) {
      return worst.communicator == call.communicator && worst.call == call.call;
    });
  };
  const std::vector<ShownCall>& even = group.even.items();
  const std::size_t stride = (even.size() + most - 1) / most;
  for (std::size_t i = 0; i < even.size(); i += stride)
    if (!is_worst(even[i])) calls.emplace_back(&even[i], false);
  for (const ShownCall& worst : group.worst) calls.emplace_back(&worst, true);
  std::stable_sort(calls.begin(), calls.end(),
                   [](const auto& a, const auto& b) { return a.first->first_ns < b.first->first_ns; });
  return calls;
}

Json to_object(const ShownCall& call, bool is_worst, double begin_ns) {
  std::vector<std::uint8_t> times;
  for (const auto* values : {&call.arrivals_us, &call.waits_us, &call.exits_us})
    for (const float value : *values) append(times, value);
  return {{"call", call.call},
          {"bytes", call.bytes},
          {"algorithm", call.algorithm},
          {"phase", call.phase},
          {"begin_seconds", finite((call.first_ns - begin_ns) / 1e9)},
          {"worst_us", finite(call.worst_ns / 1e3)},
          {"last", call.last},
          {"is_worst", is_worst},
          {"times", base64(times)}};
}

// The calls shown, and the communicators they are on.
void add_calls(Json& object, const Pictures& pictures, const Analysis& analysis) {
  // As the call sites of the report: most waiting first; then what has no call site.
  std::vector<std::pair<Pictures::Site, Json>> order;
  for (std::size_t i = 0; i < analysis.call_sites.size(); ++i) {
    const CallSiteFigures& site = analysis.call_sites[i];
    order.emplace_back(Pictures::Site{site.number, site.collective}, i);
  }
  for (const auto& [key, group] : pictures.calls())
    if (key.first == ComparedCall::no_site) order.emplace_back(key, nullptr);
  std::erase_if(order, [&](const auto& one) { return !pictures.calls().contains(one.first); });
  object["groups_of"] = order.size();
  // Room for a call and the worst of each, on all ranks.
  const std::size_t least = (1 + Pictures::most_worst) * std::max<std::size_t>(1, pictures.run().files.size());
  const std::size_t most_groups = std::clamp<std::size_t>(Pictures::most_entries / least, 1, Pictures::most_groups);
  if (order.size() > most_groups) order.erase(order.begin() + static_cast<std::ptrdiff_t>(most_groups), order.end());

  std::map<std::uint64_t, std::size_t> numbers;
  Json communicators = Json::array();
  Json groups = Json::array();
  for (const auto& [key, site] : order) {
    const ShownCalls& group = pictures.calls().at(key);
    const std::size_t ranks = group.even.items().front().arrivals_us.size();
    const std::size_t room = Pictures::most_entries / order.size() / ranks;
    const std::size_t most = room > Pictures::most_worst ? room - Pictures::most_worst : 1;
    Json calls = Json::array();
    for (const auto& [call, is_worst] : chosen(group, most)) {
      const auto [number, is_new] = numbers.try_emplace(call->communicator, numbers.size());
      if (is_new) {
        const std::vector<std::uint32_t>& files = pictures.files_of(call->communicator);
        communicators.push_back({{"name", pictures.name_of(call->communicator)}, {"rows", files}});
      }
      Json one = to_object(*call, is_worst, analysis.begin_ns);
      one["communicator"] = number->second;
      calls.push_back(std::move(one));
    }
    groups.push_back({{"call_site", site},
                      {"name", mpi_name(key.second, Form::blocking)},
                      {"calls", group.even.seen()},
                      {"shown", std::move(calls)}});
  }
  object["groups"] = std::move(groups);
  object["communicators"] = std::move(communicators);
}

}  // namespace

std::string to_json(const Pictures& pictures, const Analysis& analysis) noexcept {
  try {
    Json object = {
        {"heat_map", to_object(pictures.heat_map(), pictures.run(), analysis)},
        {"factors", to_array(pictures, analysis.begin_ns)},
        {"factor_bins", {{"smallest", FactorFigures::smallest}, {"per_decade", FactorFigures::bins_per_decade}}}};
    add_calls(object, pictures, analysis);
    return object.dump(-1, ' ', false, Json::error_handler_t::replace);
  } catch (...) {
    return {};  // out of memory
  }
}

}  // namespace papaya::report
