// The sentence of a rank that is about to abort the job.
#pragma once

#include <string>

namespace papaya::log {

// An error, and time for the launcher to read it.
void last_words(const std::string& sentence) noexcept;

}  // namespace papaya::log
