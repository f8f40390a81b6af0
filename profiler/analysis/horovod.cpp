#include "profiler/analysis/horovod.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>

#include "profiler/read/event_reader.hpp"

namespace papaya::report {
namespace {

// Words of 64 bits with a bit for each gradient: those of 8,000 gradients.
constexpr std::uint64_t most_negotiation_bytes = 1024;
constexpr std::uint64_t word_bytes = 8;
constexpr std::size_t events_per_piece = 4096;

struct Name {
  HorovodUse use;
  std::string_view part;  // of the name of the function that calls MPI
};
constexpr Name names[] = {
    {HorovodUse::negotiation, "::CrossRankBitwise"},
    {HorovodUse::names, "ReadyTensors"},
    {HorovodUse::names, "FinalTensors"},
    {HorovodUse::gradients, "Allreduce::Execute"},
    {HorovodUse::gradients, "Adasum"},
    {HorovodUse::broadcast, "Broadcast::Execute"},
};

struct Words {
  std::string_view name;
  std::string_view text;
};
constexpr std::array<Words, 6> words{{
    {"", ""},
    {"negotiation", "negotiation: which gradients are ready on all ranks"},
    {"names", "negotiation of gradients that are new, by name"},
    {"gradients", "gradients, summed in tensor-fusion buffers"},
    {"broadcast", "broadcasts, of parameters say"},
    {"other", "other"},
}};

}  // namespace

bool is_horovod_library(std::string_view path) {
  const std::string_view name = path.substr(path.find_last_of('/') + 1);
  return name.starts_with("libhorovod") ||
         (name.starts_with("mpi_lib") && path.find("/horovod/") != std::string_view::npos);
}

Horovod find_horovod(const Run& run) {
  Horovod found;
  found.threads.resize(run.files.size());
  for (std::size_t f = 0; f < run.files.size(); ++f) {
    const RankFile& file = run.files[f];
    std::vector<bool> is_its(file.call_sites->size());
    bool any = false;
    for (std::size_t s = 0; s < is_its.size(); ++s) {
      is_its[s] = is_horovod_library((*file.call_sites)[s].front().module);
      if (is_its[s] && found.library.empty()) found.library = (*file.call_sites)[s].front().module;
      any = any || is_its[s];
    }
    if (!any) continue;
    EventReader reader(file, events_per_piece, true);
    for (std::span<const trace::Event> piece = reader.next(); !piece.empty(); piece = reader.next())
      for (const trace::Event& event : piece) {
        if (event.call_site == 0 || !is_its[event.call_site - 1]) continue;
        found.communicators.insert(event.communicator);
        found.threads[f].insert(event.thread);
      }
  }
  return found;
}

std::string_view horovod_communicator(trace::Origin origin) {
  switch (origin) {
    case trace::Origin::node_split:
      return "Horovod local";
    case trace::Origin::split:
      return "Horovod cross";
    case trace::Origin::group:
      return "Horovod process set";
    default:
      return "Horovod global";
  }
}

HorovodUse horovod_use(const CallSiteFigures& site) {
  if (site.frames.empty() || !is_horovod_library(site.frames.front().module)) return HorovodUse::none;
  const std::string& function = site.frames.front().function;
  const auto* const known = std::find_if(std::begin(names), std::end(names), [&](const Name& name) {
    return function.find(name.part) != std::string::npos;
  });
  if (known != std::end(names)) return known->use;
  switch (site.collective) {
    case Collective::allreduce:
      return site.largest_bytes <= most_negotiation_bytes && site.largest_bytes % word_bytes == 0
                 ? HorovodUse::negotiation
                 : HorovodUse::gradients;
    case Collective::gather:
    case Collective::gatherv:
      return HorovodUse::names;
    case Collective::bcast:
      return HorovodUse::broadcast;
    default:
      return HorovodUse::other;
  }
}

std::string_view name_of(HorovodUse use) {
  return words[static_cast<std::size_t>(use)].name;
}
std::string_view text_of(HorovodUse use) {
  return words[static_cast<std::size_t>(use)].text;
}

void describe_horovod(const Run& run, Analysis& analysis) {
  const Horovod horovod = find_horovod(run);
  analysis.horovod_library = horovod.library.substr(horovod.library.find_last_of('/') + 1);
  std::set<std::uint32_t> threads;
  for (const auto& of_rank : horovod.threads) threads.insert(of_rank.begin(), of_rank.end());
  const std::vector<std::int32_t> numbers(threads.begin(), threads.end());
  analysis.horovod_threads = fmt::format("thread{} {}", numbers.size() == 1 ? "" : "s", to_text(to_ranges(numbers)));
}

}  // namespace papaya::report
