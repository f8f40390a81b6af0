// The node's window gives its regions back after their last user, and not before: also where pages are made present
// the way old kernels allow, and where the count of users has more than a byte.
#include "algorithms/transport/node_window.hpp"

#include <mpi.h>

#include <algorithm>
#include <cstdio>

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
  const std::int64_t offset = window.allocate(bytes, users);
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

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  papaya::NodeWindow window;
  check(window.create(MPI_COMM_WORLD, std::size_t{1} << 20), "there is a window", 0);
  if (window.exists())
    for (const int users : {1, 2, 255, 256, 257, 600}) use(window, users);
  window.free();
  MPI_Finalize();
  return failures == 0 ? 0 : 1;
}
