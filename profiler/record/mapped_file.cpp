#include "profiler/record/mapped_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include "base/folder_mode.hpp"
#include "profiler/record/failed_pages.hpp"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif

namespace papaya {

namespace {

enum class Medium { memory, disk, network };

// Only those of which one machine alone has the files; any other may be of a network.
Medium medium_of(int file) noexcept {
  constexpr std::array<std::uint32_t, 2> in_memory{
      0x01021994,  // tmpfs
      0x858458F6,  // ramfs
  };
  constexpr std::array<std::uint32_t, 7> on_disk{
      0xEF53,      // ext2, ext3, ext4
      0x58465342,  // XFS
      0x9123683E,  // Btrfs
      0xF2F52010,  // F2FS
      0x2FC12FC1,  // ZFS
      0xCA451A4E,  // bcachefs
      0x794C7630,  // overlayfs
  };
  struct statfs system {};
  if (fstatfs(file, &system) != 0) return Medium::network;
  const auto is_one_of = [type = static_cast<std::uint32_t>(system.f_type)](const auto& types) {
    return std::find(types.begin(), types.end(), type) != types.end();
  };
  return is_one_of(in_memory) ? Medium::memory : is_one_of(on_disk) ? Medium::disk : Medium::network;
}

// Gives a part that is reserved its pages in memory. Only a hint. On a disk the first store to a page that has none
// takes four to five microseconds in the file system (ext4); of a write of many pages each takes one.
void write_zeros(int file, const FilePart& part) noexcept {
  constexpr std::size_t most = 64;
  alignas(64) static constexpr std::byte zeros[4096]{};
  for (std::size_t done = 0; done < part.bytes;) {
    std::array<iovec, most> vectors;
    std::size_t count = 0;
    for (std::size_t to = done; to < part.bytes && count < most; to += vectors[count++].iov_len)
      vectors[count] = {const_cast<std::byte*>(zeros), std::min(sizeof zeros, part.bytes - to)};
    const ssize_t written =
        pwritev(file, vectors.data(), static_cast<int>(count), static_cast<off_t>(part.offset + done));
    if (written <= 0) return;
    done += static_cast<std::size_t>(written);
  }
}

// An old kernel does not know it.
void populate(const MappedFile& file, const FilePart& part) noexcept {
  madvise(static_cast<std::byte*>(file.base) + part.offset, part.bytes,
          file.is_on_network ? MADV_POPULATE_READ : MADV_POPULATE_WRITE);
}

}  // namespace

bool is_on_network(int file) noexcept {
  return medium_of(file) == Medium::network;
}

MappedFile create_mapped(const std::string& path, std::size_t bytes, std::string& error,
                         std::span<const FilePart> in_use) noexcept {
  // Beyond it, making the file larger ends the process by a signal.
  rlimit limit{};
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && bytes > limit.rlim_cur) {
    error = "larger than the limit for files (ulimit -f)";
    return {};
  }
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (file < 0) {
    error = std::strerror(errno);
    return {};
  }
  set_mode_by_folder(file, path, 0644);
  // Some file systems (NFS before 4.2) cannot reserve; there the size alone must do.
  int failure = posix_fallocate(file, 0, static_cast<off_t>(bytes));
  if (failure == EOPNOTSUPP || failure == EINVAL) failure = ftruncate(file, static_cast<off_t>(bytes)) == 0 ? 0 : errno;
  const Medium medium = medium_of(file);
  void* base = MAP_FAILED;
  if (failure == 0) {
    if (medium == Medium::disk)
      for (const FilePart& part : in_use) write_zeros(file, part);
    base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (base == MAP_FAILED) failure = errno;
  }
  ::close(file);
  if (failure == 0) {
    failed_pages::watch(base, bytes);
    const MappedFile mapped{base, bytes, medium == Medium::network};
    for (const FilePart& part : in_use) populate(mapped, part);
    return mapped;
  }
  ::unlink(path.c_str());
  error = std::strerror(failure);
  return {};
}

void write_out(const MappedFile& file) noexcept {
  if (file.is_on_network) write_out(file.base, file.bytes);
}

void write_out(void* begin, std::size_t bytes) noexcept {
  const std::uintptr_t within =
      reinterpret_cast<std::uintptr_t>(begin) % static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  msync(static_cast<std::byte*>(begin) - within, bytes + within, MS_SYNC);
}

void unmap(void* base, std::size_t bytes) noexcept {
  failed_pages::forget(base);
  munmap(base, bytes);
}

}  // namespace papaya
