#include "profiler/record/mapped_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/catch.hpp"

namespace papaya {

TEST_CASE("mapped_file: what is not known to be of one machine alone may be on a network") {
  const int in_memory = memfd_create("file", MFD_CLOEXEC);  // tmpfs
  const int other = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
  CHECK_FALSE(is_on_network(in_memory));
  CHECK(is_on_network(other));
  CHECK(is_on_network(-1));
  close(in_memory);
  close(other);
}

}  // namespace papaya
