#include "distribute.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <random>
#include <string>

#include "mistake.hpp"

namespace {

// Which rank has a user, and what number it has there.
struct Place {
  int rank;
  std::int32_t number;
};

// Users in random order, cut where a rank has its part of the ratings.
std::vector<Place> places(const Ratings& ratings, int ranks, std::mt19937_64& random) {
  std::vector<std::size_t> count(static_cast<std::size_t>(ratings.users));
  for (const Rating& one : ratings.all) ++count[static_cast<std::size_t>(one.user)];
  std::vector<std::size_t> order(count.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::shuffle(order.begin(), order.end(), random);
  std::vector<Place> found(count.size());
  std::size_t before = 0;
  std::vector<std::int32_t> users(static_cast<std::size_t>(ranks));
  for (const std::size_t user : order) {
    const auto rank = static_cast<int>(before * static_cast<std::size_t>(ranks) / ratings.all.size());
    found[user] = {std::min(rank, ranks - 1), 0};
    found[user].number = users[static_cast<std::size_t>(found[user].rank)]++;
    before += count[user];
  }
  return found;
}

// Rank 0's ratings to the ranks that have their users, who get the numbers that they have there.
std::vector<Rating> scatter(const std::vector<Rating>& all, const std::vector<Place>& places, MPI_Comm comm) {
  int rank, ranks;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &ranks);
  std::vector<int> counts(static_cast<std::size_t>(ranks)), firsts(counts.size());
  for (const Rating& one : all) ++counts[static_cast<std::size_t>(places[static_cast<std::size_t>(one.user)].rank)];
  std::exclusive_scan(counts.begin(), counts.end(), firsts.begin(), 0);
  std::vector<Rating> sorted(all.size());
  std::vector<int> next = firsts;
  for (const Rating& one : all) {
    const Place& place = places[static_cast<std::size_t>(one.user)];
    const int to = next[static_cast<std::size_t>(place.rank)]++;
    sorted[static_cast<std::size_t>(to)] = {place.number, one.item, one.value};
  }
  int mine = 0;
  MPI_Scatter(counts.data(), 1, MPI_INT, &mine, 1, MPI_INT, 0, comm);
  std::vector<Rating> received(static_cast<std::size_t>(mine));
  MPI_Datatype type;
  MPI_Type_contiguous(sizeof(Rating), MPI_BYTE, &type);
  MPI_Type_commit(&type);
  MPI_Scatterv(sorted.data(), counts.data(), firsts.data(), type, received.data(), mine, type, 0, comm);
  MPI_Type_free(&type);
  return received;
}

}  // namespace

Part distribute(const Ratings& ratings, double held_out, std::uint64_t seed, MPI_Comm comm) {
  int rank, ranks;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &ranks);
  std::mt19937_64 random(seed);
  std::vector<Rating> training = ratings.all;
  std::shuffle(training.begin(), training.end(), random);
  const auto held = static_cast<std::ptrdiff_t>(held_out * static_cast<double>(training.size()));
  const std::vector<Rating> tested(training.end() - held, training.end());
  training.erase(training.end() - held, training.end());
  std::array<long long, 4> sizes = {ratings.users, ratings.items, static_cast<long long>(training.size()), held};
  MPI_Bcast(sizes.data(), static_cast<int>(sizes.size()), MPI_LONG_LONG, 0, comm);
  if (sizes[3] == 0) throw Mistake("there are too few ratings to hold any out: raise --held-out.");
  if (sizes[0] < ranks)
    throw Mistake("each of the " + std::to_string(ranks) + " ranks needs users, and there are only " +
                  std::to_string(sizes[0]) + ": start fewer ranks.");
  std::vector<Place> owners;
  if (rank == 0) owners = places(ratings, ranks, random);
  Part part;
  part.items = static_cast<int>(sizes[1]);
  part.all_training = sizes[2];
  part.all_held_out = sizes[3];
  for (const Rating& one : training) part.mean += one.value / static_cast<double>(training.size());
  MPI_Bcast(&part.mean, 1, MPI_DOUBLE, 0, comm);
  part.training = scatter(training, owners, comm);
  part.held_out = scatter(tested, owners, comm);
  for (const auto* list : {&part.training, &part.held_out})
    for (const Rating& one : *list) part.users = std::max(part.users, one.user + 1);
  return part;
}
