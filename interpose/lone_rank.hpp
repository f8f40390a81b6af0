// A job of one rank whose launcher has started more processes: it belongs to another MPI than the program, and each
// process runs as a job of its own.
#pragma once

#include <functional>
#include <string>

namespace papaya::lone_rank {

// The sentence for the user; empty if the launcher has started one process, tells nothing, or this is not its first.
// `get`: the environment.
std::string sentence(const std::function<const char*(const char* name)>& get);

}  // namespace papaya::lone_rank
