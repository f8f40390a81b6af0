#include "profiler/analysis/communicator_names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <vector>

#include "profiler/analysis/horovod.hpp"

namespace papaya::report {
namespace {

using trace::Origin;

// Further up than this, or in a circle as only damaged records have it, an origin is not followed.
constexpr int most_steps = 64;
constexpr int most_named_steps = 3;

struct Entry {
  std::uint64_t parent = 0;
  Origin origin = Origin::unknown;
  std::int32_t size = 0;
  std::string name;                 // that the program gave it
  std::vector<std::int32_t> ranks;  // of the job
};
using Entries = std::map<std::uint64_t, Entry>;

// Open MPI's own names tell no more than its numbering.
std::string given_name(const trace::Communicator& row) {
  std::string name = clean_text(row.name);
  return name.starts_with("MPI COMMUNICATOR ") ? std::string() : name;
}

std::string_view text_of(Origin origin) {
  switch (origin) {
    case Origin::dup:
      return "dup of ";
    case Origin::split:
      return "split of ";
    case Origin::node_split:
      return "node split of ";
    case Origin::group:
      return "group of ";
    case Origin::grid:
      return "grid on ";
    case Origin::graph:
      return "graph on ";
    default:
      return {};
  }
}

// "dup of MPI_COMM_WORLD"; a dup of a dup is one too. Empty if the origin is not known.
std::string lineage_of(const Entries& entries, std::uint64_t id, int depth = 0) {
  const Entry& entry = entries.at(id);
  if (!entry.name.empty()) return entry.name;
  if (entry.origin == Origin::session) return "communicator of a session";
  auto parent = entries.find(entry.parent);
  for (int step = 0; step < most_steps && parent != entries.end() && parent->second.name.empty() &&
                     parent->second.origin == Origin::dup;
       ++step)
    parent = entries.find(parent->second.parent);
  if (text_of(entry.origin).empty() || parent == entries.end() || depth == most_named_steps) return {};
  const std::string from = lineage_of(entries, parent->first, depth + 1);
  return from.empty() ? from : std::string(text_of(entry.origin)) + from;
}

}  // namespace

std::map<std::uint64_t, std::string> communicator_names(const Run& run) {
  Entries entries;
  std::vector<std::uint64_t> order;  // in which the ranks made them
  for (const RankFile& file : run.files)
    for (const trace::Communicator& row : file.communicators) {
      const auto [position, is_new] = entries.try_emplace(row.id);
      Entry& entry = position->second;
      if (is_new) {
        entry = {row.parent_id, static_cast<Origin>(row.origin), row.size, {}, {}};
        order.push_back(row.id);
      }
      if (entry.name.empty()) entry.name = given_name(row);
      entry.ranks.push_back(file.header.rank);
    }
  const Horovod horovod = find_horovod(run);
  std::map<std::uint64_t, std::string> names;
  std::set<std::string> taken;
  std::map<std::string, int> numbers;  // the last that a name was given
  for (const std::uint64_t id : order) {
    Entry& entry = entries.at(id);
    std::string name = entry.name;
    if (name.empty()) {
      name = lineage_of(entries, id);
      if (name.empty())
        name = fmt::format("{} {:#x}", entry.origin == Origin::inter ? "intercommunicator" : "communicator", id);
      const bool is_horovods = horovod.communicators.contains(id);
      std::string which;
      if (entry.size != run.ranks) {
        std::sort(entry.ranks.begin(), entry.ranks.end());
        which = fmt::format(", rank{} {}", entry.size == 1 ? "" : "s", to_text(to_ranges(entry.ranks), 3));
      }
      name = is_horovods ? fmt::format("{} ({}{})", horovod_communicator(entry.origin), name, which) : name + which;
    }
    // The program may have given another one the name with the number.
    std::string own = name;
    for (int& number = numbers[name]; !taken.insert(own).second;)
      own = fmt::format("{} #{}", name, number = std::max(number, 1) + 1);
    names[id] = std::move(own);
  }
  return names;
}

}  // namespace papaya::report
