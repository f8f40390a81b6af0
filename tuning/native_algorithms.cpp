#include "tuning/native_algorithms.hpp"

#include <array>

namespace papaya::tuning {

std::span<const std::string_view> openmpi_algorithms(Collective collective) noexcept {
  static constexpr std::array<std::string_view, 7> allreduce = {
      "ignore", "basic_linear", "nonoverlapping", "recursive_doubling", "ring", "segmented_ring", "rabenseifner"};
  static constexpr std::array<std::string_view, 8> reduce = {"ignore", "linear",   "chain",           "pipeline",
                                                             "binary", "binomial", "in-order_binary", "rabenseifner"};
  static constexpr std::array<std::string_view, 10> bcast = {
      "ignore",      "basic_linear", "chain",   "pipeline",          "split_binary_tree",
      "binary_tree", "binomial",     "knomial", "scatter_allgather", "scatter_allgather_ring"};
  static constexpr std::array<std::string_view, 6> alltoall = {"ignore",         "linear",      "pairwise",
                                                               "modified_bruck", "linear_sync", "two_proc"};
  static constexpr std::array<std::string_view, 7> allgather = {"ignore", "linear",   "bruck",   "recursive_doubling",
                                                                "ring",   "neighbor", "two_proc"};
  static constexpr std::array<std::string_view, 7> barrier = {"ignore", "linear",   "double_ring", "recursive_doubling",
                                                              "bruck",  "two_proc", "tree"};
  switch (collective) {
    case Collective::allreduce:
      return allreduce;
    case Collective::reduce:
      return reduce;
    case Collective::bcast:
      return bcast;
    case Collective::alltoall:
      return alltoall;
    case Collective::allgather:
      return allgather;
    case Collective::barrier:
      return barrier;
    default:
      return {};
  }
}

}  // namespace papaya::tuning
