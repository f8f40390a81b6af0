#include "tuning/native_algorithms.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace papaya::tuning {

namespace {

using Names = std::span<const std::string_view>;

template <std::size_t count>
using List = std::array<std::string_view, count>;

namespace openmpi {
constexpr List<7> allreduce = {"ignore", "basic_linear",   "nonoverlapping", "recursive_doubling",
                               "ring",   "segmented_ring", "rabenseifner"};
constexpr List<8> reduce = {"ignore", "linear",   "chain",           "pipeline",
                            "binary", "binomial", "in-order_binary", "rabenseifner"};
constexpr List<10> bcast = {"ignore",      "basic_linear", "chain",   "pipeline",          "split_binary_tree",
                            "binary_tree", "binomial",     "knomial", "scatter_allgather", "scatter_allgather_ring"};
constexpr List<6> alltoall = {"ignore", "linear", "pairwise", "modified_bruck", "linear_sync", "two_proc"};
constexpr List<7> allgather = {"ignore", "linear", "bruck", "recursive_doubling", "ring", "neighbor", "two_proc"};
constexpr List<7> barrier = {"ignore", "linear", "double_ring", "recursive_doubling", "bruck", "two_proc", "tree"};
}  // namespace openmpi

namespace mpich {
constexpr List<4> allreduce = {"nb", "smp", "recursive_doubling", "reduce_scatter_allgather"};
constexpr List<4> reduce = {"nb", "smp", "binomial", "reduce_scatter_gather"};
constexpr List<5> bcast = {"nb", "smp", "binomial", "scatter_recursive_doubling_allgather", "scatter_ring_allgather"};
constexpr List<4> alltoall = {"nb", "brucks", "pairwise", "scattered"};
constexpr List<4> allgather = {"nb", "brucks", "recursive_doubling", "ring"};
constexpr List<3> barrier = {"nb", "smp", "dissemination"};
}  // namespace mpich

namespace ucc {
constexpr List<5> allreduce = {"tl/ucp:knomial", "tl/ucp:sra_knomial", "tl/ucp:dbt", "cl/hier:rab",
                               "cl/hier:split_rail"};
constexpr List<4> reduce = {"tl/ucp:knomial", "tl/ucp:dbt", "tl/ucp:srg", "cl/hier:2step"};
constexpr List<4> bcast = {"tl/ucp:knomial", "tl/ucp:sag_knomial", "tl/ucp:dbt", "cl/hier:2step"};
constexpr List<3> alltoall = {"tl/ucp:pairwise", "tl/ucp:bruck", "cl/hier:node_split"};
constexpr List<6> allgather = {"tl/ucp:knomial", "tl/ucp:ring",    "tl/ucp:neighbor",
                               "tl/ucp:bruck",   "tl/ucp:sparbit", "tl/ucp:linear"};
constexpr List<1> barrier = {"tl/ucp:knomial"};
}  // namespace ucc

struct Row {
  int number = 0;  // in Open MPI's coll_base_functions.h
  Names openmpi{};
  Names mpich{};
  Names ucc{};
};

// Null: papaya has no rules for it.
const Row* row_of(Collective collective) noexcept {
  static constexpr std::pair<Collective, Row> rows[] = {
      {Collective::allgather, {0, openmpi::allgather, mpich::allgather, ucc::allgather}},
      {Collective::allreduce, {2, openmpi::allreduce, mpich::allreduce, ucc::allreduce}},
      {Collective::alltoall, {3, openmpi::alltoall, mpich::alltoall, ucc::alltoall}},
      {Collective::barrier, {6, openmpi::barrier, mpich::barrier, ucc::barrier}},
      {Collective::bcast, {7, openmpi::bcast, mpich::bcast, ucc::bcast}},
      {Collective::reduce, {11, openmpi::reduce, mpich::reduce, ucc::reduce}},
  };
  for (const auto& [one, row] : rows)
    if (one == collective) return &row;
  return nullptr;
}

Names names_of(Collective collective, Names Row::*library) noexcept {
  const Row* const row = row_of(collective);
  return row == nullptr ? Names{} : row->*library;
}

}  // namespace

std::span<const std::string_view> openmpi_algorithms(Collective collective) noexcept {
  return names_of(collective, &Row::openmpi);
}

std::span<const std::string_view> openmpi_alternatives(Collective collective) noexcept {
  const Names names = openmpi_algorithms(collective);
  return names.empty() ? names : names.subspan(1);
}

std::optional<int> openmpi_number(Collective collective) noexcept {
  const Row* const row = row_of(collective);
  return row == nullptr ? std::nullopt : std::optional(row->number);
}

std::span<const std::string_view> mpich_algorithms(Collective collective) noexcept {
  return names_of(collective, &Row::mpich);
}

std::span<const std::string_view> ucc_algorithms(Collective collective) noexcept {
  return names_of(collective, &Row::ucc);
}

std::optional<std::size_t> NativeLibrary::find(Collective collective, std::string_view called) const noexcept {
  const Names names = algorithms(collective);
  const auto at = std::find(names.begin(), names.end(), called);
  return at == names.end() ? std::nullopt : std::optional(static_cast<std::size_t>(at - names.begin()));
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
