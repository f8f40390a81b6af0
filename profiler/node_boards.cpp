#include "profiler/node_boards.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <utility>

namespace papaya {

void NodeBoards::open(std::function<std::string(int)> path_of, const trace::Header& own) {
  path_of_ = std::move(path_of);
  own_ = &own;
}

void NodeBoards::close() noexcept {
  for (const auto& [rank, mapping] : mapped_) munmap(mapping.base, mapping.bytes);
  mapped_.clear();
}

const trace::NodeArrival* NodeBoards::find(int rank) {
  if (const auto known = mapped_.find(rank); known != mapped_.end()) return known->second.board;
  const int file = ::open(path_of_(rank).c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return nullptr;
  const auto header = std::make_unique<trace::Header>();
  struct stat status{};
  const std::uint64_t end = trace::node_arrivals_offset + trace::arrival_slots * sizeof(trace::NodeArrival);
  // Another job may have renamed the folder in the meantime: then its ranks' records are here, of another clock.
  const bool is_good = pread(file, header.get(), sizeof *header, 0) == static_cast<ssize_t>(sizeof *header) &&
                       std::memcmp(header->magic, trace::magic, sizeof trace::magic) == 0 &&
                       header->version == trace::format_version && header->rank == rank && header->ranks == own_->ranks &&
                       header->node == own_->node && header->begin_ticks == own_->begin_ticks &&
                       header->begin_unix_ns == own_->begin_unix_ns &&
                       header->node_arrivals_offset == trace::node_arrivals_offset && fstat(file, &status) == 0 &&
                       static_cast<std::uint64_t>(status.st_size) >= end;
  void* base = MAP_FAILED;
  const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  const std::uint64_t from = trace::node_arrivals_offset & ~(page - 1);
  if (is_good) base = mmap(nullptr, end - from, PROT_READ, MAP_SHARED, file, static_cast<off_t>(from));
  ::close(file);
  if (base == MAP_FAILED) return nullptr;
  const auto* const board =
      reinterpret_cast<const trace::NodeArrival*>(static_cast<const std::byte*>(base) + (trace::node_arrivals_offset - from));
  mapped_[rank] = {base, static_cast<std::size_t>(end - from), board};
  return board;
}

}  // namespace papaya
