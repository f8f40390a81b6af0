#include "tools/bench/launcher.hpp"

#include <cstdlib>

namespace papaya::bench {

std::string launcher_of(const char* (*get)(const char* name)) {
  if (get("OMPI_COMM_WORLD_SIZE") != nullptr) return "openmpi";
  for (const char* name : {"PMI_RANK", "PMI_SIZE", "PMI_FD"})
    if (get(name) != nullptr) return "mpich";
  return get("PMIX_RANK") != nullptr ? "pmix" : "";
}

int rank_of(const char* (*get)(const char* name)) {
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"})
    if (const char* const value = get(name); value != nullptr) return std::atoi(value);
  return 0;
}

}  // namespace papaya::bench
