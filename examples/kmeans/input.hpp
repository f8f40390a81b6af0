// The points: of a CSV file or generated. A part of them can be read at any time, by any rank.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "job.hpp"
#include "options.hpp"

namespace kmeans {

struct Points {
  std::size_t dimensions = 0;
  std::vector<double> coordinates;  // point after point
  std::size_t count() const noexcept { return dimensions == 0 ? 0 : coordinates.size() / dimensions; }
};

class Input {
 public:
  // Collective; throws CommonProblem. For so many parts.
  Input(const Options& options, int parts, const Job& job);

  std::uint64_t count() const noexcept { return count_; }
  std::size_t dimensions() const noexcept { return dimensions_; }
  std::uint64_t first_of(int part) const noexcept;

  // Throws Problem, and what `poll` throws, which is called now and then.
  Points load(int part, const std::function<void()>& poll) const;

 private:
  // Where a part begins in the file.
  struct Place {
    std::int64_t byte = 0;
    std::int64_t line = 0;  // from 1
  };
  void look_at_file();
  void find_parts(int file);
  void generate(std::uint64_t index, double* point) const;
  void read(int part, const std::function<void()>& poll, Points& points) const;

  const Options& options_;
  const int parts_;
  std::uint64_t count_ = 0;
  std::uint64_t dimensions_ = 0;
  std::vector<Place> places_;  // of the parts of a file
};

}  // namespace kmeans
