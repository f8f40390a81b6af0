// Where the other ranks of a node publish their arrivals: the boards in their records.
#pragma once

#include <cstddef>
#include <string>
#include <unordered_map>

#include "profiler/record/format.hpp"

namespace papaya {

class NodeBoards {
 public:
  NodeBoards() = default;
  ~NodeBoards() { close(); }
  NodeBoards(const NodeBoards&) = delete;
  NodeBoards& operator=(const NodeBoards&) = delete;

  // Maps the board in the record of a rank of MPI_COMM_WORLD, which that rank has opened; nothing if it could not.
  void add(int rank, const std::string& path);
  void close() noexcept;

  // Null: it has none.
  const trace::NodeBoard* find(int rank) const;

 private:
  struct Mapping {
    void* base;
    std::size_t bytes;
    const trace::NodeBoard* board;
  };
  std::unordered_map<int, Mapping> mapped_;
};

}  // namespace papaya
