// Why a call gets its algorithm, for people: every rule that the choice comes to, and what speaks against those that it
// passes over.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tuning/selection.hpp"

namespace papaya {

// `settings` and `file`, its path, are those that the selection was made of.
std::string explain(const tuning::Selection& selection, const Settings& settings, std::string_view file,
                    Collective collective, std::uint64_t bytes, const tuning::Facts& facts);

}  // namespace papaya
