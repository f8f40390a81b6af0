#include "clustering.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "random.hpp"

namespace kmeans {

namespace {

constexpr std::size_t work_between_polls = 1 << 20;  // coordinates of centroids

// By coordinate, so that the compiler can take several centroids at once.
Numbers transpose(const Numbers& centroids, const Shape& shape) {
  Numbers columns(centroids.size());
  for (std::size_t i = 0; i < shape.clusters; ++i)
    for (std::size_t j = 0; j < shape.dimensions; ++j)
      columns[j * shape.clusters + i] = centroids[i * shape.dimensions + j];
  return columns;
}

double square_distance(const double* a, const double* b, std::size_t dimensions) {
  double sum = 0;
  for (std::size_t i = 0; i < dimensions; ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return sum;
}

// Points spread over all; the same whatever rank has them.
std::vector<std::uint64_t> sample_of(std::uint64_t count, std::size_t clusters) {
  const std::uint64_t size = std::min<std::uint64_t>(count, std::max<std::uint64_t>(10 * clusters, 10000));
  std::vector<std::uint64_t> indices(size);
  for (std::uint64_t i = 0; i < size; ++i)
    indices[i] = static_cast<std::uint64_t>(static_cast<__uint128_t>(i) * count / size);
  return indices;
}

// On rank 0.
Numbers gather_sample(const Input& input, const Points& points, int part, std::size_t clusters, const Job& job) {
  Numbers mine;
  const std::size_t dimensions = input.dimensions();
  if (part >= 0)
    for (const std::uint64_t index : sample_of(input.count(), clusters))
      if (index >= input.first_of(part) && index < input.first_of(part + 1)) {
        const auto at = static_cast<std::ptrdiff_t>((index - input.first_of(part)) * dimensions);
        mine.insert(mine.end(), points.coordinates.begin() + at,
                    points.coordinates.begin() + at + static_cast<std::ptrdiff_t>(dimensions));
      }
  const int size = static_cast<int>(mine.size());
  std::vector<int> sizes(static_cast<std::size_t>(job.ranks));
  std::vector<int> places(static_cast<std::size_t>(job.ranks));
  MPI_Gather(&size, 1, MPI_INT, sizes.data(), 1, MPI_INT, 0, MPI_COMM_WORLD);
  for (std::size_t i = 1; i < places.size(); ++i) places[i] = places[i - 1] + sizes[i - 1];
  Numbers all(job.rank == 0 ? static_cast<std::size_t>(places.back() + sizes.back()) : 0);
  MPI_Gatherv(mine.data(), size, MPI_DOUBLE, all.data(), sizes.data(), places.data(), MPI_DOUBLE, 0, MPI_COMM_WORLD);
  return all;
}

// Arthur and Vassilvitskii: each next one is drawn by the square of its distance to those that are chosen.
Numbers plus_plus(const Numbers& sample, const Shape& shape, std::uint64_t seed) {
  const std::size_t count = sample.size() / shape.dimensions;
  Random random(seed, ~std::uint64_t{0});
  Numbers centroids;
  Numbers distances(count, HUGE_VAL);
  std::size_t chosen = random.below(count);
  while (true) {
    const double* const point = &sample[chosen * shape.dimensions];
    centroids.insert(centroids.end(), point, point + shape.dimensions);
    if (centroids.size() == shape.centroids()) return centroids;
    double sum = 0;
    for (std::size_t i = 0; i < count; ++i) {
      distances[i] = std::min(distances[i], square_distance(&sample[i * shape.dimensions], point, shape.dimensions));
      sum += distances[i];
    }
    if (!(sum > 0))
      throw Problem(fmt::format("The points have only {} different values; choose --clusters {} at most.",
                                centroids.size() / shape.dimensions, centroids.size() / shape.dimensions));
    double drawn = random.uniform() * sum;
    for (chosen = 0; chosen + 1 < count && (drawn -= distances[chosen]) >= 0;) ++chosen;
    while (distances[chosen] == 0) chosen = chosen == 0 ? count - 1 : chosen - 1;  // at the end of rounded sums
  }
}

}  // namespace

void add_points(const Points& points, const Numbers& centroids, const Shape& shape, const std::function<void()>& poll,
                Numbers& sums) {
  const Numbers columns = transpose(centroids, shape);
  Numbers distances(shape.clusters);
  std::fill(sums.begin(), sums.end(), 0.0);
  const std::size_t points_between_polls = std::max<std::size_t>(1, work_between_polls / shape.centroids());
  for (std::size_t p = 0; p < points.count(); ++p) {
    if (p % points_between_polls == 0) poll();
    const double* const point = &points.coordinates[p * shape.dimensions];
    std::fill(distances.begin(), distances.end(), 0.0);
    for (std::size_t j = 0; j < shape.dimensions; ++j) {
      const double coordinate = point[j];
      const double* const column = &columns[j * shape.clusters];
      for (std::size_t i = 0; i < shape.clusters; ++i) {
        const double difference = coordinate - column[i];
        distances[i] += difference * difference;
      }
    }
    const auto closest =
        static_cast<std::size_t>(std::min_element(distances.begin(), distances.end()) - distances.begin());
    double* const sum = &sums[closest * (shape.dimensions + 1)];
    for (std::size_t j = 0; j < shape.dimensions; ++j) sum[j] += point[j];
    sum[shape.dimensions] += 1;
    sums.back() += distances[closest];
  }
}

double move_centroids(const Numbers& sums, const Shape& shape, Numbers& centroids) {
  double most = 0;
  for (std::size_t i = 0; i < shape.clusters; ++i) {
    const double* const sum = &sums[i * (shape.dimensions + 1)];
    if (sum[shape.dimensions] == 0) continue;
    for (std::size_t j = 0; j < shape.dimensions; ++j) {
      double& coordinate = centroids[i * shape.dimensions + j];
      const double mean = sum[j] / sum[shape.dimensions];
      most = std::max(most, std::abs(mean - coordinate));
      coordinate = mean;
    }
  }
  return most;
}

Numbers choose_centroids(const Input& input, const Points& points, int part, const Shape& shape, std::uint64_t seed,
                         const Job& job) {
  const Numbers sample = gather_sample(input, points, part, shape.clusters, job);
  Numbers centroids;
  job.together([&] {
    centroids.resize(shape.centroids());
    if (job.rank == 0) centroids = plus_plus(sample, shape, seed);
  });
  MPI_Bcast(centroids.data(), static_cast<int>(centroids.size()), MPI_DOUBLE, 0, MPI_COMM_WORLD);
  return centroids;
}

}  // namespace kmeans
