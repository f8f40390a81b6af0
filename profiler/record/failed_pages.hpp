// Pages of mapped files that the file system does not give any more: its server has gone, the file was cut short, the
// disk cannot read. To touch one is SIGBUS, which would end the program for the sake of its record. Here such a page is
// replaced by an empty one, and the record is no longer whole.
#pragma once

#include <cstddef>
#include <cstdint>

namespace papaya::failed_pages {

// From now on the pages of a mapping are replaced where they fail; those of the first few thousand mappings. The first
// one sets the handler of SIGBUS, which passes on to the one before it whatever is not about these pages. A program
// that sets its own later has SIGBUS to itself.
void watch(void* begin, std::size_t bytes) noexcept;

// Before it is unmapped.
void forget(void* begin) noexcept;

// How many have been replaced.
std::uint64_t count() noexcept;

// Sets the handler of before, unless the program has set another one meanwhile.
void give_signal_back() noexcept;

}  // namespace papaya::failed_pages
