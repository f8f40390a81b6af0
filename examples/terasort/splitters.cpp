#include "splitters.hpp"

#include <mpi.h>

#include <algorithm>

namespace terasort {

// One of each stratum of this rank's records, at a place in it that varies by the golden ratio.
std::vector<Splitters::Sample> Splitters::draw(const Source& source, std::uint64_t samples) {
  std::vector<Sample> drawn;
  Records room;
  const std::uint64_t count = std::min(samples, source.count());
  drawn.reserve(count);
  double within = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    within += 0.6180339887498949;
    if (within >= 1) within -= 1;
    const double place =
        (static_cast<double>(i) + within) * static_cast<double>(source.count()) / static_cast<double>(count);
    const std::uint64_t index = std::min(static_cast<std::uint64_t>(place), source.count() - 1);
    drawn.push_back({source.get(index, 1, room)[0].key(), source.first() + index});
  }
  return drawn;
}

Splitters::Splitters(const Source& source, std::uint64_t samples, const Job& job, Times& times) {
  const Within phase(times, Phase::sample);
  const std::vector<Sample> mine = draw(source, samples);
  const auto ranks = static_cast<std::size_t>(job.ranks);
  std::vector<int> counts(ranks);
  std::vector<int> places(ranks);
  const int count = static_cast<int>(mine.size());
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_Type_contiguous(sizeof(Sample), MPI_BYTE, &type);
  MPI_Type_commit(&type);
  std::vector<Sample> all;
  {
    const Waiting waiting(times);
    MPI_Allgather(&count, 1, MPI_INT, counts.data(), 1, MPI_INT, MPI_COMM_WORLD);
    for (std::size_t rank = 1; rank < ranks; ++rank) places[rank] = places[rank - 1] + counts[rank - 1];
    all.resize(static_cast<std::size_t>(places.back() + counts.back()));
    MPI_Allgatherv(mine.data(), count, type, all.data(), counts.data(), places.data(), type, MPI_COMM_WORLD);
  }
  MPI_Type_free(&type);
  std::sort(all.begin(), all.end());
  if (all.empty()) return;
  std::vector<Key> keys;
  for (std::size_t rank = 1; rank < ranks; ++rank) {
    splitters_.push_back(all[rank * all.size() / ranks]);
    keys.push_back(splitters_.back().key);
  }
  keys_ = Bounds(keys);
  const auto me = static_cast<std::size_t>(job.rank);
  for (std::size_t i = me * all.size() / ranks; i < (me + 1) * all.size() / ranks; ++i) own_.push_back(all[i].key);
}

std::vector<Key> Splitters::bounds(std::uint64_t bins) const {
  std::vector<Key> keys;
  for (std::uint64_t bin = 1; bin < std::min<std::uint64_t>(bins, own_.size()); ++bin)
    keys.push_back(own_[bin * own_.size() / std::min<std::uint64_t>(bins, own_.size())]);
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  return keys;
}

int Splitters::rank_of(const Key& key, std::uint64_t place) const noexcept {
  const std::size_t rank = keys_.part_of(key);
  if (rank == 0 || keys_[rank - 1] != key) return static_cast<int>(rank);
  return static_cast<int>(std::upper_bound(splitters_.begin(), splitters_.end(), Sample{key, place}) -
                          splitters_.begin());
}

}  // namespace terasort
