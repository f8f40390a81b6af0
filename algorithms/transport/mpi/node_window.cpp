#include "algorithms/transport/mpi/node_window.hpp"

#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>

#include "algorithms/transport/deposit_arena.hpp"
#include "base/clock.hpp"
#include "base/memory.hpp"

namespace papaya {

namespace {

constexpr std::size_t prefix_bytes = 128;  // of a region: its user count, and the alignment of what follows

struct alignas(prefix_bytes) Prefix {
  std::atomic<std::uint32_t> users;
  std::uint64_t key;                     // that it is announced under, 0: under none; guarded by the lock
  std::uint64_t wish;                    // of those who attach; guarded by the lock
  std::atomic<std::uint64_t> agreement;  // of those who have attached
};

constexpr int bucket_size = 8;  // announcements, two cache lines

}  // namespace

// `lock` guards the bitmaps and what is held. Acquire on taking, release on giving back.
struct NodeWindow::Header {
  std::atomic<std::uint32_t> lock;
  std::uint64_t held_pages;   // by regions
  std::uint64_t arena_pages;  // by arenas
  std::uint64_t spare_pages;  // of those, what they were not promised
};

// Who attaches to a region finds it here. Guarded by the lock.
struct NodeWindow::Announcement {
  std::uint64_t key;  // 0: none
  std::int64_t offset;
};

std::size_t NodeWindow::pages_for(std::size_t bytes) noexcept {
  return (bytes + prefix_bytes + page_bytes - 1) / page_bytes;
}
NodeWindow::Header* NodeWindow::header() const noexcept {
  return reinterpret_cast<Header*>(base_);
}
wait::Load* NodeWindow::board() const noexcept {
  return exists() ? reinterpret_cast<wait::Load*>(base_ + 64) : nullptr;
}
std::uint64_t* NodeWindow::bitmap(Map map) const noexcept {
  return reinterpret_cast<std::uint64_t*>(base_ + 64 + static_cast<std::size_t>(ranks_) * sizeof(wait::Load)) +
         (map == Map::held ? map_words_ : 0);
}
NodeWindow::Announcement* NodeWindow::bucket(std::uint64_t key) const noexcept {
  return reinterpret_cast<Announcement*>(base_ + announcements_) + (key & (buckets_ - 1)) * bucket_size;
}
std::atomic<std::uint64_t>& NodeWindow::agreement(std::int64_t offset) const noexcept {
  return reinterpret_cast<Prefix*>(base_ + offset)->agreement;
}
std::byte* NodeWindow::region(std::int64_t offset) const noexcept {
  return base_ + offset + prefix_bytes;
}

// A file of the kernel's memory has holes until it is written to, so to make it longer takes nothing.
bool NodeWindow::map_file(File file, std::size_t bytes, bool makes_room) noexcept {
  if (makes_room && ftruncate(file.descriptor, static_cast<off_t>(file.begin + bytes)) != 0) return false;
  void* const memory =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.descriptor, static_cast<off_t>(file.begin));
  if (memory == MAP_FAILED) return false;
  base_ = static_cast<std::byte*>(memory);
  mapped_bytes_ = bytes;
  return true;
}

bool NodeWindow::allocate_by_mpi(MPI_Comm comm, std::size_t bytes, bool is_first) noexcept {
  void* mine = nullptr;
  if (PMPI_Win_allocate_shared(is_first ? static_cast<MPI_Aint>(bytes) : 0, 1, MPI_INFO_NULL, comm, &mine, &window_) !=
      MPI_SUCCESS)
    return false;
  MPI_Aint size = 0;
  int unit = 0;
  void* first = nullptr;
  if (PMPI_Win_shared_query(window_, 0, &size, &unit, &first) != MPI_SUCCESS ||
      static_cast<std::uint64_t>(size) < bytes)
    return false;
  // MPI may put a header of its own first (Open MPI does). The offset in the page is the same in every process.
  const std::uintptr_t misplaced = reinterpret_cast<std::uintptr_t>(first) % page_bytes;
  base_ = static_cast<std::byte*>(first) + (misplaced == 0 ? 0 : page_bytes - misplaced);
  pages_ -= misplaced == 0 ? 0 : 1;
  return true;
}

bool NodeWindow::create(OutOfBand& node, MPI_Comm comm, File file, std::size_t limit) noexcept {
  const bool is_first = node.rank() == 0;
  ranks_ = node.ranks();
  limit = std::min<std::size_t>(limit, memory::available_shared() / 4);
  // Beyond the limit for files, making the segment larger ends the process by a signal. MPI's own header comes on top,
  // and the arenas' addresses.
  rlimit files{};
  if (getrlimit(RLIMIT_FSIZE, &files) == 0 && files.rlim_cur != RLIM_INFINITY)
    limit = std::min<std::size_t>(
        limit, files.rlim_cur > file.begin + (2 << 20) ? (files.rlim_cur - file.begin - (2 << 20)) / 5 * 4 : 0);
  node.broadcast(&limit, sizeof limit);
  limit_ = limit;
  map_words_ = limit / page_bytes / 64 + 1;
  const std::size_t tables =
      64 + static_cast<std::size_t>(ranks_) * sizeof(wait::Load) + 2 * map_words_ * sizeof(std::uint64_t);
  announcements_ = (tables + 63) / 64 * 64;
  constexpr std::size_t bucket_bytes = bucket_size * sizeof(Announcement);
  buckets_ = std::bit_floor(std::max<std::size_t>(limit / 256 / bucket_bytes, 16));
  first_page_ = (announcements_ + buckets_ * bucket_bytes + page_bytes - 1) / page_bytes;
  // Rank 0's view of what is free holds for all.
  std::uint64_t bytes = limit / page_bytes * page_bytes;  // to be used
  if (bytes < (first_page_ + 4) * page_bytes) bytes = 0;
  if (bytes == 0) return false;
  arena_bytes_ = DepositArena::bytes_for(bytes, ranks_);
  const std::size_t arenas = static_cast<std::size_t>(ranks_) * arena_bytes_;
  pages_ = (bytes - static_cast<std::size_t>(ranks_) * DepositArena::promised_of(arena_bytes_)) / page_bytes;
  bytes = pages_ * page_bytes + arenas;  // of addresses
  bool ok = false;
  if (file.descriptor < 0) {
    ok = allocate_by_mpi(comm, bytes, is_first);
  } else {
    // Nobody looks beyond the end of the file.
    ok = !is_first || map_file(file, bytes, true);
    ok = node.least(ok ? 1 : 0) != 0 && (is_first || map_file(file, bytes, false));
  }
  if (ok && is_first) {
    ok = memory::make_present(base_, first_page_ * page_bytes);
    if (ok) {
      std::memset(base_, 0, first_page_ * page_bytes);
      mark(Map::used, 0, first_page_, true);
      mark(Map::held, 0, first_page_, true);
      header()->held_pages = first_page_;
    }
  }
  if (node.least(ok ? 1 : 0) != 0) return true;
  free();
  return false;
}

void NodeWindow::free() noexcept {
  if (window_ != MPI_WIN_NULL) PMPI_Win_free(&window_);
  if (mapped_bytes_ != 0) munmap(base_, mapped_bytes_);
  mapped_bytes_ = 0;
  base_ = nullptr;
}

// A rank that dies with the lock takes its job with it; should it not, a second is enough to know.
bool NodeWindow::lock() const noexcept {
  const std::uint64_t begin = clock::monotonic_ns();
  std::uint32_t expected = 0;
  while (!header()->lock.compare_exchange_weak(expected, 1, std::memory_order_acquire, std::memory_order_relaxed)) {
    expected = 0;
    if (clock::monotonic_ns() - begin > 1'000'000'000u) return false;
    sched_yield();
  }
  return true;
}

void NodeWindow::unlock() const noexcept {
  header()->lock.store(0, std::memory_order_release);
}

void NodeWindow::mark(Map map, std::size_t first, std::size_t pages, bool value) noexcept {
  for (std::size_t page = first; page < first + pages; ++page) {
    const std::uint64_t bit = std::uint64_t{1} << (page % 64);
    value ? bitmap(map)[page / 64] |= bit : bitmap(map)[page / 64] &= ~bit;
  }
}

std::size_t NodeWindow::count(Map map) const noexcept {
  std::size_t marked = 0;
  for (std::size_t page = first_page_; page < pages_; ++page) marked += is_marked(map, page) ? 1 : 0;
  return marked;
}

// All that follows with the lock.
std::size_t NodeWindow::held_by_all() const noexcept {
  return header()->held_pages + header()->arena_pages;
}

// A quarter of what is free, counting what is held already.
std::size_t NodeWindow::most_held_pages() const noexcept {
  return (memory::available_shared() / page_bytes + held_by_all()) / 4;
}

// How many more pages may be held, beside those that arenas are promised.
std::size_t NodeWindow::room_for_pages() const noexcept {
  const std::size_t most = most_held_pages();
  const std::size_t taken = header()->held_pages + header()->spare_pages;
  return std::min(most - std::min(most, held_by_all()), pages_ - std::min(pages_, taken));
}

// Are `leave` bytes left for regions once `wanted` more pages are used, by a region or an arena?
bool NodeWindow::leaves(std::size_t wanted, std::size_t leave) const noexcept {
  const std::size_t used = count(Map::used) + header()->spare_pages;
  return used + wanted + (leave + page_bytes - 1) / page_bytes <= pages_ - first_page_;
}

// With the lock. The first of the pages is there: an offset, or -1.
std::int64_t NodeWindow::take_pages(std::size_t wanted, std::size_t leave) noexcept {
  if (leave != 0 && !leaves(wanted, leave)) return -1;
  std::size_t run = 0;
  std::size_t missing = 0;  // of the last `wanted` pages, not held
  std::size_t room = 0;     // how many may be; asked when needed
  bool asked = false;
  for (std::size_t page = first_page_; page < pages_; ++page) {
    if (is_marked(Map::used, page)) {
      run = missing = 0;
      continue;
    }
    missing += is_marked(Map::held, page) ? 0 : 1;
    if (++run < wanted) continue;
    if (run > wanted) missing -= is_marked(Map::held, page - wanted) ? 0 : 1;
    if (missing != 0 && !asked) {
      asked = true;
      room = room_for_pages();
    }
    if (missing > room) continue;
    const std::size_t first = page + 1 - wanted;
    if (!memory::make_present(base_ + first * page_bytes, page_bytes)) return -1;
    mark(Map::used, first, wanted, true);
    mark(Map::held, first, wanted, true);
    header()->held_pages += missing;
    return static_cast<std::int64_t>(first * page_bytes);
  }
  return -1;
}

std::int64_t NodeWindow::allocate(std::size_t bytes, int users, std::size_t leave) noexcept {
  if (!exists() || !lock()) return -1;
  const std::int64_t offset = take_pages(pages_for(bytes), leave);
  unlock();
  if (offset < 0) return -1;
  Prefix& prefix = *reinterpret_cast<Prefix*>(base_ + offset);
  prefix.key = 0;
  // Relaxed: the offset reaches the others through a message.
  prefix.users.store(static_cast<std::uint32_t>(users), std::memory_order_relaxed);
  return offset;
}

NodeWindow::Attached NodeWindow::attach(std::uint64_t key, std::span<const Wish> wishes) noexcept {
  if (!exists() || !lock()) return {-1, 0};
  Announcement* const begin = bucket(key);
  Announcement* const end = begin + bucket_size;
  std::int64_t offset = -1;
  std::size_t wish = 0;
  if (auto* const known = std::find_if(begin, end, [&](const Announcement& one) { return one.key == key; });
      known != end) {
    offset = known->offset;
    // Relaxed, as all below: ordered by the lock.
    Prefix& prefix = *reinterpret_cast<Prefix*>(base_ + offset);
    prefix.users.fetch_add(1, std::memory_order_relaxed);
    wish = prefix.wish;
  } else if (auto* const room = std::find_if(begin, end, [](const Announcement& one) { return one.key == 0; });
             room != end) {
    for (; wish < wishes.size() && offset < 0; ++wish)
      offset = take_pages(pages_for(wishes[wish].bytes), wishes[wish].leave);
    if (offset >= 0) {
      --wish;
      Prefix& prefix = *reinterpret_cast<Prefix*>(base_ + offset);
      prefix.users.store(1, std::memory_order_relaxed);
      prefix.key = key;
      prefix.wish = wish;
      prefix.agreement.store(0, std::memory_order_relaxed);
      *room = {key, offset};
    }
  }
  unlock();
  return {offset, wish};
}

bool NodeWindow::prepare_share(std::int64_t offset, std::size_t bytes, int rank, int ranks) noexcept {
  const std::size_t pages = pages_for(bytes);
  const std::size_t begin = pages * static_cast<std::size_t>(rank) / static_cast<std::size_t>(ranks);
  const std::size_t end = pages * static_cast<std::size_t>(rank + 1) / static_cast<std::size_t>(ranks);
  std::byte* const here = base_ + offset;
  // The first page is there since the count of users is.
  const std::size_t first = std::max<std::size_t>(begin, 1);
  if (first < end && !memory::make_present(here + first * page_bytes, (end - first) * page_bytes)) return false;
  const std::size_t zero_from = begin == 0 ? prefix_bytes : begin * page_bytes;
  if (begin < end) std::memset(here + zero_from, 0, end * page_bytes - zero_from);
  return true;
}

// With the lock, of pages that nobody uses any more but that are still marked so. Where the window is no file of the
// kernel's that can have holes, they stay.
void NodeWindow::give_back_to_system(std::size_t first, std::size_t pages) noexcept {
  const std::uintptr_t system_page = memory::page_bytes();
  const auto base = reinterpret_cast<std::uintptr_t>(base_);
  const std::uintptr_t from = (base + first * page_bytes + system_page - 1) / system_page * system_page;
  const std::uintptr_t to = (base + (first + pages) * page_bytes) / system_page * system_page;
  if (from >= to || madvise(reinterpret_cast<void*>(from), to - from, MADV_REMOVE) != 0) return;
  for (std::size_t page = (from - base) / page_bytes; page < (to - base) / page_bytes; ++page) {
    header()->held_pages -= is_marked(Map::held, page) ? 1 : 0;
    mark(Map::held, page, 1, false);
  }
}

void NodeWindow::release(std::int64_t offset, std::size_t bytes) noexcept {
  if (!exists() || offset < 0) return;
  Prefix& prefix = *reinterpret_cast<Prefix*>(base_ + offset);
  const std::uint64_t key = prefix.key;
  // Who attaches finds a region with users or none: there the count goes down under the lock.
  const bool is_announced = key != 0;
  if (is_announced && !lock()) return;  // the space stays taken, which harms nobody
  // Acquire and release: all users' last accesses come before the space is given away.
  const bool is_last = prefix.users.fetch_sub(1, std::memory_order_acq_rel) == 1;
  if (is_last && !is_announced && !lock()) return;
  if (is_last) {
    if (is_announced)
      for (Announcement* one = bucket(key); one != bucket(key) + bucket_size; ++one)
        if (one->key == key) one->key = 0;
    const std::size_t first = static_cast<std::size_t>(offset) / page_bytes;
    const std::size_t pages = pages_for(bytes);
    // Others have taken memory meanwhile: the program itself, say. To look costs 40 us, so the small ones stay for the
    // next communicator.
    if (pages >= 64 && held_by_all() > most_held_pages()) give_back_to_system(first, pages);
    mark(Map::used, first, pages, false);
  }
  if (is_last || is_announced) unlock();
}

std::size_t NodeWindow::region_bytes() const noexcept {
  return (pages_ - first_page_) * page_bytes;
}
std::size_t NodeWindow::arena_offset(int rank) const noexcept {
  return pages_ * page_bytes + static_cast<std::size_t>(rank) * arena_bytes_;
}
bool NodeWindow::populate(std::byte* begin, std::size_t bytes, bool promised) noexcept {
  const std::size_t pages = bytes / page_bytes;
  if (!lock()) return false;
  const std::size_t most = most_held_pages();
  // What is not promised leaves as much to flags as regions do that hold more than those, see replace.cpp.
  const bool allowed =
      promised ? most >= held_by_all() + pages : (leaves(pages, region_bytes() / 6) && room_for_pages() >= pages);
  const auto count = [&](std::uint64_t step) {
    header()->arena_pages += step;
    if (!promised) header()->spare_pages += step;
  };
  if (allowed) count(pages);
  unlock();
  if (!allowed) return false;
  if (memory::make_present(begin, bytes)) return true;
  if (lock()) {
    count(-std::uint64_t{pages});
    unlock();
  }
  return false;
}

}  // namespace papaya
