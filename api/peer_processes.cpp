#include "api/peer_processes.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace papaya::weak {

namespace {

struct Status {
  char state = '\0';
  std::int64_t began = 0;  // in ticks since the machine was started
};

// proc(5): "NUMBER (NAME) STATE ..." with the start in field 22; a name may have any character. False if there is no
// such process; a status of zeros where it cannot be read.
bool read_status(std::int64_t number, Status& status) noexcept {
  char text[1024];
  std::snprintf(text, sizeof text, "/proc/%lld/stat", static_cast<long long>(number));
  const int file = open(text, O_RDONLY | O_CLOEXEC);
  if (file < 0) return errno != ENOENT;
  const ssize_t bytes = read(file, text, sizeof text - 1);
  const bool is_gone = bytes < 0 && errno == ESRCH;
  close(file);
  text[bytes < 0 ? 0 : bytes] = '\0';
  const char* field = std::strrchr(text, ')');
  if (field == nullptr) return !is_gone;
  const char state = field[1] == ' ' ? field[2] : '\0';
  constexpr int fields_after_name = 20;  // to the start
  for (int i = 0; i < fields_after_name && field != nullptr; ++i) field = std::strchr(field + 1, ' ');
  if (field != nullptr) status = {state, std::strtoll(field, nullptr, 10)};
  return true;
}

// The number of the namespace that this process is in; 0: not known.
std::uint64_t namespace_at(const char* path) noexcept {
  struct stat status {};
  return stat(path, &status) == 0 ? static_cast<std::uint64_t>(status.st_ino) : 0;
}

}  // namespace

void PeerProcesses::exchange(MPI_Comm comm, std::uint64_t node) {
  // In another PID namespace it has another number, in another time namespace another start.
  place_ = node ^ namespace_at("/proc/self/ns/pid") << 32 ^ namespace_at("/proc/self/ns/time") << 16;
  Process mine{place_, getpid(), 0};
  Status status;
  if (read_status(mine.number, status)) mine.began = status.began;
  are_known_ = mine.began != 0;
  int ranks = 1;
  PMPI_Comm_size(comm, &ranks);
  processes_.resize(static_cast<std::size_t>(ranks));
  PMPI_Allgather(&mine, sizeof mine, MPI_BYTE, processes_.data(), sizeof mine, MPI_BYTE, comm);
}

bool PeerProcesses::has_ended(int rank) const noexcept {
  const Process& one = processes_[static_cast<std::size_t>(rank)];
  if (!are_known_ || one.place != place_ || one.began == 0) return false;
  Status status;
  if (!read_status(one.number, status)) return true;
  // A zombie until its parent has asked for it.
  return status.began != 0 && (status.began != one.began || status.state == 'Z' || status.state == 'X');
}

}  // namespace papaya::weak
