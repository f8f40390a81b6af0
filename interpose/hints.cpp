#include "interpose/hints.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <new>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/log.hpp"
#include "base/settings.hpp"
#include "interpose/attention.hpp"
#include "interpose/scratch.hpp"

namespace papaya::hints {

namespace {

using Texts = std::array<std::string, collective_count>;

// What `info` says of each collective; empty: nothing.
Texts texts_in(MPI_Info info) {
  Texts texts;
  if (info == MPI_INFO_NULL) return texts;
  for (std::size_t i = 0; i < collective_count; ++i) {
    const char* const key = key_of(static_cast<Collective>(i));
    if (key == nullptr) continue;
    char value[MPI_MAX_INFO_VAL + 1] = "";
    int found = 0;
    if (PMPI_Info_get(info, key, MPI_MAX_INFO_VAL, value, &found) == MPI_SUCCESS && found != 0) texts[i] = value;
  }
  return texts;
}

// Rank 0: a key that begins as papaya's do and is none. Each once.
void warn_of_others(MPI_Info info) {
  int keys = 0;
  if (info == MPI_INFO_NULL || PMPI_Info_get_nkeys(info, &keys) != MPI_SUCCESS) return;
  for (int i = 0; i < keys; ++i) {
    char key[MPI_MAX_INFO_KEY + 1] = "";
    if (PMPI_Info_get_nthkey(info, i, key) != MPI_SUCCESS || !std::string_view(key).starts_with("papaya_")) continue;
    std::vector<std::string_view> known;
    for (std::size_t c = 0; c < collective_count; ++c)
      if (const char* const one = key_of(static_cast<Collective>(c)); one != nullptr) known.emplace_back(one);
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    const std::string_view near = nearest_name(key, known);
    static std::mutex mutex;
    static auto& warned = *new std::set<std::string>;
    const std::lock_guard lock(mutex);
    if (warned.insert(key).second)
      log::warn(fmt::format("Info key {} is unknown and without effect; {}", key,
                            near.empty() ? "there is papaya_allreduce, and one for each other collective that papaya "
                                           "replaces."
                                         : fmt::format("did you mean {}?", near)));
  }
}

// Each text with its end.
std::string joined(const Texts& texts) {
  std::string all;
  for (const std::string& text : texts) all.append(text).push_back('\0');
  return all;
}

Texts parted(std::string_view all) {
  Texts texts;
  for (std::string& text : texts) {
    text = all.substr(0, all.find('\0'));
    all.remove_prefix(text.size() + 1);
  }
  return texts;
}

// FNV-1a.
std::uint64_t hash_of(std::string_view text) noexcept {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

// Rank 0's texts on all ranks; empty where there are none, or where they are not the same on all ranks.
Texts agreed(const Communicator& state, const Texts& mine) {
  std::string all = joined(mine);
  const std::uint64_t hash = hash_of(all);
  std::uint64_t bounds[2] = {hash, ~hash};  // the lowest, and of the highest all bits the other way
  if (PMPI_Allreduce(MPI_IN_PLACE, bounds, 2, MPI_UINT64_T, MPI_MIN, state.handle) != MPI_SUCCESS) return {};
  if (bounds[0] != ~bounds[1]) {
    if (state.rank == 0)
      log::warn(
          "The info keys papaya_allreduce and its like differ between the ranks of a communicator; they have no effect "
          "there. Give the same on all its ranks.");
    return {};
  }
  if (hash == hash_of(joined({}))) return {};
  // Whatever a hash is worth: all ranks take the same.
  std::uint64_t bytes = all.size();
  PMPI_Bcast(&bytes, 1, MPI_UINT64_T, 0, state.handle);
  all.resize(bytes);
  PMPI_Bcast(all.data(), static_cast<int>(bytes), MPI_CHAR, 0, state.handle);
  return parted(all);
}

void put(Communicator& state, const Job& job, const Texts& texts) {
  auto hints = state.hints != nullptr ? std::make_shared<Hints>(*state.hints) : std::make_shared<Hints>(job.selection);
  for (std::size_t i = 0; i < collective_count; ++i) {
    if (texts[i].empty()) continue;
    const auto collective = static_cast<Collective>(i);
    std::string problem;
    if (hints->selection.select(collective, texts[i], problem))
      hints->texts[i] = texts[i];
    else if (state.rank == 0)
      log::warn(fmt::format("Info key {}={}: {}; without effect.", key_of(collective), texts[i], problem));
  }
  state.hints = std::move(hints);
  state.last.fill({});
}

}  // namespace

const char* key_of(Collective collective) noexcept {
  switch (collective) {
    case Collective::allreduce:
      return "papaya_allreduce";
    case Collective::reduce:
      return "papaya_reduce";
    case Collective::bcast:
      return "papaya_bcast";
    case Collective::alltoall:
      return "papaya_alltoall";
    case Collective::allgather:
      return "papaya_allgather";
    case Collective::gather:
      return "papaya_gather";
    case Collective::scatter:
      return "papaya_scatter";
    case Collective::reduce_scatter:
      return "papaya_reduce_scatter";
    case Collective::reduce_scatter_block:
      return "papaya_reduce_scatter_block";
    case Collective::barrier:
      return "papaya_barrier";
    default:
      return nullptr;
  }
}

void take(Communicator& state, MPI_Info info) noexcept {
  if (state.inter || state.outside) return;
  const nonblocking::InsideMpi inside_mpi;
  try {
    if (state.rank == 0) warn_of_others(info);
    const Texts texts = agreed(state, texts_in(info));
    for (const std::string& text : texts)
      if (!text.empty()) return put(state, communicators::the_job(), texts);
  } catch (const std::bad_alloc&) {
    end_for_lack_of_memory(0);
  }
}

void tell(const Communicator& state, MPI_Info info) noexcept {
  for (std::size_t i = 0; i < collective_count; ++i) {
    const char* const key = key_of(static_cast<Collective>(i));
    if (key == nullptr) continue;
    char value[2] = "";
    int found = 0;
    if (state.hints != nullptr && !state.hints->texts[i].empty())
      PMPI_Info_set(info, key, state.hints->texts[i].c_str());
    else if (PMPI_Info_get(info, key, 1, value, &found) == MPI_SUCCESS && found != 0)
      PMPI_Info_delete(info, key);
  }
}

void inherit(const Communicator& parent, Communicator& child) noexcept {
  if (MPI_VERSION < 4) child.hints = parent.hints;
}

}  // namespace papaya::hints
