#include "interpose/mpi_readers.hpp"

#include <algorithm>
#include <cstdint>
#include <new>

#include "algorithms/transport/mpi/mpi_out_of_band.hpp"

namespace papaya {

namespace {

constexpr int tag = 0;
constexpr std::size_t most_at_once = std::size_t{1} << 30;  // bytes; MPI counts them in an int

bool pass_on(void* data, std::size_t bytes, std::size_t peer, bool sends, MPI_Comm comm) noexcept {
  for (auto* next = static_cast<std::byte*>(data); bytes > 0;) {
    const std::size_t now = std::min(bytes, most_at_once);
    MPI_Request request = MPI_REQUEST_NULL;
    const auto count = static_cast<int>(now);
    const auto rank = static_cast<int>(peer);
    const int status = sends ? PMPI_Isend(next, count, MPI_BYTE, rank, tag, comm, &request)
                             : PMPI_Irecv(next, count, MPI_BYTE, rank, tag, comm, &request);
    if (status != MPI_SUCCESS || !wait_asleep(request)) return false;
    next += now;
    bytes -= now;
  }
  return true;
}

}  // namespace

MpiReaders::MpiReaders(MPI_Comm leaders) noexcept : comm_(leaders) {
  PMPI_Comm_rank(comm_, &rank_);
  PMPI_Comm_size(comm_, &size_);
}

MpiReaders::~MpiReaders() {
  if (rank_ == 0 && !has_asked_) MpiReaders::ask(0);
}

void MpiReaders::ask(std::size_t count) noexcept {
  has_asked_ = true;
  std::uint64_t value = count;
  MPI_Request request = MPI_REQUEST_NULL;
  if (PMPI_Ibcast(&value, sizeof value, MPI_BYTE, 0, comm_, &request) == MPI_SUCCESS) wait_asleep(request);
}

std::size_t MpiReaders::asked() noexcept {
  std::uint64_t value = 0;
  MPI_Request request = MPI_REQUEST_NULL;
  if (PMPI_Ibcast(&value, sizeof value, MPI_BYTE, 0, comm_, &request) != MPI_SUCCESS || !wait_asleep(request)) return 0;
  return value;
}

// The receiver says whether it has room.
void MpiReaders::send(std::size_t to, std::span<const std::byte> message) noexcept {
  std::uint64_t size = message.size();
  pass_on(&size, sizeof size, to, true, comm_);
  if (size == 0) return;
  std::uint8_t has_room = 0;
  if (pass_on(&has_room, sizeof has_room, to, false, comm_) && has_room != 0)
    pass_on(const_cast<std::byte*>(message.data()), message.size(), to, true, comm_);
}

std::vector<std::byte> MpiReaders::receive(std::size_t from) noexcept {
  std::uint64_t size = 0;
  std::vector<std::byte> message;
  if (!pass_on(&size, sizeof size, from, false, comm_) || size == 0) return message;
  try {
    message.resize(size);
  } catch (const std::bad_alloc&) {
  }
  std::uint8_t has_room = message.empty() ? 0 : 1;
  if (!pass_on(&has_room, sizeof has_room, from, true, comm_) || has_room == 0) return {};
  if (!pass_on(message.data(), message.size(), from, false, comm_)) return {};
  return message;
}

}  // namespace papaya
