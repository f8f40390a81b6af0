#include "interpose/preload_children.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>

namespace papaya::preload {

namespace {

// A shell may bring functions of its own under the names getenv and unsetenv (bash does), which are not ready
// yet when this library is initialised; and it reads the environment it was started with, so that is what is
// changed.
char* find_variable(const char* name) {
  const std::size_t length = strlen(name);
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry)
    if (strncmp(*entry, name, length) == 0 && (*entry)[length] == '=') return *entry + length + 1;
  return nullptr;
}

void remove_variable(const char* name) {
  const std::size_t length = strlen(name);
  char** out = environ;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry)
    if (strncmp(*entry, name, length) != 0 || (*entry)[length] != '=') *out++ = *entry;
  if (out != nullptr) *out = nullptr;
}

}  // namespace

Start leave_children_alone() {
  const char* const marked = find_variable("PAPAYA_RUN_PID");
  if (marked == nullptr) return Start::preloaded;
  if (strtol(marked, nullptr, 10) == static_cast<long>(getpid())) return Start::run;
  remove_variable("PAPAYA_RUN_PID");
  char* const preload = find_variable("LD_PRELOAD");
  Dl_info self;
  if (preload == nullptr || dladdr(reinterpret_cast<const void*>(&leave_children_alone), &self) == 0)
    return Start::child_of_run;
  // Edited in place: it only gets shorter.
  char* out = preload;
  for (const char* item = preload; *item != '\0';) {
    const std::size_t length = strcspn(item, ": ");
    const std::size_t separators = strspn(item + length, ": ");
    const bool ours = strlen(self.dli_fname) == length && strncmp(item, self.dli_fname, length) == 0;
    if (!ours && length != 0) {
      if (out != preload) *out++ = ':';
      memmove(out, item, length);
      out += length;
    }
    item += length + separators;
  }
  *out = '\0';
  if (preload[0] == '\0') remove_variable("LD_PRELOAD");
  return Start::child_of_run;
}

}  // namespace papaya::preload
