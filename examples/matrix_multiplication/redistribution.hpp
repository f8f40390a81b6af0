// From one layout of a matrix to another: what a program has to do to call PDGEMM where its data lie otherwise.
#pragma once

#include <cstdint>
#include <vector>

#include "matrix.hpp"

namespace matrix_multiplication {

class Redistribution {
 public:
  Redistribution(const Layout& from, const Layout& to, int rank, int ranks);

  // Collective, by MPI_Alltoallv; what stays on its rank is copied.
  void run(Matrix& from, Matrix& to);
  std::uint64_t bytes() const noexcept { return bytes_; }  // that this rank sends

 private:
  // A part of a matrix that lies in one block of either layout.
  struct Piece {
    int row;
    int column;
    int rows;
    int columns;
    int peer;
  };
  static std::uint64_t count(const std::vector<Piece>& pieces, int ranks, std::vector<int>& counts,
                             std::vector<int>& places);

  std::vector<Piece> sent_;
  std::vector<Piece> received_;
  std::vector<Piece> kept_;
  std::vector<int> send_counts_;
  std::vector<int> send_places_;
  std::vector<int> receive_counts_;
  std::vector<int> receive_places_;
  std::vector<double> outgoing_;
  std::vector<double> incoming_;
  std::uint64_t bytes_ = 0;
};

}  // namespace matrix_multiplication
