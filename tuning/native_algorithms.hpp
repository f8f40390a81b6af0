// What MPI libraries call their own algorithms, for tuning files that say which of them won.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "base/collective.hpp"

namespace papaya::tuning {

// The names of its coll_tuned_X_algorithm, in the order of its numbers; 0, "ignore", leaves the choice to it. Empty for
// collectives that papaya has no rules for, here and below.
std::span<const std::string_view> openmpi_algorithms(Collective collective) noexcept;
// Those that can be asked for: all but "ignore".
std::span<const std::string_view> openmpi_alternatives(Collective collective) noexcept;
// The collective's number in Open MPI's files of rules; none where it has no algorithms here.
std::optional<int> openmpi_number(Collective collective) noexcept;

// Of MPIR_CVAR_X_INTRA_ALGORITHM, those that all of MPICH 4 has and that take no parameters.
std::span<const std::string_view> mpich_algorithms(Collective collective) noexcept;
// Of `ucc_info -A`, with the component before the name: tl/ucp:knomial. Those for host memory.
std::span<const std::string_view> ucc_algorithms(Collective collective) noexcept;

// What an algorithm of MPICH cannot do without: where that is missing MPICH must be left to choose.
struct MpichNeeds {
  bool power_of_two = false;   // ranks
  bool several_nodes = false;  // with several ranks on one of them
  bool commutative = false;    // operation
  bool many_elements = false;  // one for each rank, up to a power of two, and a predefined operation
};
MpichNeeds mpich_needs(Collective collective, std::string_view algorithm) noexcept;

// The number of an algorithm of MPICH: its place in what MPI_T says about MPIR_CVAR_X_INTRA_ALGORITHM, which lists all
// of them, auto first. -1: this MPICH has no such algorithm.
int mpich_number(std::string_view description, std::string_view algorithm) noexcept;

// Which of MPI's own algorithms won: papaya leaves such calls to MPI, and exports this.
struct Native {
  std::string_view openmpi;         // one of openmpi_algorithms; empty: not said, here and below
  std::uint64_t fanout = 0;         // of Open MPI; 0: its own
  std::uint64_t segment_bytes = 0;  // of Open MPI; 0: its own
  std::string_view mpich;
  std::string_view ucc;
  bool names_any() const noexcept { return !openmpi.empty() || !mpich.empty() || !ucc.empty(); }
};

struct NativeLibrary {
  std::string_view field;  // in a tuning file
  std::string_view name;
  std::string_view Native::*algorithm;
  std::span<const std::string_view> (*algorithms)(Collective) noexcept;
  // Where it stands among the algorithms of the collective; none: there is no such algorithm.
  std::optional<std::size_t> find(Collective collective, std::string_view called) const noexcept;
};
inline constexpr NativeLibrary openmpi_library = {"openmpi", "Open MPI", &Native::openmpi, openmpi_algorithms};
inline constexpr NativeLibrary mpich_library = {"mpich", "MPICH", &Native::mpich, mpich_algorithms};
inline constexpr NativeLibrary ucc_library = {"ucc", "UCC", &Native::ucc, ucc_algorithms};
inline constexpr std::array<NativeLibrary, 3> native_libraries = {openmpi_library, mpich_library, ucc_library};

// How the benchmark and `papaya tune` call one of them: "native:ring".
inline constexpr std::string_view native_variant_prefix = "native:";
constexpr bool is_native_variant(std::string_view selection) noexcept {
  return selection.starts_with(native_variant_prefix);
}

}  // namespace papaya::tuning
