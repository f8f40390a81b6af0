// Calls whose data tell ranks, elements and calls apart, so that it is known of every result whether it is right.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "algorithms/algorithm.hpp"

namespace papaya {

// 2x2 matrices modulo 2^32 multiplied: associative, not commutative, exact. Commutative under arrival order: their sum.
struct Matrix {
  std::uint32_t a[4];
  bool operator==(const Matrix& other) const { return std::equal(a, a + 4, other.a); }
};

inline Matrix multiply(const Matrix& x, const Matrix& y) {
  return {{x.a[0] * y.a[0] + x.a[1] * y.a[2], x.a[0] * y.a[1] + x.a[1] * y.a[3], x.a[2] * y.a[0] + x.a[3] * y.a[2],
           x.a[2] * y.a[1] + x.a[3] * y.a[3]}};
}
inline Matrix add(const Matrix& x, const Matrix& y) {
  return {{x.a[0] + y.a[0], x.a[1] + y.a[1], x.a[2] + y.a[2], x.a[3] + y.a[3]}};
}

inline Reduction reduction_for(bool sum, bool by_table) {
  Reduction reduction;
  reduction.element_bytes = sizeof(Matrix);
  reduction.commutative = sum;
  reduction.by_table = by_table;
  reduction.combine =
      sum ? Reduction::Combine([](const Reduction&, const void* left, const void* right, void* out, std::size_t count) {
        for (std::size_t i = 0; i < count; ++i) {
          const Matrix result = add(static_cast<const Matrix*>(left)[i], static_cast<const Matrix*>(right)[i]);
          static_cast<Matrix*>(out)[i] = result;
        }
      })
          : Reduction::Combine([](const Reduction&, const void* left, const void* right, void* out, std::size_t count) {
              for (std::size_t i = 0; i < count; ++i) {
                const Matrix result =
                    multiply(static_cast<const Matrix*>(left)[i], static_cast<const Matrix*>(right)[i]);
                static_cast<Matrix*>(out)[i] = result;
              }
            });
  return reduction;
}

inline Matrix matrix_of(int rank, std::size_t element, int call) {
  const auto seed = static_cast<std::uint32_t>(rank) * 7919u + static_cast<std::uint32_t>(element) * 104729u +
                    static_cast<std::uint32_t>(call) * 1299709u;
  return {{seed, seed * 3 + 1, seed * 5 + 2, seed * 7 + 3}};
}

constexpr bool is_from_root(Collective collective) {
  return collective == Collective::bcast || collective == Collective::scatter;
}
constexpr bool is_to_root(Collective collective) {
  return collective == Collective::reduce || collective == Collective::gather;
}
constexpr bool scatters_result(Collective collective) {
  return collective == Collective::reduce_scatter || collective == Collective::reduce_scatter_block;
}

constexpr bool has_counts(Collective collective) {
  return collective == Collective::reduce_scatter || collective == Collective::allgatherv;
}

// One call of one rank, and whether its result is right.
class Call {
 public:
  Call(Collective collective, const Reduction& reduction, int rank, int ranks, int number, std::size_t count,
       bool in_place)
      : collective_(collective), reduction_(reduction), rank_(rank), ranks_(ranks), number_(number), count_(count) {
    const auto p = static_cast<std::size_t>(ranks);
    const bool is_root = rank == root();
    const bool gathers = collective == Collective::allgather || collective == Collective::gather;
    const std::size_t blocks = collective == Collective::alltoall || gathers ? p : 1;
    // Those of a reduce_scatter or allgatherv are of different sizes, one without elements.
    own_ = has_counts(collective) ? block(static_cast<std::size_t>(rank)) : count;
    if (has_counts(collective))
      for (std::size_t r = 0; r < p; ++r) starts_.push_back(starts_.back() + block(r) * sizeof(Matrix));
    begin_ = collective == Collective::reduce_scatter         ? starts_[static_cast<std::size_t>(rank)] / sizeof(Matrix)
             : collective == Collective::reduce_scatter_block ? static_cast<std::size_t>(rank) * count
                                                              : 0;
    send_.resize(collective == Collective::reduce_scatter ? starts_.back() / sizeof(Matrix)
                 : collective == Collective::alltoall || collective == Collective::scatter ||
                         collective == Collective::reduce_scatter_block
                     ? p * count
                     : own_);
    receive_.resize((scatters_result(collective) ? in_place ? send_.size() : own_ : blocks * count) + 1);
    receive_.back() = guard;
    for (std::size_t i = 0; i < send_.size(); ++i) send_[i] = matrix_of(rank, i, number);
    operands_.send = send_.data();
    operands_.receive = receive_.data();
    operands_.count = count;
    operands_.bytes = collective == Collective::barrier ? 0 : count * sizeof(Matrix);
    operands_.root = -1;
    operands_.reduction = &reduction;
    if (collective == Collective::reduce_scatter) operands_.starts = starts_.data();
    if (collective == Collective::allgatherv) lay_out_blocks();
    if (is_from_root(collective) || is_to_root(collective)) operands_.root = root();
    if (is_root && (collective == Collective::bcast || (collective == Collective::scatter && in_place)))
      operands_.receive = nullptr;
    if (is_from_root(collective) && !is_root) operands_.send = nullptr;
    if (is_to_root(collective) && !is_root) operands_.receive = nullptr;
    if (in_place && !is_from_root(collective) && collective != Collective::barrier &&
        (operands_.receive != nullptr || collective == Collective::allgatherv)) {
      const std::size_t first = gathers                                ? static_cast<std::size_t>(rank) * count
                                : collective == Collective::allgatherv ? place(static_cast<std::size_t>(rank))
                                                                       : 0;
      Matrix* const own = receive_.data() + first;
      std::copy(send_.begin(), send_.end(), own);
      operands_.send = own;
    }
  }

  Operands& operands() { return operands_; }

  bool is_right() const {
    if (!(receive_.back() == guard)) return false;
    const bool is_root = rank_ == root();
    if (collective_ == Collective::barrier) return true;
    if (is_from_root(collective_) && is_root && operands_.receive == nullptr) return true;
    if (is_to_root(collective_) && !is_root) return true;
    // Every element of short results, a sample of long ones.
    const std::size_t step = receive_.size() < 2000 ? 1 : 97;
    // In place what follows the own part is what was sent.
    const std::size_t size = scatters_result(collective_) ? own_ : receive_.size() - 1;
    for (std::size_t i = 0; i < size; i += step)
      if (!(receive_[i] == expected(i))) return false;
    return true;
  }

  // Nothing of the send buffer's content may have changed when the call is left to MPI.
  bool is_untouched() const {
    const auto* const now = static_cast<const Matrix*>(operands_.send);
    for (std::size_t i = 0; i < send_.size(); ++i)
      if (!(now[i] == matrix_of(rank_, i, number_))) return false;
    return true;
  }

 private:
  static constexpr Matrix guard = {{1, 2, 3, 4}};

  int root() const { return number_ % ranks_; }
  // Those of an allgatherv stand in reverse, with room between them.
  void lay_out_blocks() {
    receive_.assign(place(0) + count_ + 1, guard);
    for (std::size_t r = 0; r < static_cast<std::size_t>(ranks_); ++r)
      blocks_.push_back({reinterpret_cast<std::byte*>(receive_.data() + place(r)), block(r) * sizeof(Matrix)});
    operands_.receive = nullptr;
    operands_.receive_blocks = blocks_.data();
  }
  std::size_t place(std::size_t rank) const { return (static_cast<std::size_t>(ranks_) - 1 - rank) * (count_ + 1); }

  // Of a reduce_scatter or allgatherv, in elements: the largest has `count_`.
  std::size_t block(std::size_t rank) const {
    const std::size_t turn = (rank + static_cast<std::size_t>(number_)) % static_cast<std::size_t>(ranks_);
    return turn == 0 ? count_ : count_ * (turn - 1) / static_cast<std::size_t>(ranks_);
  }

  Matrix expected(std::size_t i) const {
    switch (collective_) {
      case Collective::bcast:
        return matrix_of(root(), i, number_);
      case Collective::scatter:
        return matrix_of(root(), static_cast<std::size_t>(rank_) * count_ + i, number_);
      case Collective::gather:
      case Collective::allgather:
        return matrix_of(static_cast<int>(i / count_), i % count_, number_);
      case Collective::allgatherv: {
        const std::size_t rank = static_cast<std::size_t>(ranks_) - 1 - i / (count_ + 1);
        const std::size_t element = i % (count_ + 1);
        return element < block(rank) ? matrix_of(static_cast<int>(rank), element, number_) : guard;
      }
      case Collective::alltoall:
        return matrix_of(static_cast<int>(i / count_), static_cast<std::size_t>(rank_) * count_ + i % count_, number_);
      default: {
        Matrix result = matrix_of(0, begin_ + i, number_);
        for (int rank = 1; rank < ranks_; ++rank) {
          const Matrix next = matrix_of(rank, begin_ + i, number_);
          result = reduction_.commutative ? add(result, next) : multiply(result, next);
        }
        return result;
      }
    }
  }

  const Collective collective_;
  const Reduction& reduction_;
  const int rank_;
  const int ranks_;
  const int number_;
  const std::size_t count_;
  std::vector<std::size_t> starts_ = {0};
  std::size_t own_ = 0;    // elements of the own part of the result
  std::size_t begin_ = 0;  // of those that are reduced, the first of them
  std::vector<Matrix> send_;
  std::vector<Matrix> receive_;
  std::vector<Block> blocks_;
  Operands operands_{};
};

}  // namespace papaya
