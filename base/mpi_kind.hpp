// What MPI's functions other than blocking collectives are for, as far as papaya times them: the columns of a rank's
// time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace papaya {

enum class MpiKind : std::uint8_t { point_to_point, completion, one_sided, management, io, neighbourhood };

inline constexpr std::array<std::string_view, 6> mpi_kind_names = {
    "point-to-point",  // sends, receives, probes, and what starts them
    "completion",      // MPI_Wait, MPI_Test and their like
    "one-sided",       // windows: data and synchronisation
    "management",      // communicators, windows: made and freed
    "I/O",             // files
    "neighbourhood",   // neighbourhood collectives
};
inline constexpr std::size_t mpi_kind_count = mpi_kind_names.size();

constexpr std::size_t index_of(MpiKind kind) {
  return static_cast<std::size_t>(kind);
}

}  // namespace papaya
