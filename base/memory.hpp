// How much memory may still be taken: of the machine, of /dev/shm, and within the limits of the control groups (cgroup
// v1 and v2) that the process is in. Memory that a limit denies does not fail: the kernel ends a process of the group.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace papaya::memory {

inline constexpr std::uint64_t unlimited = ~std::uint64_t{0};

class ControlGroups {
 public:
  // Of the process whose folder in /proc this is.
  explicit ControlGroups(const std::string& process_folder);

  // Bytes that all of them still allow; what the kernel can take back from files counts as free.
  std::uint64_t left() const noexcept;

 private:
  struct Group {  // the names of its files; a limit that there is not has none
    std::string limit;
    std::string soft_limit;  // beyond it the kernel slows the group down
    std::string used;
    std::string statistics;
    const char* files[2];  // rows of the statistics: what the kernel can take back
  };
  void add(const std::string& mount, const std::string& mount_root, const std::string& path, bool is_v2);

  std::vector<Group> groups_;  // innermost first, each with those around it
};

// Bytes that can be had without swapping.
std::uint64_t available() noexcept;

// The same, in /dev/shm.
std::uint64_t available_shared() noexcept;

std::uintptr_t page_bytes() noexcept;  // the system's

// Asks the kernel for the pages of memory, of which nobody uses those that are not there yet. False where a touch would
// end the process: a full /dev/shm.
bool make_present(std::byte* begin, std::size_t bytes) noexcept;

}  // namespace papaya::memory
