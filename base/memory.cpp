#include "base/memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <fstream>
#include <limits>
#include <new>
#include <optional>
#include <sstream>
#include <string_view>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

namespace papaya::memory {

namespace {

// The number that a file begins with; none if there is no such file, or it says "max".
std::optional<std::uint64_t> number_in(const std::string& path) noexcept {
  std::FILE* const file = std::fopen(path.c_str(), "re");
  if (file == nullptr) return std::nullopt;
  unsigned long long number = 0;
  const bool is_number = std::fscanf(file, "%llu", &number) == 1;
  std::fclose(file);
  return is_number ? std::optional<std::uint64_t>(number) : std::nullopt;
}

// The sum of two rows of a file of names and numbers.
std::uint64_t sum_in(const std::string& path, std::string_view first, std::string_view second) noexcept {
  std::FILE* const file = std::fopen(path.c_str(), "re");
  if (file == nullptr) return 0;
  char name[64];
  unsigned long long number = 0;
  std::uint64_t sum = 0;
  while (std::fscanf(file, "%63s %llu", name, &number) == 2)
    if (name == first || name == second) sum += number;
  std::fclose(file);
  return sum;
}

// Is `word` one of a list with commas?
bool lists(std::string_view list, std::string_view word) {
  while (!list.empty()) {
    const std::size_t end = std::min(list.find(','), list.size());
    if (list.substr(0, end) == word) return true;
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return false;
}

std::uint64_t available_on_machine() noexcept {
  std::FILE* const file = std::fopen("/proc/meminfo", "re");
  if (file == nullptr) return unlimited;
  char line[256];
  unsigned long long kilobytes = unlimited >> 10;
  while (std::fgets(line, sizeof line, file) != nullptr)
    if (std::sscanf(line, "MemAvailable: %llu kB", &kilobytes) == 1) break;
  std::fclose(file);
  return std::uint64_t{kilobytes} << 10;
}

}  // namespace

ControlGroups::ControlGroups(const std::string& process_folder) {
  // HIERARCHY:CONTROLLERS:PATH; version 2 has no controllers there.
  std::optional<std::string> paths[2];
  std::ifstream membership(process_folder + "/cgroup");
  for (std::string line; std::getline(membership, line);) {
    const std::size_t controllers = line.find(':');
    const std::size_t path = controllers == std::string::npos ? controllers : line.find(':', controllers + 1);
    if (path == std::string::npos) continue;
    const std::string_view names = std::string_view(line).substr(controllers + 1, path - controllers - 1);
    if (names.empty() || lists(names, "memory")) paths[names.empty() ? 1 : 0] = line.substr(path + 1);
  }
  // ID PARENT DEVICE ROOT MOUNT OPTIONS [FIELD...] - TYPE SOURCE SUPER_OPTIONS
  std::ifstream mounts(process_folder + "/mountinfo");
  for (std::string line; std::getline(mounts, line);) {
    const std::size_t dash = line.find(" - cgroup");
    if (dash == std::string::npos) continue;
    std::string ignored, root, mount, type, source, options;
    std::istringstream(line) >> ignored >> ignored >> ignored >> root >> mount;
    std::istringstream(line.substr(dash + 3)) >> type >> source >> options;
    const bool is_v2 = type == "cgroup2";
    if ((is_v2 || lists(options, "memory")) && paths[is_v2 ? 1 : 0]) add(mount, root, *paths[is_v2 ? 1 : 0], is_v2);
  }
}

void ControlGroups::add(const std::string& mount, const std::string& mount_root, const std::string& path, bool is_v2) {
  // A container may see only its part of the tree, under the path that it has outside.
  std::string below = mount_root == "/" ? path : "";
  if (mount_root != "/" && path.starts_with(mount_root)) below = path.substr(mount_root.size());
  if (below.starts_with("/..")) below.clear();
  while (!below.empty() && below.back() == '/') below.pop_back();
  for (;;) {
    const std::string folder = mount + below + "/memory.";
    if (is_v2)
      groups_.push_back(
          {folder + "max", folder + "high", folder + "current", folder + "stat", {"inactive_file", "active_file"}});
    else
      groups_.push_back({folder + "limit_in_bytes",
                         "",
                         folder + "usage_in_bytes",
                         folder + "stat",
                         {"total_inactive_file", "total_active_file"}});
    if (below.empty()) return;
    below.erase(below.rfind('/'));
  }
}

std::uint64_t ControlGroups::left() const noexcept {
  std::uint64_t least = unlimited;
  for (const Group& group : groups_) {
    const std::uint64_t limit =
        std::min(number_in(group.limit).value_or(unlimited), number_in(group.soft_limit).value_or(unlimited));
    // Version 1 says "no limit" by the largest number of pages there can be.
    if (limit >= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()) / 2) continue;
    const std::uint64_t used = number_in(group.used).value_or(0);
    const std::uint64_t files = sum_in(group.statistics, group.files[0], group.files[1]);
    const std::uint64_t kept = used - std::min(used, files);
    least = std::min(least, limit - std::min(limit, kept));
  }
  return least;
}

std::uint64_t available() noexcept {
  try {
    // Read once: the process is in its groups before it starts.
    static const ControlGroups groups("/proc/self");
    return std::min(available_on_machine(), groups.left());
  } catch (const std::bad_alloc&) {
    return 0;
  }
}

std::uint64_t available_shared() noexcept {
  struct statvfs info {};
  if (statvfs("/dev/shm", &info) != 0) return available();
  // Without blocks it has no limit of its own.
  const std::uint64_t free = info.f_blocks == 0 ? unlimited : std::uint64_t{info.f_bavail} * info.f_frsize;
  return std::min(free, available());
}

std::uintptr_t page_bytes() noexcept {
  static const auto bytes = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

// Where the kernel is too old to know the question (before 5.14), read(2) into each page does: it reports EFAULT where
// a touch would raise SIGBUS, and leaves a zero there.
bool make_present(std::byte* begin, std::size_t bytes) noexcept {
  // Whole pages of the system's, which may be larger than ours: those around keep what they hold.
  const std::uintptr_t system_page = page_bytes();
  const std::uintptr_t from = reinterpret_cast<std::uintptr_t>(begin) / system_page * system_page;
  const std::uintptr_t to = reinterpret_cast<std::uintptr_t>(begin) + bytes;
  if (madvise(reinterpret_cast<void*>(from), to - from, MADV_POPULATE_WRITE) == 0) return true;
  if (errno != EINVAL) return false;
  const int zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);
  if (zero < 0) return false;
  bool present = true;
  for (std::size_t at = 0; at < bytes && present; at += 4096) present = read(zero, begin + at, 1) == 1;
  close(zero);
  return present;
}

}  // namespace papaya::memory
