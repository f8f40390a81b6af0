// papaya run: preloads libpapaya.so into one process and becomes the program.
#include <dlfcn.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "tools/command.hpp"

namespace papaya {

namespace {

// The library lies beside the command (a build folder) or in the library folder of the same prefix.
std::string find_library() {
  std::error_code error;
  const std::filesystem::path command = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return "";
  const std::filesystem::path folder = command.parent_path();
  for (const std::filesystem::path& candidate :
       {folder / "libpapaya.so", folder.parent_path() / PAPAYA_LIBDIR / "libpapaya.so"})
    if (std::filesystem::exists(candidate, error)) return std::filesystem::canonical(candidate, error).string();
  return "";
}

int run(const std::vector<std::string>& words) {
  const std::string library = find_library();
  if (library.empty()) {
    std::fprintf(stderr, "papaya: libpapaya.so is neither beside this command nor in the library folder; install both.\n");
    return exit_failed;
  }
  if (library.find_first_of(" :") != library.npos) {
    std::fprintf(stderr, "papaya: %s: the dynamic loader takes no library to preload whose path has a space or a colon; "
                 "install papaya elsewhere.\n", library.c_str());
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
  return failure == ENOENT ? 127 : 126;  // as a shell would
}

}  // namespace

void add_run(CLI::App& app, int& exit_code) {
  CLI::App* const command = app.add_subcommand("run", "run an MPI program with papaya: mpirun -n N papaya run PROGRAM [ARGUMENTS...]");
  command->footer("Settings come from the environment: papaya info --env lists them.");
  command->prefix_command();
  command->callback([command, &exit_code] {
    const std::vector<std::string> words = command->remaining();
    if (words.empty()) throw CLI::RequiredError("PROGRAM");
    if (words.front().front() == '-') throw CLI::ExtrasError(words);  // no option of ours, and no program's name
    exit_code = run(words);
  });
}

}  // namespace papaya
