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

std::span<const std::string_view> mpich_algorithms(Collective collective) noexcept {
  static constexpr std::array<std::string_view, 4> allreduce = {"nb", "smp", "recursive_doubling",
                                                                "reduce_scatter_allgather"};
  static constexpr std::array<std::string_view, 4> reduce = {"nb", "smp", "binomial", "reduce_scatter_gather"};
  static constexpr std::array<std::string_view, 5> bcast = {
      "nb", "smp", "binomial", "scatter_recursive_doubling_allgather", "scatter_ring_allgather"};
  static constexpr std::array<std::string_view, 4> alltoall = {"nb", "brucks", "pairwise", "scattered"};
  static constexpr std::array<std::string_view, 4> allgather = {"nb", "brucks", "recursive_doubling", "ring"};
  static constexpr std::array<std::string_view, 3> barrier = {"nb", "smp", "dissemination"};
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

std::span<const std::string_view> ucc_algorithms(Collective collective) noexcept {
  static constexpr std::array<std::string_view, 5> allreduce = {"tl/ucp:knomial", "tl/ucp:sra_knomial", "tl/ucp:dbt",
                                                                "cl/hier:rab", "cl/hier:split_rail"};
  static constexpr std::array<std::string_view, 4> reduce = {"tl/ucp:knomial", "tl/ucp:dbt", "tl/ucp:srg",
                                                             "cl/hier:2step"};
  static constexpr std::array<std::string_view, 4> bcast = {"tl/ucp:knomial", "tl/ucp:sag_knomial", "tl/ucp:dbt",
                                                            "cl/hier:2step"};
  static constexpr std::array<std::string_view, 3> alltoall = {"tl/ucp:pairwise", "tl/ucp:bruck", "cl/hier:node_split"};
  static constexpr std::array<std::string_view, 6> allgather = {"tl/ucp:knomial", "tl/ucp:ring",    "tl/ucp:neighbor",
                                                                "tl/ucp:bruck",   "tl/ucp:sparbit", "tl/ucp:linear"};
  static constexpr std::array<std::string_view, 1> barrier = {"tl/ucp:knomial"};
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

MpichNeeds mpich_needs(Collective collective, std::string_view algorithm) noexcept {
  const bool reduces = collective == Collective::allreduce || collective == Collective::reduce;
  MpichNeeds needs;
  needs.power_of_two = algorithm == "scatter_recursive_doubling_allgather" ||
                       (collective == Collective::allgather && algorithm == "recursive_doubling");
  needs.several_nodes = algorithm == "smp";
  needs.commutative = algorithm == "smp" && reduces;
  needs.many_elements = algorithm == "reduce_scatter_allgather" || algorithm == "reduce_scatter_gather";
  return needs;
}

// "...auto - Internal...nb   - Force...": the lines of the description are joined without a break.
int mpich_number(std::string_view description, std::string_view algorithm) noexcept {
  constexpr std::string_view between = " - ";
  for (std::size_t at = description.find(algorithm); at != description.npos; at = description.find(algorithm, at + 1)) {
    const bool begins = at == 0 || description[at - 1] != '_';
    const std::size_t next = description.find_first_not_of(' ', at + algorithm.size());
    if (!begins || next == description.npos || !description.substr(next - 1).starts_with(between)) continue;
    int number = 0;
    for (std::size_t one = description.find(between); one < at; one = description.find(between, one + 1)) ++number;
    return number;
  }
  return -1;
}

}  // namespace papaya::tuning
