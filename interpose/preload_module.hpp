// The objects that the loader has mapped: which one an address lies in, its build id, and where MPI's functions are.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/mpi_library.hpp"

// Two words, as interpose/trampoline.S reads them.
struct papaya_range {
  std::uintptr_t begin;
  std::uintptr_t bytes;
};

namespace papaya::preload {

// The object that contains an address.
struct Module {
  std::uintptr_t address;
  papaya_range range;
  char path[1024];
};

bool find_module(const void* address, Module& module);

// The first eight bytes of the id that the linker computed from the content of the object that begins there; 0 without
// one.
std::uint64_t build_id_of(std::uintptr_t begin);

// Every object that defines MPI's version function, each once. What is beneath a layer that translates is not among
// them: the program's calls are calls of that layer.
struct Search {
  char paths[32][1024];
  int path_count;
  void* definitions[8];
  int count;
  const Translator* translator;  // nullptr: none, or one of the standard ABI that needs no name
};

void look_for_mpi(Search& search);

// PMPI_Abi_get_version of the object that an address lies in; nullptr where that has none.
AbiGetVersion abi_question_of(const void* address);

// What a call would reach without papaya: the next definition in the global scope, else the one among the
// dependencies of the calling object (a plugin opened RTLD_LOCAL, as Python does, brings MPI with it).
void* native_for(const char* name, const void* caller);

}  // namespace papaya::preload
