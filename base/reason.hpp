// Why a call ran natively: the rows of base/reasons.def. The trace stores the number, the report prints the sentence.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace papaya {

enum class Reason : std::uint8_t {
#define PAPAYA_REASON(enumerator, ...) enumerator,
#include "base/reasons.def"
#undef PAPAYA_REASON
};

inline constexpr auto reason_names = std::to_array<std::string_view>({
#define PAPAYA_REASON(enumerator, sentence, ...) sentence,
#include "base/reasons.def"
#undef PAPAYA_REASON
});

inline constexpr auto old_reason_names = std::to_array<std::string_view>({
#define PAPAYA_REASON(enumerator, sentence, ...) std::string_view{__VA_ARGS__},
#include "base/reasons.def"
#undef PAPAYA_REASON
});

static_assert([] {
  for (const std::string_view name : reason_names)
    if (name.size() > 63) return false;  // what a record has room for
  return true;
}());

constexpr std::string_view name_of(Reason reason) {
  return reason_names[static_cast<std::size_t>(reason)];
}

// What a record calls a reason, in today's words.
constexpr std::string_view current_reason_name(std::string_view name) {
  for (std::size_t i = 0; i < reason_names.size(); ++i)
    if (!name.empty() && name == old_reason_names[i]) return reason_names[i];
  return name;
}

}  // namespace papaya
