// The ranks of a node that publish and compare their arrivals, without processes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "profiler/record/node_arrivals.hpp"

namespace papaya::support {

struct NodeRank {
  std::unique_ptr<trace::NodeBoard> board = std::make_unique<trace::NodeBoard>();
  std::vector<trace::NodeCalls> table;
  std::uint64_t given_up = 0;
  NodeArrivals arrivals;
};

class ArrivalNode {
 public:
  ArrivalNode(int ranks, std::size_t rows, std::uint64_t tie_ticks = 0) {
    for (int i = 0; i < ranks; ++i) ranks_.push_back(std::make_unique<NodeRank>());
    for (auto& rank : ranks_) {
      rank->table.resize(rows);
      rank->arrivals.open(*rank->board, rank->table, rank->given_up, tie_ticks, true);
    }
  }

  NodeRank& operator[](int rank) { return *ranks_[static_cast<std::size_t>(rank)]; }
  int size() const { return static_cast<int>(ranks_.size()); }

  // Of a communicator of all ranks.
  NodeArrivals::Group group(std::uint64_t communicator, int rank) const {
    NodeArrivals::Group group;
    group.communicator = communicator;
    group.mine = static_cast<std::size_t>(rank);
    for (int i = 0; i < size(); ++i) group.members.push_back({i, i, ranks_[static_cast<std::size_t>(i)]->board.get()});
    return group;
  }

  // What all tables have, and the calls given up.
  template <class Value>
  std::uint64_t sum(Value value) const {
    std::uint64_t all = 0;
    for (const auto& rank : ranks_)
      for (const trace::NodeCalls& row : rank->table)
        if (row.used != 0) all += value(row);
    return all;
  }
  std::uint64_t given_up() const {
    std::uint64_t all = 0;
    for (const auto& rank : ranks_) all += rank->given_up;
    return all;
  }

 private:
  std::vector<std::unique_ptr<NodeRank>> ranks_;
};

}  // namespace papaya::support
