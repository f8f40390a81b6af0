// The pictures as the page reads them.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <span>

#include "base/mpi_name.hpp"
#include "profiler/read/units.hpp"
#include "profiler/report/pictures.hpp"

namespace papaya::report {

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

// Seven bits a byte, the lowest first, all but the last with the highest bit set.
void append_number(std::vector<std::uint8_t>& bytes, std::uint32_t number) {
  for (; number >= 0x80; number >>= 7) bytes.push_back(static_cast<std::uint8_t>(number | 0x80));
  bytes.push_back(static_cast<std::uint8_t>(number));
}

// Sixteenths of a bin, rounded up: what is not zero shows.
unsigned sixteenths(double share) {
  return static_cast<unsigned>(std::clamp(std::ceil(15 * share - 1e-6), 0.0, 15.0));
}

double floor_of(const Analysis& analysis) {
  return std::max(least_floor_ns, finite(analysis.clock_error_ns));
}

Json to_object(const HeatMap& map, const Run& run, const Analysis& analysis) {
  const double floor_ns = floor_of(analysis);
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

// What ranks make others lose at each of the call sites with most waiting. A cell is its distance from the one before
// and its level.
Json site_losses(const Pictures& pictures, const Analysis& analysis) {
  std::vector<std::pair<std::size_t, const SiteLosses*>> sites;
  for (std::size_t i = 0; i < analysis.call_sites.size() && sites.size() < Pictures::most_loss_sites; ++i) {
    const auto found = pictures.losses().find({analysis.call_sites[i].number, analysis.call_sites[i].collective});
    if (found != pictures.losses().end()) sites.emplace_back(i, &found->second);
  }
  const double floor_ns = floor_of(analysis);
  Json array = Json::array();
  for (const auto& [site, losses] : sites) {
    const std::size_t most = Pictures::most_shown_losses / sites.size();
    const std::vector<SiteLosses::Cell> cells = losses->cells(most);
    float most_ns = 0;
    for (const SiteLosses::Cell& cell : cells) most_ns = std::max(most_ns, cell.ns);
    const double top_ns = std::max(finite(static_cast<double>(most_ns)), 10 * floor_ns);
    std::vector<std::uint8_t> bytes;
    std::uint32_t before = 0;
    for (const SiteLosses::Cell& cell : cells) {
      append_number(bytes, cell.place - before);
      bytes.push_back(level_of(static_cast<double>(cell.ns), floor_ns, top_ns));
      before = cell.place;
    }
    std::vector<std::uint8_t> lost;
    for (const double ns : losses->lost_ns()) append(lost, static_cast<float>(ns / 1e9));
    array.push_back({{"call_site", site},
                     {"top_us", top_ns / 1e3},
                     {"cells", base64(bytes)},
                     {"lost_seconds", base64(lost)},
                     {"is_whole", losses->is_whole() && cells.size() < most}});
  }
  return array;
}

// Calls that ended for nobody, in the order of the report's: when the ranks inside had come.
Json unfinished_calls(const Analysis& analysis) {
  Json array = Json::array();
  for (const PendingCall& pending : analysis.pending) {
    Json ranks = Json::array();
    std::vector<std::uint8_t> arrivals;
    for (const PendingArrival& arrival : pending.arrivals) {
      ranks.push_back(arrival.rank);
      append(arrivals, static_cast<float>(arrival.late_ns / 1e3));
    }
    array.push_back({{"begin_seconds", finite((pending.first_ns - analysis.begin_ns) / 1e9)},
                     {"ranks", std::move(ranks)},
                     {"arrivals", base64(arrivals)}});
  }
  return array;
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
        {"site_losses", site_losses(pictures, analysis)},
        {"unfinished", unfinished_calls(analysis)},
        {"factors", to_array(pictures, analysis.begin_ns)},
        {"factor_bins", {{"smallest", FactorFigures::smallest}, {"per_decade", FactorFigures::bins_per_decade}}}};
    add_calls(object, pictures, analysis);
    return object.dump(-1, ' ', false, Json::error_handler_t::replace);
  } catch (...) {
    return {};  // out of memory
  }
}

}  // namespace papaya::report
