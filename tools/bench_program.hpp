// The measuring program, papaya-bench-MPI, which a command becomes on every rank.
#pragma once

#include <string>
#include <vector>

namespace papaya {

// One sentence of `command` from one rank, and the exit code. The others end a little later: a launcher kills all ranks
// as soon as one fails, and the sentence should be out by then.
int fail_once(const std::string& command, int exit_code, const std::string& sentence);

// What is wrong with the command line of this subcommand, in one sentence; the exit code.
int launched_usage(const std::string& subcommand, const std::string& problem);

// Becomes the one for the MPI that launched this process, or for `mpi`, under the library, with these words. Returns
// only if it cannot, after a sentence; `example` is what to type with a launcher in front. `names_algorithms`: they are
// selected one after the other, across nodes too; else papaya is to find what it has of a transport as in any program.
int become_bench_program(const std::string& command, const std::string& mpi, const std::vector<std::string>& words,
                         const std::string& example, bool names_algorithms);

}  // namespace papaya
