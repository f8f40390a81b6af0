#include "interpose/preload_filter.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>

#include "base/program_filter.hpp"
#include "interpose/preload_aside.hpp"

namespace papaya::preload {

namespace {

constexpr std::size_t longest = 64 << 10;  // of what is looked at; a longer command line is cut

// The file that this process runs, then its arguments: "/usr/bin/python3.11 train.py --epochs 3".
void read_program(char (&text)[longest]) {
  const ssize_t path = readlink("/proc/self/exe", text, longest - 1);
  std::size_t length = path > 0 ? static_cast<std::size_t>(path) : 0;
  const int file = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
  bool is_first = true;  // the name it was called by, for which the file's stands
  for (char part[4096]; file >= 0;) {
    const ssize_t count = read(file, part, sizeof part);
    if (count <= 0) break;
    for (ssize_t i = 0; i < count && length + 1 < longest; ++i) {
      if (part[i] == '\0') is_first = false;
      if (!is_first) text[length++] = part[i] == '\0' ? ' ' : part[i];
    }
  }
  if (file >= 0) close(file);
  if (length > 0 && text[length - 1] == ' ') --length;  // every argument ends with a zero
  text[length] = '\0';
}

}  // namespace

bool is_left_out() {
  const char* const include = getenv("PAPAYA_INCLUDE");
  const char* const exclude = getenv("PAPAYA_EXCLUDE");
  if (include == nullptr && exclude == nullptr) return false;
  static char program[longest];
  read_program(program);
  const char* const variable = program_filter::left_out_by(include, exclude, program);
  if (variable == nullptr) return false;
  if (strcmp(variable, "PAPAYA_INCLUDE") == 0 && !program_filter::is_expression(include))
    stand_aside("PAPAYA_INCLUDE=", include,
                ": must be an extended regular expression. Until it is one, papaya leaves out every program that "
                "LD_PRELOAD brings it into: every call goes straight to MPI, nothing is recorded.");
  else
    stand_aside_by_request(variable, " leaves this program out");
  return true;
}

}  // namespace papaya::preload
