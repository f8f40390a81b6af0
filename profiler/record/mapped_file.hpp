// A new file that is mapped and written through the mapping.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace papaya {

// Whether other machines may have the file. What is written through a mapping gets to a network file system's server
// within half a minute, after the mapping has ended, too.
bool is_on_network(int file) noexcept;

struct MappedFile {
  void* base = nullptr;
  std::size_t bytes = 0;
  bool is_on_network = false;
};

struct FilePart {
  std::size_t offset;
  std::size_t bytes;
};

// Creates `path` with so many zero bytes, reserved, so that a full disk is found now and not by a signal later. No base
// on failure, with what the operating system said in `error`. Its pages may fail later (failed_pages.hpp). The page
// faults of the parts `in_use`, in bytes, are taken now, without writing to them where that would then go over a
// network.
MappedFile create_mapped(const std::string& path, std::size_t bytes, std::string& error,
                         std::span<const FilePart> in_use = {}) noexcept;

// Where the file is on a network: waits until who opens it on another machine from now on sees what is in it.
void write_out(const MappedFile& file) noexcept;
// The same of a part of any mapping, wherever the file is.
void write_out(void* begin, std::size_t bytes) noexcept;

// Ends a mapping. That is not enough for readers on other machines.
void unmap(void* base, std::size_t bytes) noexcept;

}  // namespace papaya
