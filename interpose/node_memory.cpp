#include "interpose/node_memory.hpp"

#include <unistd.h>

#include <vector>

namespace papaya {

namespace {

NodeWindow* window_of_arena = nullptr;  // for what the arena calls, which has no argument for it

// Each rank reads its right neighbour's memory: all agree on whether that works.
bool probe_single_copy(MPI_Comm node) {
  int rank = 0;
  int ranks = 1;
  PMPI_Comm_rank(node, &rank);
  PMPI_Comm_size(node, &ranks);
  struct Word {
    std::uint64_t process;
    std::uint64_t address;
    std::uint64_t value;
  };
  const volatile std::uint64_t value = 0x9e3779b97f4a7c15u * static_cast<std::uint64_t>(rank + 1);
  const Word mine{static_cast<std::uint64_t>(getpid()), reinterpret_cast<std::uintptr_t>(&value), value};
  std::vector<Word> all(static_cast<std::size_t>(ranks));
  PMPI_Allgather(&mine, sizeof mine, MPI_BYTE, all.data(), sizeof mine, MPI_BYTE, node);
  const Word& right = all[static_cast<std::size_t>((rank + 1) % ranks)];
  std::uint64_t read = 0;
  int works = read_memory(static_cast<pid_t>(right.process), reinterpret_cast<const void*>(right.address), &read,
                          sizeof read) &&
              read == right.value;
  int all_work = 0;
  // Its result comes after everybody's read: `value` has been there till then.
  PMPI_Allreduce(&works, &all_work, 1, MPI_INT, MPI_MIN, node);
  return all_work != 0;
}

}  // namespace

void NodeMemory::open(const Job& job) {
  comm = job.node_comm;
  if (!job.selection.replaces_anything() || job.ranks_on_node == 1) return;
  if (!window.create(comm, static_cast<std::size_t>(job.settings.number(Variable::shm_limit)))) return;
  may_read_neighbours = probe_single_copy(comm);
  open_arena(job.rank_on_node, job.thread_level == MPI_THREAD_MULTIPLE);
}

// Where this rank deposits. How much it lends to a call is equal on all ranks of the node.
void NodeMemory::open_arena(int rank, bool concurrent) {
  int any_concurrent = concurrent ? 1 : 0;
  PMPI_Allreduce(MPI_IN_PLACE, &any_concurrent, 1, MPI_INT, MPI_MAX, comm);
  window_of_arena = &window;
  int has_arena = deposits.open(
      {.window = window.base(),
       .offset = window.arena_offset(rank),
       .bytes = window.arena_bytes(),
       .concurrent = any_concurrent != 0,
       .populate = [](std::byte* begin, std::size_t bytes,
                      bool promised) noexcept { return window_of_arena->populate(begin, bytes, promised); },
       .release = [](std::int64_t offset, std::size_t bytes) noexcept { window_of_arena->release(offset, bytes); }});
  PMPI_Allreduce(MPI_IN_PLACE, &has_arena, 1, MPI_INT, MPI_MIN, comm);
  if (has_arena == 0) deposits.close();
}

void NodeMemory::close() noexcept {
  deposits.close();
  window.free();
}

}  // namespace papaya
