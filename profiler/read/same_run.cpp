#include "profiler/read/same_run.hpp"

#include <fmt/format.h>

#include <map>
#include <utility>

#include "profiler/read/read_record.hpp"

namespace papaya::report {
namespace {

// The key most files have; among equals the one that comes first by rank.
template <typename Key, typename KeyOf>
Key most_common(const std::vector<RankFile>& files, KeyOf key_of) {
  std::map<Key, std::size_t> votes;
  for (const auto& file : files) ++votes[key_of(file)];
  Key best = key_of(files.front());
  for (const auto& file : files) {
    if (votes[key_of(file)] > votes[best]) best = key_of(file);
  }
  return best;
}

// Removes the files that `is_foreign`, each with a problem telling `reason`.
template <typename IsForeign, typename Reason>
void remove_foreign(Run& run, IsForeign is_foreign, Reason reason) {
  std::erase_if(run.files, [&](const RankFile& file) {
    if (!is_foreign(file)) return false;
    add_problem(run, Trouble::other_run, file.name, reason(file));
    return true;
  });
}

}  // namespace

void remove_files_of_other_runs(Run& run) {
  const auto ranks = most_common<std::int32_t>(run.files, [](const RankFile& file) { return file.header.ranks; });
  remove_foreign(
      run, [&](const RankFile& file) { return file.header.ranks != ranks; },
      [&](const RankFile& file) {
        return fmt::format(
            "is of a run with {} ranks, the other files of one with {}: files of two runs are mixed in "
            "this folder, and it is left out",
            file.header.ranks, ranks);
      });
  run.ranks = ranks;
  run.nodes = most_common<std::int32_t>(run.files, [](const RankFile& file) { return file.header.nodes; });
  remove_foreign(
      run, [&](const RankFile& file) { return file.header.nodes != run.nodes; },
      [&](const RankFile& file) {
        return fmt::format(
            "counts {} nodes where the other files count {}: files of two runs are mixed in this "
            "folder, and it is left out",
            file.header.nodes, run.nodes);
      });
  // Two runs of equal size differ in their nodes' clock origins, which all ranks of a node share.
  std::map<std::int32_t, std::map<std::pair<std::uint64_t, std::int64_t>, std::size_t>> votes;
  for (const auto& file : run.files) {
    ++votes[file.header.node][{file.header.begin_ticks, file.header.begin_unix_ns}];
  }
  std::map<std::int32_t, std::pair<std::uint64_t, std::int64_t>> origins;
  for (const auto& file : run.files) {
    const std::pair own{file.header.begin_ticks, file.header.begin_unix_ns};
    auto& node_votes = votes[file.header.node];
    const auto [origin, is_new] = origins.try_emplace(file.header.node, own);
    if (!is_new && node_votes[own] > node_votes[origin->second]) origin->second = own;
  }
  remove_foreign(
      run,
      [&](const RankFile& file) {
        return origins[file.header.node] != std::pair{file.header.begin_ticks, file.header.begin_unix_ns};
      },
      [](const RankFile&) {
        return "did not start together with the other ranks of its node: files of two runs are mixed in this "
               "folder, "
               "and it is left out";
      });
}

void remove_second_records(Run& run) {
  std::int32_t previous = -1;
  remove_foreign(
      run, [&](const RankFile& file) { return std::exchange(previous, file.header.rank) == file.header.rank; },
      [](const RankFile& file) {
        return fmt::format("is a second record of rank {} and is left out", file.header.rank);
      });
}

}  // namespace papaya::report
