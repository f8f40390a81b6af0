// The one shared window of a node and job: regions, sub-allocated by pages to communicators,
// and behind them the arenas in which the node's ranks deposit, of equal size (deposit_arena.hpp). Addresses are not
// memory: three quarters of the limit are addresses of regions, one half those of arenas, and pages are taken as they
// are needed. A quarter of the limit is promised to the arenas; what else they take regions have not taken, and the
// other way round. Shared memory that the system promised but cannot deliver (a full /dev/shm) ends in SIGBUS on first
// touch, so every page is asked for through the kernel, which can say no, before it is used. The program may want
// shared memory, too: papaya holds at most a quarter of what would be free without it.
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "algorithms/transport/out_of_band.hpp"
#include "algorithms/transport/regions.hpp"
#include "algorithms/waiting/wait.hpp"

namespace papaya {

class NodeWindow final : public Regions {
 public:
  // Memory that the ranks of a node share already: a file in /dev/shm that each has open, free from `begin` on, a
  // multiple of the page size.
  struct File {
    int descriptor = -1;
    std::size_t begin = 0;
  };

  // Collective over the ranks of a node. At most `limit` bytes; less where less is free. In `file`, or without one in a
  // window of MPI's over `comm`, the same ranks, whose error handler must return. All ranks agree on the outcome.
  bool create(OutOfBand& node, MPI_Comm comm, File file, std::size_t limit) noexcept;
  void free() noexcept;  // collective
  bool exists() const noexcept override { return base_ != nullptr; }
  std::size_t limit() const noexcept { return limit_; }  // what was left of that given to create()

  std::int64_t allocate(std::size_t bytes, int users, std::size_t leave) noexcept override;
  Attached attach(std::uint64_t key, std::span<const Wish> wishes) noexcept override;
  std::atomic<std::uint64_t>& agreement(std::int64_t offset) const noexcept override;
  bool prepare_share(std::int64_t offset, std::size_t bytes, int rank, int ranks) noexcept override;
  void release(std::int64_t offset, std::size_t bytes) noexcept override;
  std::byte* region(std::int64_t offset) const noexcept override;

  wait::Load* board() const noexcept;
  // For tests: pages that regions have, and pages that are taken from the system.
  std::size_t used_pages() const noexcept { return count(Map::used); }
  std::size_t held_pages() const noexcept { return count(Map::held); }

  // Equal on all ranks.
  std::size_t region_bytes() const noexcept override;
  std::size_t arena_bytes() const noexcept { return arena_bytes_; }
  std::byte* base() const noexcept { return base_; }
  std::size_t arena_offset(int rank) const noexcept;  // from base(); `rank` of the node
  // Makes pages of an arena present that are not. `promised`: regions leave them. False if there is no memory for them.
  bool populate(std::byte* begin, std::size_t bytes, bool promised) noexcept;

 private:
  static constexpr std::size_t page_bytes = 4096;
  struct Header;
  struct Announcement;
  Announcement* bucket(std::uint64_t key) const noexcept;
  std::int64_t take_pages(std::size_t wanted, std::size_t leave) noexcept;
  static std::size_t pages_for(std::size_t bytes) noexcept;
  enum class Map : unsigned char { used, held };
  Header* header() const noexcept;
  std::uint64_t* bitmap(Map map) const noexcept;
  bool lock() const noexcept;
  void unlock() const noexcept;
  bool is_marked(Map map, std::size_t page) const noexcept { return (bitmap(map)[page / 64] >> (page % 64)) & 1; }
  void mark(Map map, std::size_t first, std::size_t pages, bool value) noexcept;
  std::size_t count(Map map) const noexcept;
  std::size_t held_by_all() const noexcept;
  std::size_t most_held_pages() const noexcept;
  std::size_t room_for_pages() const noexcept;
  bool leaves(std::size_t wanted, std::size_t leave) const noexcept;
  void give_back_to_system(std::size_t first, std::size_t pages) noexcept;

  bool map_file(File file, std::size_t bytes, bool makes_room) noexcept;
  bool allocate_by_mpi(MPI_Comm comm, std::size_t bytes, bool is_first) noexcept;

  MPI_Win window_ = MPI_WIN_NULL;
  std::size_t mapped_bytes_ = 0;  // of a file
  std::byte* base_ = nullptr;
  std::size_t limit_ = 0;
  std::size_t pages_ = 0;  // before the arenas; what regions and arenas may hold, beside what those are promised
  std::size_t arena_bytes_ = 0;
  std::size_t map_words_ = 0;
  std::size_t first_page_ = 0;     // pages before it hold the header, the board and the bitmaps
  std::size_t announcements_ = 0;  // where they begin
  std::size_t buckets_ = 0;        // of them, a power of two
  int ranks_ = 0;
};

}  // namespace papaya
