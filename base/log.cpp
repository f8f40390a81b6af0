#include "base/log.hpp"

#include <unistd.h>

#include <atomic>
#include <cstring>

namespace papaya::log {

namespace {
std::atomic<Level> threshold{Level::warn};  // relaxed: a message more or less does not matter
}

void set_level(Level level) noexcept {
  threshold.store(level, std::memory_order_relaxed);
}
Level level() noexcept {
  return threshold.load(std::memory_order_relaxed);
}

void write(Level level, std::string_view message) noexcept {
  if (level > threshold.load(std::memory_order_relaxed)) return;
  char line[1024];
  constexpr std::string_view prefix = "papaya: ";
  std::memcpy(line, prefix.data(), prefix.size());
  const std::size_t length =
      message.size() < sizeof line - prefix.size() - 1 ? message.size() : sizeof line - prefix.size() - 1;
  std::memcpy(line + prefix.size(), message.data(), length);
  line[prefix.size() + length] = '\n';
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line, prefix.size() + length + 1);
}

}  // namespace papaya::log
