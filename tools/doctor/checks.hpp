// The checks of `papaya doctor`, grouped by what they look at.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/settings.hpp"
#include "tools/doctor/elf.hpp"

namespace papaya::doctor {

enum class Level : std::uint8_t { ok, warning, problem };

struct Check {
  std::string name;
  Level level;
  std::string finding;  // one sentence or two, and what to do
};
using Checks = std::vector<Check>;

// The job this process is a rank of, as far as its launcher's environment tells.
struct Job {
  std::string launcher;  // "openmpi", "mpich", "pmix"; empty: started alone
  int rank = 0;
  int ranks = 1;
  int node_ranks = 1;
};
Job job_of(const char* (*get)(const char* name));

// What the recording of a call costs here, in ns; below 0: not measured.
struct Overhead {
  double no_frames = -1;
  double one_frame = -1;
  double four_frames = -1;
};
// By the recorder itself, into a file in `folder` that is removed at once.
Overhead measure_overhead(const std::string& folder);

// What papaya was built for and finds beside it; which launcher comes first.
void check_installation(const Job& job, Checks& checks);
void check_program(const std::string& program, const Job& job, Checks& checks);
void check_other_tools(Checks& checks);
// Those inside the program and among its libraries.
void check_linked_tools(const ElfFile& program, const std::vector<std::string>& libraries, Checks& checks);
// PAPAYA_INCLUDE and PAPAYA_EXCLUDE. `words`: a program and its arguments.
void check_filter(const std::vector<std::string>& words, Checks& checks);
struct Mpi {
  std::string version;   // "Open MPI v4.1.4, ..."; empty: it is no MPI
  int standard_abi = 0;  // as base/mpi_library.hpp has it
};
// What a library says that it is. In a process of its own: two MPIs do not go together.
Mpi ask(const std::string& library);
// `mpis`: what the program is linked to, by path. `libraries`: all of them.
void check_mpi(const std::map<std::string, Mpi>& mpis, const std::vector<std::string>& libraries, const Job& job,
               Checks& checks);
void check_machine(const Job& job, const Settings& settings, Checks& checks);
// The settings as the library takes them, with its warnings.
Settings check_settings(Checks& checks);
void check_output(const Job& job, const Settings& settings, Checks& checks);
void check_overhead(const Overhead& overhead, Checks& checks);

std::string base_name(const std::string& path);

// The MPI of the mpirun in PATH ("openmpi", "mpich"; empty: none, or not known), with what it says of itself.
std::string mpirun_in_path(std::string& says);
// The libraries of papaya for MPIs that are here.
std::vector<std::string> built_flavours();

// What `act` writes to the file descriptor in a process of its own, within some seconds; false if it ended badly.
bool in_child(const std::function<void(int out)>& act, std::string& output);
// What a command prints, both streams; false if it could not be run or ended badly.
bool capture(const std::vector<std::string>& words, std::string& output);
// As execvp would find it; empty if it would not.
std::string find_program(const std::string& name);

}  // namespace papaya::doctor
