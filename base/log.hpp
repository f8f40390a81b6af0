// Messages to the user on standard error: "papaya: ..." with one sentence. Most come from rank 0 only.
#pragma once

#include <cstdint>
#include <string_view>

namespace papaya::log {

enum class Level : std::uint8_t { error, warn, info, debug };

// As PAPAYA_LOG names it.
constexpr Level level_of(std::string_view name) noexcept {
  return name == "error" ? Level::error : name == "info" ? Level::info : name == "debug" ? Level::debug : Level::warn;
}
void set_level(Level level) noexcept;
Level level() noexcept;

// Writes "papaya: MESSAGE" as one line with a single write(2), so that lines of several ranks do not mix.
void write(Level level, std::string_view message) noexcept;

inline void error(std::string_view message) noexcept {
  write(Level::error, message);
}
inline void warn(std::string_view message) noexcept {
  write(Level::warn, message);
}
inline void info(std::string_view message) noexcept {
  write(Level::info, message);
}
inline void debug(std::string_view message) noexcept {
  write(Level::debug, message);
}

}  // namespace papaya::log
