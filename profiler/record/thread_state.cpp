#include "profiler/record/thread_state.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace papaya {

namespace {

// The beginning of a file of /proc.
template <std::size_t capacity>
std::string_view read_of(std::int32_t thread, const char* name, char (&text)[capacity]) noexcept {
  char path[64];
  std::snprintf(path, sizeof path, "/proc/self/task/%d/%s", thread, name);
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  const ssize_t bytes = file < 0 ? 0 : read(file, text, sizeof text - 1);
  if (file >= 0) close(file);
  text[std::max<ssize_t>(bytes, 0)] = '\0';
  return {text, static_cast<std::size_t>(std::max<ssize_t>(bytes, 0))};
}

// What follows a word of its status.
std::optional<std::uint64_t> status_of(std::int32_t thread, const char* word, int base) noexcept {
  char text[4096];
  read_of(thread, "status", text);
  const char* const found = std::strstr(text, word);
  if (found == nullptr) return std::nullopt;
  return std::strtoull(found + std::strlen(word), nullptr, base);
}

}  // namespace

std::optional<Sleep> sleep_of(std::int32_t thread) noexcept {
  char text[512];
  const std::string_view said = read_of(thread, "syscall", text);
  if (said.empty() || said[0] < '0' || said[0] > '9') return std::nullopt;  // "running"
  // The number, six arguments, stack pointer, and the address.
  const std::size_t address = said.find_last_of(' ');
  const std::size_t stack = address == said.npos || address == 0 ? said.npos : said.find_last_of(' ', address - 1);
  if (stack == said.npos) return std::nullopt;
  return Sleep{std::strtol(text, nullptr, 10), std::strtoull(text + stack, nullptr, 16),
               std::strtoull(text + address, nullptr, 16)};
}

std::optional<std::uint64_t> sleeps_of(std::int32_t thread) noexcept {
  return status_of(thread, "\nvoluntary_ctxt_switches:", 10);
}

std::uint64_t blocked_signals(std::int32_t thread) noexcept {
  return status_of(thread, "\nSigBlk:", 16).value_or(0);
}

}  // namespace papaya
