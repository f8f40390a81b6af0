#include "tools/export_rules.hpp"

#include <algorithm>
#include <set>

#include "base/saturating.hpp"

namespace papaya {

namespace {

using tuning::Bounds;
using tuning::FileRule;
using tuning::NativeLibrary;
using tuning::Rule;

// Of the first rule for MPI that applies. Calls that papaya's algorithms serve do not come to MPI, and without papaya
// the rule after is for them, too.
NativeChoice choice_of(const std::vector<FileRule>& rules, const NativeLibrary& library, std::uint64_t bytes,
                       const tuning::Facts& facts) {
  for (const FileRule& one : rules) {
    if (tuning::broken_condition(one.rule, bytes, facts) != tuning::Condition::none) continue;
    if (one.rule.algorithm != nullptr) continue;
    NativeChoice choice{one.native.*library.algorithm};
    if (choice.algorithm == "ignore") return {};  // as Open MPI calls its own choice
    if (library.field == tuning::openmpi_library.field && !choice.algorithm.empty()) {
      choice.fanout = one.native.fanout;
      choice.segment_bytes = one.native.segment_bytes;
    }
    return choice;
  }
  return {};
}

std::vector<FromBytes> sizes_for(const std::vector<FileRule>& rules, const NativeLibrary& library,
                                 bool counts_all_blocks, const tuning::Facts& facts) {
  std::set<std::uint64_t> begins = {0};
  for (const FileRule& one : rules) {
    begins.insert(one.rule.lowest_bytes);
    if (one.rule.highest_bytes != Rule::any_size) begins.insert(one.rule.highest_bytes + 1);
  }
  const std::uint64_t blocks = counts_all_blocks ? static_cast<std::uint64_t>(facts.ranks) : 1;
  // No message is larger; libraries read signed numbers.
  constexpr std::uint64_t largest = std::uint64_t{1} << 62;
  std::vector<FromBytes> sizes;
  for (const std::uint64_t bytes : begins) {
    const FromBytes next{saturating::product(bytes, blocks), choice_of(rules, library, bytes, facts)};
    if (next.bytes <= largest && (sizes.empty() || sizes.back().choice != next.choice)) sizes.push_back(next);
  }
  return sizes;
}

std::vector<FromRanks> ranks_for(const std::vector<FileRule>& rules, const NativeLibrary& library,
                                 bool counts_all_blocks, const ExportFacts& facts) {
  std::set<std::int64_t> begins = {1};
  const auto from = [&](const Bounds& bounds, std::int64_t ranks, std::int64_t less) {
    begins.insert(std::max<std::int64_t>(1, (bounds.lowest - less) * ranks + less));
    if (bounds.highest != Bounds::any) begins.insert((std::int64_t{bounds.highest} + 1 - less) * ranks + less);
  };
  for (const FileRule& one : rules) {
    from(one.rule.ranks, 1, 0);
    from(one.rule.ranks_per_node, facts.nodes, 1);  // so many on the fullest of the nodes
  }
  if (counts_all_blocks) {
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
    std::vector<FromBytes> sizes = sizes_for(rules, library, counts_all_blocks, of_ranks);
    if (counts_all_blocks && ranks > most_single_ranks) sizes = {{0, {}}};
    if (all.empty() || all.back().sizes != sizes) all.push_back({of_ranks.ranks, std::move(sizes)});
  }
  return all;
}

bool names_any(const std::vector<FromRanks>& all) {
  return std::any_of(all.begin(), all.end(), [](const FromRanks& one) {
    return std::any_of(one.sizes.begin(), one.sizes.end(),
                       [](const FromBytes& size) { return !size.choice.algorithm.empty(); });
  });
}

}  // namespace

std::vector<OfCollective> rules_for(const tuning::TuningFile& file, const ExportFacts& facts,
                                    const NativeLibrary& library, std::span<const Collective> counts_all_blocks) {
  std::vector<OfCollective> all;
  for (std::size_t i = 0; i < collective_count; ++i) {
    const auto collective = static_cast<Collective>(i);
    if (file.rows[i].empty()) continue;
    const bool all_blocks =
        std::find(counts_all_blocks.begin(), counts_all_blocks.end(), collective) != counts_all_blocks.end();
    std::vector<FromRanks> ranks = ranks_for(file.rows[i], library, all_blocks, facts);
    if (names_any(ranks)) all.push_back({collective, std::move(ranks)});
  }
  return all;
}

}  // namespace papaya
