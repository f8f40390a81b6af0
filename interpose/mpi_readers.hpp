// The nodes' leaders as processes that read the job's records together (profiler/analysis/readers.hpp). They wait
// asleep for each other: the cores are for those that read.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <span>
#include <vector>

#include "profiler/analysis/readers.hpp"

namespace papaya {

class MpiReaders final : public report::Readers {
 public:
  // Collective over `leaders`, whose rank 0 is the job's.
  explicit MpiReaders(MPI_Comm leaders) noexcept;
  // Number 0 tells the others that nobody is asked, if nobody was.
  ~MpiReaders() override;

  std::size_t number() const override { return static_cast<std::size_t>(rank_); }
  std::size_t all() const override { return static_cast<std::size_t>(size_); }
  void send(std::size_t to, std::span<const std::byte> message) noexcept override;
  std::vector<std::byte> receive(std::size_t from) noexcept override;
  void ask(std::size_t count) noexcept override;
  std::size_t asked() noexcept override;

 private:
  MPI_Comm comm_;
  int rank_ = 0;
  int size_ = 1;
  bool has_asked_ = false;
};

}  // namespace papaya
