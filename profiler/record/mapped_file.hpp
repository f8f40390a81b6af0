// A new file that is mapped and written through the mapping.
#pragma once

#include <cstddef>
#include <string>

namespace papaya {

// Creates `path` with so many zero bytes, reserved, so that a full disk is found now and not by a signal later. Null on
// failure, with what the operating system said in `error`. Its pages may fail later (failed_pages.hpp).
void* create_mapped(const std::string& path, std::size_t bytes, std::string& error) noexcept;

// Ends a mapping that create_mapped() has made.
void unmap(void* base, std::size_t bytes) noexcept;

// Takes the page faults of a part now. Only a hint.
void populate(void* begin, std::size_t bytes) noexcept;

}  // namespace papaya
