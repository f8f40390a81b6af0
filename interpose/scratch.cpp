#include "interpose/scratch.hpp"

#include <mpi.h>
#include <sys/mman.h>

#include <cstdlib>
#include <string>

#include "interpose/end_job.hpp"

namespace papaya {

namespace {
constexpr std::size_t mapped_from = std::size_t{32} << 20;  // below, the heap, which keeps its pages from call to call
}

Scratch::Scratch(std::size_t bytes) noexcept : bytes_(bytes) {
  if (bytes < mapped_from) {
    data_ = static_cast<std::byte*>(std::malloc(bytes == 0 ? 1 : bytes));
    return;
  }
  void* const mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  data_ = mapped == MAP_FAILED ? nullptr : static_cast<std::byte*>(mapped);
}

Scratch::~Scratch() {
  if (data_ == nullptr) return;
  if (bytes_ < mapped_from)
    std::free(data_);
  else
    munmap(data_, bytes_);
}

void end_for_lack_of_memory(std::size_t bytes) noexcept {
  end_job("no memory for " + std::to_string(bytes) +
              " bytes to pack a message in; the job cannot go on. PAPAYA_DISABLE=1 needs less.",
          MPI_ERR_NO_MEM);
}

}  // namespace papaya
