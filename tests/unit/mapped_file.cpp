#include "profiler/record/mapped_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

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

}  // namespace papaya
