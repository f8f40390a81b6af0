#include "api/terms.hpp"

#include <algorithm>
#include <cstring>
#include <functional>
#include <limits>
#include <string_view>

#include "base/version.hpp"

namespace papaya::weak {

// All in numbers of which the least of all ranks is taken: of what rank 0 decides the others bring the largest number,
// and the greatest is the negative of the least negative. As many of them in every version.
void Terms::agree(MPI_Comm comm, std::size_t node) {
  int rank = 0;
  PMPI_Comm_rank(comm, &rank);
  constexpr std::size_t words = 64;
  constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();
  std::array<std::int64_t, words> least{};
  std::size_t at = 0;
  const auto put_range = [&](std::int64_t number) {
    least[at++] = number;
    least[at++] = -number;
  };
  const auto of_hash = [](std::size_t hash) { return static_cast<std::int64_t>(hash >> 1); };
  put_range(of_hash(std::hash<std::string_view>{}(PAPAYA_VERSION)));
  put_range(of_hash(node));
  for (const bool holds : {is_good, has_started, has_ucx}) least[at++] = holds ? 1 : 0;
  const std::size_t of_first = at;
  std::uint64_t text = 0;
  transport.copy(reinterpret_cast<char*>(&text), sizeof text - 1);
  for (const std::uint64_t number :
       {birth.ns, birth.process, birth.number, node_size, text, shared_bytes, std::uint64_t{has_segment ? 1u : 0u}})
    least[at++] = rank == 0 ? static_cast<std::int64_t>(number & static_cast<std::uint64_t>(largest)) : largest;
  const std::size_t first_fact = at;
  for (const Range& fact : facts()) put_range(fact.lowest);

  PMPI_Allreduce(MPI_IN_PLACE, least.data(), words, MPI_INT64_T, MPI_MIN, comm);

  is_same_version = least[0] == -least[1];
  is_same_node = least[2] == -least[3];
  is_good = least[4] != 0;
  has_started = least[5] != 0;
  has_ucx = least[6] != 0;
  const auto number = [&](std::size_t index) { return static_cast<std::uint64_t>(least[of_first + index]); };
  birth = {number(0), number(1), number(2)};
  node_size = number(3);
  char letters[sizeof text] = {};
  const std::uint64_t agreed = number(4);
  std::memcpy(letters, &agreed, sizeof letters);
  transport = letters;
  shared_bytes = number(5);
  has_segment = number(6) != 0;
  for (std::size_t i = 0; i < count_; ++i) facts_[i] = {least[first_fact + 2 * i], -least[first_fact + 2 * i + 1]};
}

}  // namespace papaya::weak
