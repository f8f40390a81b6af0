#include "profiler/record/mapped_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <string>

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

TEST_CASE("mapped_file: the folder says who may read it, not the umask of the moment") {
  const mode_t before = umask(0022);
  char folder[] = "/tmp/papaya-mapped-XXXXXX";
  REQUIRE(mkdtemp(folder) != nullptr);
  CHECK(chmod(folder, 0750) == 0);
  umask(0777);
  std::string error;
  const std::string path = std::string(folder) + "/record";
  const MappedFile file = create_mapped(path, 4096, error);
  umask(before);
  REQUIRE(file.base != nullptr);
  struct stat status {};
  CHECK(stat(path.c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0640);
  unmap(file.base, file.bytes);
  unlink(path.c_str());
  rmdir(folder);
}

TEST_CASE("mapped_file: parts in use are in memory, and of zeros") {
  constexpr std::size_t page = 4096;
  constexpr std::size_t pages = 300;
  // More than one write takes, and one that ends within a page.
  constexpr FilePart parts[] = {{page, 150 * page}, {200 * page, 3 * page + 100}};
  char folder[] = "/tmp/papaya-mapped-XXXXXX";
  REQUIRE(mkdtemp(folder) != nullptr);
  const std::string path = std::string(folder) + "/record";
  std::string error;
  const MappedFile file = create_mapped(path, pages * page, error, parts);
  REQUIRE(file.base != nullptr);
  struct stat status {};
  CHECK(stat(path.c_str(), &status) == 0);
  CHECK(status.st_size == pages * page);
  unsigned char is_there[pages];
  REQUIRE(mincore(file.base, file.bytes, is_there) == 0);
  const auto* const bytes = static_cast<const unsigned char*>(file.base);
  for (const FilePart& part : parts) {
    for (std::size_t i = part.offset / page; i * page < part.offset + part.bytes; ++i) CHECK((is_there[i] & 1) != 0);
    CHECK(std::count(bytes + part.offset, bytes + part.offset + part.bytes, 0) ==
          static_cast<std::ptrdiff_t>(part.bytes));
  }
  unmap(file.base, file.bytes);
  unlink(path.c_str());
  rmdir(folder);
}

}  // namespace papaya
