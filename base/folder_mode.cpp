#include "base/folder_mode.hpp"

#include <sys/stat.h>

#include <new>

namespace papaya {

void set_mode_by_folder(int file, const std::string& path, unsigned mode) noexcept try {
  struct stat folder {};
  struct stat now {};
  const std::size_t slash = path.find_last_of('/');
  const std::string name = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  if (stat(name.c_str(), &folder) != 0 || fstat(file, &now) != 0) return;
  const mode_t wanted = folder.st_mode & mode & 0777;
  if ((now.st_mode & 0777) != wanted) fchmod(file, wanted);
} catch (const std::bad_alloc&) {
}

}  // namespace papaya
