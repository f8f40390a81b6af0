// What libpapaya-weak-MPI.so does for calls of MPI's that PAPAYA_APPROX names: a flavour library loads it then, and
// both are of one build. It is the same library that programs link, so that all weakly consistent collectives of a
// process move each other on.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <span>
#include <string>

#include "algorithms/weak/weak.hpp"

namespace papaya {

// As weak::Wish.
struct WeakOrder {
  WeakCollective collective;
  std::int64_t count;
  MPI_Datatype type;
  MPI_Op op;
  int root;
  double share;
  const char* algorithm;
};

struct WeakService {
  std::span<const WeakDescriptor* const> (*algorithms)() noexcept;
  // Collective over the communicator. Null, on all ranks alike, with the reason in `problem`. What is made is freed in
  // MPI_Finalize.
  void* (*create)(MPI_Comm comm, const WeakOrder& order, std::string& problem) noexcept;
  // As papaya_weak_start, from where `site` is a return address on the stack. False, with the reason, only where this
  // rank has too little memory.
  bool (*start)(void* collective, const void* site, const void* contribution, void* result,
                std::string& problem) noexcept;
  // For at most so many seconds; true once the call is done.
  bool (*wait)(void* collective, double seconds) noexcept;
  // Of the last call, once it is done.
  WeakStatus (*status)(void* collective) noexcept;
};

// papaya_weak_service: null if `version` is not its own.
using FindWeakService = const WeakService* (*)(const char* version);

}  // namespace papaya
