// What a launcher's environment tells of it.
#pragma once

#include <string>

namespace papaya::bench {

// "openmpi" or "mpich" if the environment is that of their launcher, "pmix" if it is that of a launcher of
// any, empty if this process was started alone. `get` is getenv.
std::string launcher_of(const char* (*get)(const char* name));

// This process's rank as far as its launcher's environment tells; 0 if it does not.
int rank_of(const char* (*get)(const char* name));

}  // namespace papaya::bench
