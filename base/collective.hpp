// The collectives papaya knows: the rows of base/collectives.def. Everything that names a collective (the wrappers, the
// environment table, the trace, the report) reads it here.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace papaya {

enum class Collective : std::uint8_t {
#define PAPAYA_COLLECTIVE(enumerator, name) enumerator,
#include "base/collectives.def"
#undef PAPAYA_COLLECTIVE
};

// Names in MPI's spelling without the prefix: "Allreduce" for MPI_Allreduce, MPI_Iallreduce, MPI_Allreduce_init.
inline constexpr auto collective_names = std::to_array<std::string_view>({
#define PAPAYA_COLLECTIVE(enumerator, name) name,
#include "base/collectives.def"
#undef PAPAYA_COLLECTIVE
});
inline constexpr std::size_t collective_count = collective_names.size();

// How a collective was called: MPI_X, MPI_IX, MPI_X_init, MPI_Start of what that has made; and MPI_X of a neighbourhood
// collective, which blocks too, but a rank waits there for its neighbours, whom papaya does not know.
enum class Form : std::uint8_t { blocking, nonblocking, persistent, started, neighbourhood };
inline constexpr std::size_t form_count = 5;

// The call returns when the operation has ended.
constexpr bool blocks(Form form) {
  return form == Form::blocking || form == Form::neighbourhood;
}

constexpr std::size_t index_of(Collective collective) {
  return static_cast<std::size_t>(collective);
}
constexpr std::string_view name_of(Collective collective) {
  return collective_names[index_of(collective)];
}

// Message-size classes of the thesis (section 3.3): up to 1 KiB, up to 1 MiB, larger.
enum class SizeClass : std::uint8_t { small, medium, large };
inline constexpr std::size_t size_class_count = 3;
inline constexpr std::uint64_t small_bytes = 1024;
inline constexpr std::uint64_t medium_bytes = 1024 * 1024;

constexpr SizeClass size_class_of(std::uint64_t bytes) {
  return bytes <= small_bytes ? SizeClass::small : bytes <= medium_bytes ? SizeClass::medium : SizeClass::large;
}

}  // namespace papaya
