// What other programs and libraries say, asked in a process of its own.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "tools/doctor/checks.hpp"

namespace papaya::doctor {

namespace {
constexpr int longest_command_ms = 5000;
}  // namespace

bool in_child(const std::function<void(int out)>& act, std::string& output) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return false;
  const pid_t child = fork();
  if (child < 0) {
    close(ends[0]);
    close(ends[1]);
    return false;
  }
  if (child == 0) {
    act(ends[1]);
    _exit(126);
  }
  close(ends[1]);
  output.clear();
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(longest_command_ms);
  for (;;) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now()).count();
    pollfd ready{ends[0], POLLIN, 0};
    if (left <= 0 || poll(&ready, 1, static_cast<int>(left)) <= 0) {
      kill(child, SIGKILL);
      break;
    }
    char part[4096];
    const ssize_t count = read(ends[0], part, sizeof part);
    if (count <= 0) break;
    output.append(part, static_cast<std::size_t>(count));
  }
  close(ends[0]);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

bool capture(const std::vector<std::string>& words, std::string& output) {
  return in_child(
      [&](int out) {
        dup2(out, STDOUT_FILENO);
        dup2(out, STDERR_FILENO);
        const int none = open("/dev/null", O_RDONLY);
        if (none >= 0) dup2(none, STDIN_FILENO);
        unsetenv("LD_PRELOAD");
        std::vector<char*> arguments;
        for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
        arguments.push_back(nullptr);
        execvp(arguments[0], arguments.data());
      },
      output);
}

// As execvp would find it; empty if it would not.
std::string find_program(const std::string& name) {
  if (name.find('/') != name.npos) return name;
  const char* const path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "/bin:/usr/bin" : path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    const std::string candidate = (folder.empty() ? "." : folder) + "/" + name;
    if (access(candidate.c_str(), X_OK) == 0 && !std::filesystem::is_directory(candidate)) return candidate;
  }
  return "";
}

}  // namespace papaya::doctor
