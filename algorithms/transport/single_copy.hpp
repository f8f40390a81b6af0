// Another process's memory on the same node, read in one copy (process_vm_readv). Whether the kernel permits it is
// probed once and agreed on by all ranks of the node; a single read may fail all the same (memory of a device, say),
// and then the reader says so and the data goes through the window.
#pragma once

#include <sys/types.h>

#include <cstddef>

namespace papaya {

// Reads `bytes` at `address` of process `pid`. False if not all of them could be read.
using ReadMemory = bool (*)(pid_t pid, const void* address, void* to, std::size_t bytes);

bool read_memory(pid_t pid, const void* address, void* to, std::size_t bytes) noexcept;

}  // namespace papaya
