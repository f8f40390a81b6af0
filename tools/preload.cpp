#include "tools/preload.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tools/command.hpp"

namespace papaya {

std::string find_beside(const std::filesystem::path& name, const std::filesystem::path& installed_folder) {
  std::error_code error;
  const std::filesystem::path command = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return "";
  const std::filesystem::path folder = command.parent_path();
  for (const std::filesystem::path& candidate : {folder / name, folder.parent_path() / installed_folder / name})
    if (std::filesystem::exists(candidate, error)) return std::filesystem::canonical(candidate, error).string();
  return "";
}

std::string find_library() {
  const std::string library = find_beside("libpapaya.so", PAPAYA_LIBDIR);
  if (library.empty())
    std::fprintf(stderr,
                 "papaya: libpapaya.so is neither beside this command nor in the library folder; install both.\n");
  return library;
}

int exec_preloaded(const std::string& library, const std::vector<std::string>& words) {
  if (library.find_first_of(" :") != library.npos) {
    std::fprintf(stderr,
                 "papaya: %s: the dynamic loader takes no library to preload whose path has a space or a colon; "
                 "install papaya elsewhere.\n",
                 library.c_str());
    return exit_failed;
  }
  const char* const others = std::getenv("LD_PRELOAD");
  const std::string preload = others == nullptr || *others == '\0' ? library : library + ":" + others;
  setenv("LD_PRELOAD", preload.c_str(), 1);
  // libpapaya.so stays with this process, also through further exec calls, and leaves its children alone.
  setenv("PAPAYA_RUN_PID", std::to_string(getpid()).c_str(), 1);
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  execvp(arguments[0], arguments.data());
  const int failure = errno;
  std::fprintf(stderr, "papaya: cannot run %s: %s\n", arguments[0], std::strerror(failure));
  return failure == ENOENT ? 127 : 126;
}

}  // namespace papaya
