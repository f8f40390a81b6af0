// What wi4mpi and its like are to the loader: a library that has all of MPI's functions and passes each on to the MPI
// that it finds itself. Program and MPI are of one ABI here, as with wi4mpi from an MPI to the same one.
#include <dlfcn.h>

#include <cstdlib>
#include <type_traits>

#include "mpi_beneath.hpp"

namespace {

void* beneath(const char* name) {
  static void* const library = dlopen(MPI_BENEATH, RTLD_LAZY | RTLD_LOCAL);
  return library == nullptr ? nullptr : dlsym(library, name);
}

// Mukautuva knows the MPI beneath from MPI_Init on, and a question before that ends the program.
bool answers = true;

struct Get_library_version;
struct Init;

template <class Name, class Function>
struct PassOn;
template <class Name, class... A>
struct PassOn<Name, int(A...)> {
  static const char* text;
  static int call(A... arguments) {
    if constexpr (std::is_same_v<Name, Init>) answers = true;
    if (std::is_same_v<Name, Get_library_version> && !answers) std::abort();
    const auto function = reinterpret_cast<int (*)(A...)>(beneath(text));
    return function == nullptr ? MPI_ERR_OTHER : function(arguments...);
  }
};

}  // namespace

#define ABI(name, ...)                                                                                              \
  namespace {                                                                                                       \
  struct name;                                                                                                      \
  template <>                                                                                                       \
  const char* PassOn<name, int(__VA_ARGS__)>::text = "PMPI_" #name;                                                 \
  }                                                                                                                 \
  extern "C" __attribute__((used)) auto find_##name() {                                                             \
    return &PassOn<name, int(__VA_ARGS__)>::call;                                                                   \
  }                                                                                                                 \
  extern "C"                                                                                                        \
      __attribute__((visibility("default"), ifunc("find_" #name))) int here_##name(__VA_ARGS__) asm("PMPI_" #name); \
  extern "C"                                                                                                        \
      __attribute__((visibility("default"), ifunc("find_" #name))) int weak_##name(__VA_ARGS__) asm("MPI_" #name);
#include "interpose/standard_abi/functions.def"

namespace {
#ifdef KNOWS_NOTHING_BEFORE_INIT
[[gnu::constructor]] void at_load() {
  answers = false;
}
#else
[[gnu::constructor]] void at_load() {
  beneath("PMPI_Init");
}
#endif
}  // namespace
