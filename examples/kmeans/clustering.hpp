// The arithmetic of K-means: nothing here knows of ranks that die.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "input.hpp"

namespace kmeans {

using Numbers = std::vector<double>;

struct Shape {
  std::size_t clusters;
  std::size_t dimensions;
  std::size_t centroids() const noexcept { return clusters * dimensions; }
  // Of each cluster the sum of its points and their number; at the end the sum of squared distances.
  std::size_t sums() const noexcept { return clusters * (dimensions + 1) + 1; }
};

// Adds each point to the sums of the closest centroid. Calls `poll` now and then.
void add_points(const Points& points, const Numbers& centroids, const Shape& shape, const std::function<void()>& poll,
                Numbers& sums);

// The means; a cluster without points keeps its centroid. Returns the largest move of a coordinate.
double move_centroids(const Numbers& sums, const Shape& shape, Numbers& centroids);

// Collective: k-means++ on a sample, the same for any number of ranks. `points`: those of `part`, or none if that is
// less than 0. Throws CommonProblem.
Numbers choose_centroids(const Input& input, const Points& points, int part, const Shape& shape, std::uint64_t seed,
                         const Job& job);

}  // namespace kmeans
