#include "interpose/node_memory.hpp"

#include <unistd.h>

#include <vector>

namespace papaya {

namespace {

NodeWindow* window_of_arena = nullptr;  // for what the arena calls, which has no argument for it

// Each rank reads its right neighbour's memory: all agree on whether that works.
bool probe_single_copy(OutOfBand& node) {
  struct Word {
    std::uint64_t process;
    std::uint64_t address;
    std::uint64_t value;
  };
  const volatile std::uint64_t value = 0x9e3779b97f4a7c15u * static_cast<std::uint64_t>(node.rank() + 1);
  const Word mine{static_cast<std::uint64_t>(getpid()), reinterpret_cast<std::uintptr_t>(&value), value};
  const std::vector<Word> all = node.gather(mine);
  const Word& right = all[static_cast<std::size_t>((node.rank() + 1) % node.ranks())];
  std::uint64_t read = 0;
  const bool works = read_memory(static_cast<pid_t>(right.process), reinterpret_cast<const void*>(right.address), &read,
                                 sizeof read) &&
                     read == right.value;
  // Its result comes after everybody's read: `value` has been there till then.
  return node.least(works ? 1 : 0) != 0;
}

}  // namespace

void NodeMemory::open(const Job& job, NodeWindow::File file) {
  is_wanted = job.selection.replaces_anything();
  if (!is_wanted || job.ranks_on_node == 1) return;
  OutOfBand& node = *job.oob_of_node;
  if (!window.create(node, job.node_comm, file, static_cast<std::size_t>(job.settings.number(Variable::shm_limit))))
    return;
  may_read_neighbours = probe_single_copy(node);
  open_arena(node, job.thread_level == MPI_THREAD_MULTIPLE);
}

// Where this rank deposits. How much it lends to a call is equal on all ranks of the node.
void NodeMemory::open_arena(OutOfBand& node, bool concurrent) {
  const bool any_concurrent = node.most(concurrent ? 1 : 0) != 0;
  window_of_arena = &window;
  const bool has_arena = deposits.open(
      {.window = window.base(),
       .offset = window.arena_offset(node.rank()),
       .bytes = window.arena_bytes(),
       .concurrent = any_concurrent,
       .populate = [](std::byte* begin, std::size_t bytes,
                      bool promised) noexcept { return window_of_arena->populate(begin, bytes, promised); },
       .release = [](std::int64_t offset, std::size_t bytes) noexcept { window_of_arena->release(offset, bytes); }});
  if (node.least(has_arena ? 1 : 0) == 0) deposits.close();
}

void NodeMemory::close() noexcept {
  deposits.close();
  window.free();
}

}  // namespace papaya
