// Why a call ran natively: the rows of base/reasons.def.
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

// What a reader recognises a reason by: sentences may be reworded, and another papaya may number reasons otherwise.
inline constexpr auto reason_ids = std::to_array<std::string_view>({
#define PAPAYA_REASON(enumerator, ...) #enumerator,
#include "base/reasons.def"
#undef PAPAYA_REASON
});

// What a record has room for.
static_assert([] {
  for (const std::string_view name : reason_names)
    if (name.size() > 63) return false;
  for (const std::string_view id : reason_ids)
    if (id.size() > 31) return false;
  return true;
}());

constexpr std::string_view name_of(Reason reason) {
  return reason_names[static_cast<std::size_t>(reason)];
}
constexpr std::string_view id_of(Reason reason) {
  return reason_ids[static_cast<std::size_t>(reason)];
}

// What a record calls a reason, in today's words.
constexpr std::string_view current_reason_name(std::string_view name) {
  for (std::size_t i = 0; i < reason_names.size(); ++i)
    if (!name.empty() && name == old_reason_names[i]) return reason_names[i];
  return name;
}

}  // namespace papaya
