#include "algorithms/transport/single_copy.hpp"

#include <sys/uio.h>

#include <cerrno>

namespace papaya {

bool read_memory(pid_t pid, const void* address, void* to, std::size_t bytes) noexcept {
  const auto* from = static_cast<const std::byte*>(address);
  auto* out = static_cast<std::byte*>(to);
  while (bytes > 0) {
    const iovec local{out, bytes};
    const iovec remote{const_cast<std::byte*>(from), bytes};
    const ssize_t done = process_vm_readv(pid, &local, 1, &remote, 1, 0);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return false;
    out += done;
    from += done;
    bytes -= static_cast<std::size_t>(done);
  }
  return true;
}

}  // namespace papaya
