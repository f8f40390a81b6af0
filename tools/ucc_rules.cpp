#include "tools/ucc_rules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

#include "tuning/native_algorithms.hpp"
#include "tuning/selection_text.hpp"

namespace papaya {

namespace {

constexpr Collective counts_all_blocks[] = {Collective::alltoall, Collective::allgather};

// UCC_TL_UCP_TUNE of tl/ucp.
std::string variable_of(std::string_view component) {
  std::string name = "UCC_";
  for (const char c : component) name += c == '/' ? '_' : static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  return name + "_TUNE";
}

// allreduce:0-4096:host:[4-8]:inf:@knomial. inf makes this component win over all others.
std::string token_of(Collective collective, std::string_view sizes, std::string_view ranks,
                     std::string_view algorithm) {
  return fmt::format("{}{}:host{}:inf:@{}", tuning::lower(name_of(collective)), sizes, ranks, algorithm);
}

std::string_view component_of(const NativeChoice& choice) {
  return choice.algorithm.substr(0, choice.algorithm.find(':'));
}

// Where two ranges meet, the one with the higher score has that size, and of equal scores the larger one. UCC refuses
// ranges of a single size.
std::string sizes_text(const std::vector<FromBytes>& sizes, std::size_t at) {
  const bool is_last = at + 1 == sizes.size();
  if (at == 0 && is_last) return "";
  if (is_last) return fmt::format(":{}-inf", sizes[at].bytes);
  const bool meets_own = component_of(sizes[at + 1].choice) == component_of(sizes[at].choice);
  const std::uint64_t end = std::max(sizes[at].bytes + 1, sizes[at + 1].bytes - (meets_own ? 0 : 1));
  return fmt::format(":{}-{}", sizes[at].bytes, end);
}

std::string ranks_text(const std::vector<FromRanks>& ranks, std::size_t at) {
  const bool is_last = at + 1 == ranks.size();
  if (is_last) return ranks[at].ranks == 1 ? "" : fmt::format(":[{}-inf]", ranks[at].ranks);
  return fmt::format(":[{}-{}]", ranks[at].ranks, ranks[at + 1].ranks - 1);
}

}  // namespace

std::string ucc_rules(const tuning::TuningFile& file, const ExportFacts& facts) {
  std::map<std::string, std::string> values;  // of variables
  for (const auto& [collective, ranks] : rules_for(file, facts, tuning::ucc_library, counts_all_blocks))
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      std::vector<FromBytes> sizes = ranks[i].sizes;
      if (collective == Collective::barrier) sizes.resize(1);
      for (std::size_t k = 0; k < sizes.size(); ++k) {
        const std::string_view named = sizes[k].choice.algorithm;
        if (named.empty()) continue;
        std::string& value = values[variable_of(component_of(sizes[k].choice))];
        if (!value.empty()) value += '#';
        value += token_of(collective, sizes_text(sizes, k), ranks_text(ranks, i), named.substr(named.find(':') + 1));
      }
    }
  // By default it has the other one alone.
  std::string text = values.contains(variable_of("cl/hier")) ? "UCC_CLS=basic,hier\n" : "";
  for (const auto& [variable, value] : values) text += fmt::format("{}={}\n", variable, value);
  return text;
}

}  // namespace papaya
