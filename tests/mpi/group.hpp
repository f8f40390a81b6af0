// The communicators that a test goes over.
#pragma once

#include <mpi.h>

#include <cstddef>

#include "tests/mpi/check.hpp"

struct Group {
  explicit Group(MPI_Comm c) : comm(c) {
    PMPI_Comm_rank(c, &rank);
    PMPI_Comm_size(c, &size);
  }
  std::size_t ranks() const { return static_cast<std::size_t>(size); }
  MPI_Comm comm;
  int rank = 0;
  int size = 0;
};

// Of all kinds, MPI_COMM_WORLD first. Errors are returned on each of them.
class Communicators {
 public:
  Communicators() {
    MPI_Comm_dup(MPI_COMM_WORLD, &made_[0]);
    MPI_Comm_split(MPI_COMM_WORLD, world_rank % 2, world_rank, &made_[1]);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -world_rank, &made_[2]);
  }
  ~Communicators() {
    for (MPI_Comm& comm : made_) MPI_Comm_free(&comm);
  }
  Communicators(const Communicators&) = delete;
  Communicators& operator=(const Communicators&) = delete;

  template <class Body>
  void for_each(Body body) const {
    for (MPI_Comm comm : {MPI_COMM_WORLD, made_[0], made_[1], made_[2], MPI_COMM_SELF}) {
      MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
      body(comm);
    }
  }
  MPI_Comm half() const { return made_[1]; }  // the even ranks, or the odd ones

 private:
  MPI_Comm made_[3];
};
