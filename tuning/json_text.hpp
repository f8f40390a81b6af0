// JSON with the place of every value in its text, so that a problem is reported where it stands. What parses is
// nlohmann-json, which throws nothing here; whatever the text is, time and memory are bounded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace papaya::tuning::json {

struct Member;

struct Value {
  enum class Kind : std::uint8_t { null, boolean, whole, number, string, array, object };
  Kind kind = Kind::null;
  bool truth = false;
  std::size_t at = 0;       // where it begins in the text
  std::uint64_t whole = 0;  // a number that is one, not negative
  double number = 0;        // of those, too
  std::string text;
  std::vector<Value> items;
  std::vector<Member> members;  // in their order; a name may come twice
};

struct Member {
  std::string name;
  std::size_t at = 0;
  Value value;
};

inline constexpr std::size_t deepest = 8;  // objects and arrays inside each other
inline constexpr std::size_t most_values = 1 << 18;

// False if the text is not JSON, or more than that; then `problem` says what is wrong at `at`.
bool parse(std::string_view text, Value& root, std::string& problem, std::size_t& at);

// Both from 1, the column in characters.
struct Place {
  std::size_t line = 1;
  std::size_t column = 1;
};
Place place_of(std::string_view text, std::size_t at) noexcept;

// Somebody's text, fit for a line on a terminal.
std::string shown(std::string_view text);

}  // namespace papaya::tuning::json
