// Where a wrapper hands on a call that the program made: to the tool behind papaya that takes the same function, else
// to MPI. What papaya calls for itself is PMPI_X, which always is MPI's.
#pragma once

#include <mpi.h>

#include <cstddef>

namespace papaya::next {

// By number, as libpapaya.so counts them.
enum class Symbol : std::size_t {
#define PAPAYA_SYMBOL(name) name,
#define PAPAYA_BOTH(name, kind) name,
#define PAPAYA_WAITING(name, kind) name,
#define PAPAYA_TIMED(name, kind) name,
#include "interpose/symbols.def"
#undef PAPAYA_SYMBOL
#undef PAPAYA_BOTH
#undef PAPAYA_WAITING
#undef PAPAYA_TIMED
};

inline constinit void* const* functions = nullptr;  // set before any wrapper runs

template <Symbol symbol, class Function>
struct Next;
template <Symbol symbol, class... Parameters>
struct Next<symbol, int(Parameters...)> {
  static int call(Parameters... arguments) {
    return reinterpret_cast<int (*)(Parameters...)>(functions[static_cast<std::size_t>(symbol)])(arguments...);
  }
};

}  // namespace papaya::next

// In place of PMPI_NAME.
#define PAPAYA_NEXT(name) (papaya::next::Next<papaya::next::Symbol::name, decltype(PMPI_##name)>::call)
