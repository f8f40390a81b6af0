#include "interpose/lone_rank.hpp"

#include <fmt/format.h>

#include <cstdlib>

namespace papaya::lone_rank {

namespace {

struct Launcher {
  const char* ranks;
  const char* rank;
};
// Of the innermost launcher: Slurm's variables stay where another launcher runs inside its job.
constexpr Launcher own_launchers[] = {{"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"}, {"PMI_SIZE", "PMI_RANK"}};
constexpr Launcher slurm = {"SLURM_STEP_NUM_TASKS", "SLURM_PROCID"};

}  // namespace

std::string sentence(const std::function<const char*(const char* name)>& get) {
  const auto number = [&](const char* name, long otherwise) {
    const char* const text = get(name);
    return text == nullptr || *text == '\0' ? otherwise : std::strtol(text, nullptr, 10);
  };
  const Launcher* found = nullptr;
  for (const Launcher& launcher : own_launchers) {
    const long ranks = number(launcher.ranks, 0);
    if (ranks == 1) return {};  // inside a process of another job
    if (ranks > 1) found = &launcher;
  }
  if (found == nullptr) found = &slurm;
  const long ranks = number(found->ranks, 1);
  if (ranks < 2 || number(found->rank, -1) != 0) return {};
  return fmt::format(
      "the launcher has started {} processes, and each is a job of its own with one rank: the launcher does not belong "
      "to the program's MPI. Start the program with the mpirun of its own MPI (with srun, by the right --mpi).",
      ranks);
}

}  // namespace papaya::lone_rank
