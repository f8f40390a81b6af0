// Where the other ranks of a node publish their arrivals: the boards in their records.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <unordered_map>

#include "profiler/format.hpp"

namespace papaya {

class NodeBoards {
 public:
  NodeBoards() = default;
  ~NodeBoards() { close(); }
  NodeBoards(const NodeBoards&) = delete;
  NodeBoards& operator=(const NodeBoards&) = delete;

  // `path_of` is the record of a rank of MPI_COMM_WORLD; `own` is the header of this rank's, which has been filled.
  void open(std::function<std::string(int rank)> path_of, const trace::Header& own);
  void close() noexcept;

  // The board of a rank of this node, mapped; null while it has no record of this run.
  const trace::NodeArrival* find(int rank);

 private:
  struct Mapping {
    void* base;
    std::size_t bytes;
    const trace::NodeArrival* board;
  };

  std::function<std::string(int)> path_of_;
  const trace::Header* own_ = nullptr;
  std::unordered_map<int, Mapping> mapped_;
};

}  // namespace papaya
