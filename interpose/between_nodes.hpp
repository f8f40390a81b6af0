// What carries data between nodes: MPI's messages or UCX. Opened if the selection, or PAPAYA_TRANSPORT, asks for it.
#pragma once

#include <mpi.h>

#include <memory>

#include "algorithms/transport/transport.hpp"
#include "interpose/job.hpp"

namespace papaya {

struct BetweenNodes {
  std::unique_ptr<Transport> transport;
  MPI_Comm comm = MPI_COMM_NULL;  // a copy of MPI_COMM_WORLD, for messages of TeamMessages
  bool has_too_little = false;    // PAPAYA_SHM_LIMIT allows no memory that ranks of other nodes write to

  // Collective over the job. `folder`: where libpapaya-ucx.so lies.
  void open(const Job& job, const char* folder);
  void close() noexcept;  // collective
  void progress() noexcept {
    if (transport != nullptr) transport->progress();
  }
};

}  // namespace papaya
