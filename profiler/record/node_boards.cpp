#include "profiler/record/node_boards.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "profiler/record/failed_pages.hpp"
#include "profiler/record/mapped_file.hpp"

namespace papaya {

void NodeBoards::close() noexcept {
  for (const auto& [rank, mapping] : mapped_) unmap(mapping.base, mapping.bytes);
  mapped_.clear();
}

void NodeBoards::add(int rank, const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return;
  const std::uint64_t end = trace::node_board_offset + sizeof(trace::NodeBoard);
  const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  const std::uint64_t from = trace::node_board_offset & ~(page - 1);
  struct stat status {};
  void* base = MAP_FAILED;
  if (fstat(file, &status) == 0 && static_cast<std::uint64_t>(status.st_size) >= end)
    base = mmap(nullptr, end - from, PROT_READ, MAP_SHARED, file, static_cast<off_t>(from));
  ::close(file);
  if (base == MAP_FAILED) return;
  failed_pages::watch(base, end - from);
  const auto* const board = reinterpret_cast<const trace::NodeBoard*>(static_cast<const std::byte*>(base) +
                                                                      (trace::node_board_offset - from));
  mapped_[rank] = {base, static_cast<std::size_t>(end - from), board};
}

const trace::NodeBoard* NodeBoards::find(int rank) const {
  const auto mapping = mapped_.find(rank);
  return mapping == mapped_.end() ? nullptr : mapping->second.board;
}

}  // namespace papaya
