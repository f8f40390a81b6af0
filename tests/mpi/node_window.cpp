// The node's window gives its regions back after their last user, and not before: also where pages are made present
// the way old kernels allow, and where the count of users has more than a byte.
// With `small`, on a /dev/shm of 64 MiB and with two ranks, of which one alone would get memory that is not shared: it
// holds at most a quarter of what is free, and less when others take more.
#include "algorithms/transport/mpi/node_window.hpp"

#include <fcntl.h>
#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string_view>

#include "algorithms/transport/mpi/mpi_out_of_band.hpp"

namespace {

int failures = 0;

void check(bool good, const char* what, int users) {
  if (good) return;
  std::printf("FAILED with %d users: %s\n", users, what);
  ++failures;
}

void use(papaya::NodeWindow& window, int users) {
  constexpr std::size_t bytes = 100'000;
  const std::size_t before = window.used_pages();
  const std::int64_t offset = window.allocate(bytes, users, 0);
  check(offset >= 0, "there is space", users);
  if (offset < 0) return;
  const std::size_t taken = window.used_pages();
  std::byte* const region = window.region(offset);
  std::fill_n(region, 1000, std::byte{7});  // as an earlier user may have left it
  for (int user = 0; user < users; ++user)
    check(window.prepare_share(offset, bytes, user, users), "its pages are there", users);
  check(std::all_of(region, region + bytes, [](std::byte one) { return one == std::byte{0}; }), "it is zero", users);
  for (int user = 1; user < users; ++user) window.release(offset, bytes);
  check(window.used_pages() == taken, "it is kept for the last user", users);
  window.release(offset, bytes);
  check(window.used_pages() == before, "it is given back by the last user", users);
}

std::int64_t take(papaya::NodeWindow& window, std::size_t bytes) {
  const std::int64_t offset = window.allocate(bytes, 1, 0);
  if (offset >= 0) check(window.prepare_share(offset, bytes, 0, 1), "its pages are there", 1);
  return offset;
}

void share_with_others(papaya::NodeWindow& window) {
  constexpr std::size_t mib = std::size_t{1} << 20;
  check(window.limit() <= 16 * mib && window.limit() >= 12 * mib, "its limit is a quarter of what is free", 1);
  check(window.held_pages() == 0, "it holds nothing that is not used", 1);
  const std::int64_t small = take(window, 3 * mib);
  const std::int64_t large = take(window, 7 * mib);
  check(small >= 0 && large >= 0 && window.held_pages() * 4096 < 11 * mib, "it holds what is used", 1);
  window.release(large, 7 * mib);
  check(window.held_pages() * 4096 > 9 * mib, "it keeps what nobody else wants", 1);
  const std::int64_t again = take(window, 7 * mib);
  check(again == large, "it takes that again", 1);
  const char* const name = "/dev/shm/papaya-test-other";
  const int other = open(name, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
  check(posix_fallocate(other, 0, 36 * mib) == 0, "there is room for others", 1);
  window.release(again, 7 * mib);
  check(window.held_pages() * 4096 < 4 * mib, "it gives back what is too much now", 1);
  check(take(window, 7 * mib) < 0, "it does not take that again", 1);
  check(posix_fallocate(other, 36 * mib, 8 * mib) == 0, "what it gave back is there for others", 1);
  close(other);
  unlink(name);
  const std::int64_t later = take(window, 7 * mib);
  check(later >= 0, "it takes what is free again", 1);
  window.release(later, 7 * mib);
  window.release(small, 3 * mib);
  // Arenas and regions share memory.
  std::byte* const arena = window.base() + window.arena_offset(0);
  const std::size_t most = window.region_bytes() / 2;
  const std::int64_t all = take(window, most);
  check(all >= 0, "regions have half of what is theirs", 1);
  check(window.populate(arena, mib / 4, false), "arenas take what regions leave", 1);
  check(!window.populate(arena + mib, 2 * mib, false), "arenas do not take what regions hold", 1);
  check(take(window, most - 65536) < 0, "regions do not take what arenas hold", 1);
  check(window.populate(arena + 2 * mib, mib / 2, true), "arenas have what they are promised", 1);
  window.release(all, most);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  papaya::NodeWindow window;
  const bool is_small = argc > 1 && std::string_view(argv[1]) == "small";
  papaya::MpiOutOfBand all(MPI_COMM_WORLD);
  const int rank = all.rank();
  check(window.create(all, MPI_COMM_WORLD, {}, std::size_t{is_small ? 64u : 1u} << 20), "there is a window", 0);
  if (window.exists() && is_small) {
    if (rank == 0) share_with_others(window);
    MPI_Barrier(MPI_COMM_WORLD);
  } else if (window.exists())
    for (const int users : {1, 2, 255, 256, 257, 600}) use(window, users);
  window.free();
  MPI_Finalize();
  return failures == 0 ? 0 : 1;
}
