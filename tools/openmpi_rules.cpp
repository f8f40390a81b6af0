#include "tools/openmpi_rules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "base/saturating.hpp"
#include "tuning/native_algorithms.hpp"

namespace papaya {

namespace {

using tuning::Bounds;
using tuning::FileRule;
using tuning::Rule;

// What coll/tuned does from one size on.
struct Target {
  std::size_t algorithm = 0;  // 0: its own choice
  std::uint64_t fanout = 0;
  std::uint64_t segment_bytes = 0;
  bool operator==(const Target&) const = default;
};
struct FromBytes {
  std::uint64_t bytes;
  Target target;
  bool operator==(const FromBytes&) const = default;
};
struct FromRanks {
  int ranks;
  std::vector<FromBytes> sizes;
};

// Of these it counts the blocks of all ranks. There a rule is written for each number of ranks, up to this one.
constexpr int most_single_ranks = 1024;
bool counts_all_blocks(Collective collective) {
  return collective == Collective::alltoall || collective == Collective::allgather;
}

// As coll_base_functions.h numbers them.
int number_of(Collective collective) {
  switch (collective) {
    case Collective::allgather:
      return 0;
    case Collective::allreduce:
      return 2;
    case Collective::alltoall:
      return 3;
    case Collective::barrier:
      return 6;
    case Collective::bcast:
      return 7;
    default:
      return 11;  // reduce
  }
}

// Of the first rule for MPI that applies. Calls that papaya's algorithms serve do not come to MPI, and without papaya
// the rule after is for them, too.
Target target_of(const std::vector<FileRule>& rules, Collective collective, std::uint64_t bytes,
                 const tuning::Facts& facts) {
  for (const FileRule& one : rules) {
    if (tuning::broken_condition(one.rule, bytes, facts) != tuning::Condition::none) continue;
    if (one.rule.algorithm != nullptr) continue;
    const auto names = tuning::openmpi_algorithms(collective);
    const auto found = std::find(names.begin(), names.end(), one.native.openmpi);
    if (found == names.end()) return {};
    return {static_cast<std::size_t>(found - names.begin()), one.native.fanout, one.native.segment_bytes};
  }
  return {};
}

std::vector<FromBytes> sizes_for(const std::vector<FileRule>& rules, Collective collective,
                                 const tuning::Facts& facts) {
  std::set<std::uint64_t> begins = {0};
  for (const FileRule& one : rules) {
    begins.insert(one.rule.lowest_bytes);
    if (one.rule.highest_bytes != Rule::any_size) begins.insert(one.rule.highest_bytes + 1);
  }
  const std::uint64_t blocks = counts_all_blocks(collective) ? static_cast<std::uint64_t>(facts.ranks) : 1;
  // No message is larger; Open MPI reads signed numbers.
  constexpr std::uint64_t largest = std::uint64_t{1} << 62;
  std::vector<FromBytes> sizes;
  for (const std::uint64_t bytes : begins) {
    const FromBytes next{saturating::product(bytes, blocks), target_of(rules, collective, bytes, facts)};
    if (next.bytes <= largest && (sizes.empty() || sizes.back().target != next.target)) sizes.push_back(next);
  }
  return sizes;
}

std::vector<FromRanks> ranks_for(const std::vector<FileRule>& rules, Collective collective, const ExportFacts& facts) {
  std::set<std::int64_t> begins = {1};
  const auto from = [&](const Bounds& bounds, std::int64_t ranks, std::int64_t less) {
    begins.insert(std::max<std::int64_t>(1, (bounds.lowest - less) * ranks + less));
    if (bounds.highest != Bounds::any) begins.insert((std::int64_t{bounds.highest} + 1 - less) * ranks + less);
  };
  for (const FileRule& one : rules) {
    from(one.rule.ranks, 1, 0);
    from(one.rule.ranks_per_node, facts.nodes, 1);  // so many on the fullest of the nodes
  }
  if (counts_all_blocks(collective)) {
    const bool goes_on = *begins.rbegin() > most_single_ranks ||
                         std::any_of(rules.begin(), rules.end(),
                                     [](const FileRule& one) { return one.rule.ranks.highest == Bounds::any; });
    const std::int64_t last = goes_on ? most_single_ranks + 1 : *begins.rbegin();
    for (std::int64_t ranks = 2; ranks <= last; ++ranks) begins.insert(ranks);
  }
  std::vector<FromRanks> all;
  for (const std::int64_t ranks : begins) {
    if (ranks > Bounds::any) break;
    tuning::Facts of_ranks{.ranks = static_cast<int>(ranks),
                           .nodes = facts.nodes,
                           .oversubscribed = facts.oversubscribed,
                           .ranks_per_node = static_cast<int>((ranks + facts.nodes - 1) / facts.nodes),
                           .arrivals = facts.arrivals};
    std::vector<FromBytes> sizes = sizes_for(rules, collective, of_ranks);
    if (counts_all_blocks(collective) && ranks > most_single_ranks) sizes = {{0, {}}};
    if (all.empty() || all.back().sizes != sizes) all.push_back({of_ranks.ranks, std::move(sizes)});
  }
  return all;
}

bool names_any(const std::vector<FromRanks>& all) {
  return std::any_of(all.begin(), all.end(), [](const FromRanks& one) {
    return std::any_of(one.sizes.begin(), one.sizes.end(),
                       [](const FromBytes& size) { return size.target != Target{}; });
  });
}

struct OfCollective {
  Collective collective;
  std::vector<FromRanks> ranks;
};

std::string text_rules(const std::vector<OfCollective>& all) {
  std::string text = fmt::format("{}  # collectives, written by papaya export\n", all.size());
  for (const auto& [collective, ranks] : all) {
    text +=
        fmt::format("{}  # {}\n{}  # communicator sizes\n", number_of(collective), name_of(collective), ranks.size());
    for (const FromRanks& one : ranks) {
      text += fmt::format("{}  # ranks or more\n{}  # message sizes\n", one.ranks, one.sizes.size());
      for (const auto& [bytes, target] : one.sizes)
        text += fmt::format(
            "{} {} {} {}  # {}\n", bytes, target.algorithm, target.fanout, target.segment_bytes,
            target.algorithm == 0 ? "Open MPI's own choice" : tuning::openmpi_algorithms(collective)[target.algorithm]);
    }
  }
  return text;
}

// Its own choice is where there is no rule.
std::string json_rules(const std::vector<OfCollective>& all) {
  nlohmann::ordered_json collectives = nlohmann::ordered_json::object();
  for (const auto& [collective, ranks] : all) {
    nlohmann::ordered_json& list = collectives[tuning::lower(name_of(collective))];
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      nlohmann::ordered_json rules = nlohmann::ordered_json::array();
      const std::vector<FromBytes>& sizes = ranks[i].sizes;
      for (std::size_t k = 0; k < sizes.size(); ++k) {
        const Target& target = sizes[k].target;
        if (target.algorithm == 0) continue;
        nlohmann::ordered_json rule = {{"msg_size_min", sizes[k].bytes}};
        if (k + 1 < sizes.size()) rule["msg_size_max"] = sizes[k + 1].bytes - 1;
        rule["alg"] = tuning::openmpi_algorithms(collective)[target.algorithm];
        if (target.fanout != 0) rule["faninout"] = target.fanout;
        if (target.segment_bytes != 0) rule["seg_size"] = target.segment_bytes;
        rules.push_back(std::move(rule));
      }
      if (rules.empty()) continue;
      nlohmann::ordered_json of_ranks = {{"comm_size_min", ranks[i].ranks}};
      if (i + 1 < ranks.size()) of_ranks["comm_size_max"] = ranks[i + 1].ranks - 1;
      of_ranks["rules"] = std::move(rules);
      list.push_back(std::move(of_ranks));
    }
  }
  return nlohmann::ordered_json{{"rule_file_version", 3}, {"module", "tuned"}, {"collectives", collectives}}.dump(2) +
         "\n";
}

}  // namespace

std::string openmpi_rules(const tuning::TuningFile& file, const ExportFacts& facts, OpenMpiFormat format) {
  std::vector<OfCollective> all;
  for (std::size_t i = 0; i < collective_count; ++i) {
    const auto collective = static_cast<Collective>(i);
    if (file.rows[i].empty()) continue;
    std::vector<FromRanks> ranks = ranks_for(file.rows[i], collective, facts);
    if (names_any(ranks)) all.push_back({collective, std::move(ranks)});
  }
  if (all.empty()) return "";
  return format == OpenMpiFormat::text ? text_rules(all) : json_rules(all);
}

}  // namespace papaya
