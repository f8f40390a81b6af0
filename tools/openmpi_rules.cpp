#include "tools/openmpi_rules.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <vector>

#include "tuning/native_algorithms.hpp"

namespace papaya {

namespace {

constexpr Collective counts_all_blocks[] = {Collective::alltoall, Collective::allgather};

// 0 leaves the choice to Open MPI.
std::size_t number_of(Collective collective, const NativeChoice& choice) {
  return choice.algorithm.empty() ? 0 : tuning::openmpi_library.find(collective, choice.algorithm).value();
}

std::string text_rules(const std::vector<OfCollective>& all) {
  std::string text = fmt::format("{}  # collectives, written by papaya export\n", all.size());
  for (const auto& [collective, ranks] : all) {
    text += fmt::format("{}  # {}\n{}  # communicator sizes\n", tuning::openmpi_number(collective).value(),
                        name_of(collective), ranks.size());
    for (const FromRanks& one : ranks) {
      text += fmt::format("{}  # ranks or more\n{}  # message sizes\n", one.ranks, one.sizes.size());
      for (const auto& [bytes, choice] : one.sizes)
        text +=
            fmt::format("{} {} {} {}  # {}\n", bytes, number_of(collective, choice), choice.fanout,
                        choice.segment_bytes, choice.algorithm.empty() ? "Open MPI's own choice" : choice.algorithm);
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
        const NativeChoice& choice = sizes[k].choice;
        if (choice.algorithm.empty()) continue;
        nlohmann::ordered_json rule = {{"msg_size_min", sizes[k].bytes}};
        if (k + 1 < sizes.size()) rule["msg_size_max"] = sizes[k + 1].bytes - 1;
        rule["alg"] = choice.algorithm;
        if (choice.fanout != 0) rule["faninout"] = choice.fanout;
        if (choice.segment_bytes != 0) rule["seg_size"] = choice.segment_bytes;
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
  const std::vector<OfCollective> all = rules_for(file, facts, tuning::openmpi_library, counts_all_blocks);
  if (all.empty()) return "";
  return format == OpenMpiFormat::text ? text_rules(all) : json_rules(all);
}

}  // namespace papaya
