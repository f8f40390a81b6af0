#include "redistribution.hpp"

#include <mpi.h>

#include <algorithm>
#include <limits>

#include "job.hpp"

namespace matrix_multiplication {

namespace {

struct Span {
  int begin;
  int end;
};

// What is in one block of both.
std::vector<Span> common_cut(Cut x, Cut y) {
  std::vector<Span> spans;
  for (int begin = 0; begin < x.size;) {
    const int end = std::min({(begin / x.block + 1) * x.block, (begin / y.block + 1) * y.block, x.size});
    spans.push_back({begin, end});
    begin = end;
  }
  return spans;
}

struct Part {
  double* data;
  int stride;
};

// Of the matrix, from that element on.
Part part(Matrix& matrix, int row, int column) {
  const Layout& layout = matrix.layout();
  const Matrix::Block block = matrix.block(row / layout.rows.block, column / layout.columns.block);
  const auto offset = static_cast<std::size_t>(column % layout.columns.block) * static_cast<std::size_t>(block.stride);
  return {block.data + offset + row % layout.rows.block, block.stride};
}

void copy(const double* from, std::size_t from_stride, double* to, std::size_t to_stride, int rows, int columns) {
  for (int column = 0; column < columns; ++column, from += from_stride, to += to_stride) std::copy_n(from, rows, to);
}

}  // namespace

Redistribution::Redistribution(const Layout& from, const Layout& to, int rank, int ranks) {
  const std::vector<Span> rows = common_cut(from.rows, to.rows);
  for (const Span& width : common_cut(from.columns, to.columns))
    for (const Span& height : rows) {
      const int owner = from.owner(height.begin / from.rows.block, width.begin / from.columns.block);
      const int reader = to.owner(height.begin / to.rows.block, width.begin / to.columns.block);
      const Piece piece{height.begin, width.begin, height.end - height.begin, width.end - width.begin, reader};
      if (owner == rank) (reader == rank ? kept_ : sent_).push_back(piece);
      if (reader == rank && owner != rank) {
        received_.push_back(piece);
        received_.back().peer = owner;
      }
    }
  bytes_ = count(sent_, ranks, send_counts_, send_places_) * sizeof(double);
  outgoing_.resize(bytes_ / sizeof(double));
  incoming_.resize(count(received_, ranks, receive_counts_, receive_places_));
}

std::uint64_t Redistribution::count(const std::vector<Piece>& pieces, int ranks, std::vector<int>& counts,
                                    std::vector<int>& places) {
  std::vector<std::uint64_t> elements(static_cast<std::size_t>(ranks));
  for (const Piece& piece : pieces)
    elements[static_cast<std::size_t>(piece.peer)] +=
        static_cast<std::uint64_t>(piece.rows) * static_cast<std::uint64_t>(piece.columns);
  std::uint64_t all = 0;
  for (const std::uint64_t number : elements) {
    places.push_back(static_cast<int>(all));
    counts.push_back(static_cast<int>(number));
    all += number;
    if (all > std::numeric_limits<int>::max())
      throw Problem("MPI_Alltoallv cannot bring that much to PDGEMM's layout; use more ranks or --variant notified.");
  }
  return all;
}

void Redistribution::run(Matrix& from, Matrix& to) {
  // Both sides have the pieces in the same order.
  std::vector<int> next = send_places_;
  for (const Piece& piece : sent_) {
    const Part source = part(from, piece.row, piece.column);
    int& place = next[static_cast<std::size_t>(piece.peer)];
    copy(source.data, static_cast<std::size_t>(source.stride), outgoing_.data() + place,
         static_cast<std::size_t>(piece.rows), piece.rows, piece.columns);
    place += piece.rows * piece.columns;
  }
  MPI_Alltoallv(outgoing_.data(), send_counts_.data(), send_places_.data(), MPI_DOUBLE, incoming_.data(),
                receive_counts_.data(), receive_places_.data(), MPI_DOUBLE, MPI_COMM_WORLD);
  for (const Piece& piece : kept_) {
    const Part source = part(from, piece.row, piece.column);
    const Part target = part(to, piece.row, piece.column);
    copy(source.data, static_cast<std::size_t>(source.stride), target.data, static_cast<std::size_t>(target.stride),
         piece.rows, piece.columns);
  }
  next = receive_places_;
  for (const Piece& piece : received_) {
    const Part target = part(to, piece.row, piece.column);
    int& place = next[static_cast<std::size_t>(piece.peer)];
    copy(incoming_.data() + place, static_cast<std::size_t>(piece.rows), target.data,
         static_cast<std::size_t>(target.stride), piece.rows, piece.columns);
    place += piece.rows * piece.columns;
  }
}

}  // namespace matrix_multiplication
