// Top-k compressed allreduce with error feedback (Stich et al. 2018, "Sparsified SGD with memory"; Renggli et al. 2019,
// SparCML): what Iakymchuk et al. 2021 announce in IV-A.
//
// To its contribution a rank adds what earlier calls have left, its residual. The k elements of the sum with the
// largest magnitude are sent, each with its index; the others are the residual from then on. The result is the dense
// sum over the ranks of what they have sent, in rank order: the same bits on all ranks and in every run. So nothing is
// lost: the results of all calls and the residuals of all ranks add up to the contributions. flush() makes the next
// call send all, after which there is no residual.
//
// Of equal magnitudes the lower index is sent. NaN counts as larger than infinity, and that as larger than all numbers:
// they are the first to be sent, and do not stay in the residual unless there are more than k.
//
// Exchange. Every rank needs all p k pairs, so it receives (p-1) k of them in any pattern that does not add them up on
// the way; adding up makes messages shorter only where ranks choose the same elements, and the order of additions, and
// with it the bits, depend on the pattern. Each rank writes its pairs to all others: one latency, as few bytes as can
// be, p-1 messages. What is sent whole, if k is all or by flush(), goes without indices, in as many messages as it
// takes.
//
// Slots. Messages are numbered from the first call on. Message n of a rank goes to slot n mod 2 of its two at each
// other rank. A rank sends message n when it has taken all messages n-1, and a rank that has sent message n-1 had added
// all messages n-2 before. So nobody reads slot n mod 2 any more. Nobody is ahead by more than one message.
//
// Memory of a rank: the residual, and 2 p k pairs of value and 32-bit index.
//
// All ranks make the same number of calls, with flush() before the same ones. A rank that ends waits until what it has
// sent has been read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "algorithms/weak/weak.hpp"

namespace papaya {

// The elements of largest magnitude.
template <class Element>
class LargestElements {
 public:
  explicit LargestElements(std::size_t count) : sums_(count) {}

  // Adds the contribution to the residual.
  void add(const Element* contribution) noexcept;
  // Takes the k largest out of the residual, which has so many elements at least, in the order of their indices. After
  // add(). `values` and `indices` have room for k.
  void take(std::size_t k, Element* values, std::uint32_t* indices);
  // Takes all elements of [begin, end).
  void take_all(std::size_t begin, std::size_t end, Element* values) noexcept;

  std::span<const Element> residual() const noexcept { return sums_; }
  // The Euclidean norm of what take() has left, of that before.
  double relative_norm() const noexcept;

 private:
  static constexpr int bucket_bits = 12;

  std::vector<Element> sums_;
  std::vector<std::uint32_t> buckets_ = std::vector<std::uint32_t>(std::size_t{1} << bucket_bits);  // by magnitude
  std::vector<std::uint64_t> boundary_;  // magnitudes of which some are among the largest
  double squares_ = 0;
  double squares_taken_ = 0;
};

template <class Element>
class TopK final : public Weak {
 public:
  static SegmentShape segment(const WeakRequest& request) noexcept;

  // `request` is the same on all ranks, and alike in all calls.
  TopK(const Team& team, const WeakRequest& request);
  ~TopK() override;
  TopK(const TopK&) = delete;
  TopK& operator=(const TopK&) = delete;

  bool may_end() noexcept override { return team_.wire->are_sources_free(); }
  std::span<const std::byte> residual() const noexcept override { return std::as_bytes(largest_.residual()); }
  void flush() noexcept override { sends_all_next_ = true; }

 private:
  Steps steps(Operands operands) override;
  void send(std::size_t bytes) noexcept;
  const std::byte* message_of(int rank) const noexcept;

  const std::size_t count_;
  const std::size_t k_;
  const std::size_t slot_bytes_;
  LargestElements<Element> largest_;
  std::vector<std::byte> source_;
  std::uint64_t number_;  // of the last message
  std::uint64_t clock_;
  bool sends_all_next_ = false;
};

}  // namespace papaya
