// What threshold_bcast and threshold_reduce have in common: what the threshold leaves of a call, by which way it goes
// between the ranks, in which chunks, and the streams between neighbours.
//
// Of the data: the first ceil(share * count) elements of the message, and all ranks. Of the ranks: the whole message,
// and ceil(share * p) ranks (patterns/threshold.hpp). What is left out costs nothing: it is not read, written or sent.
//
// The way. On the binomial tree a rank has up to log2(p) children, and the root sends, or receives, a message for each:
// log2(p) latencies, and the time of log2(p) messages. Long messages go along a chain of the same ranks, in chunks of
// which many are under way at once: a rank sends and receives the message once, so the time is that of one message and
// of p - 2 chunks.
//
// The chunks. Along a chain n chunks of S/n bytes take n + h chunk times, where h = p - 2 fill the chain, and each
// chunk costs as long as some K bytes more: (n + h) (S/n + K), least for n = sqrt(h S / K). So of a short message, or
// along a long chain, chunks are shorter. Where a reduction keeps the ranks' order, the root takes 2n chunks, n of each
// side: (2n + h) (S/n + K).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "algorithms/patterns/threshold.hpp"
#include "algorithms/streams.hpp"
#include "algorithms/weak/weak.hpp"

namespace papaya {

class ThresholdPlan {
 public:
  enum class Towards : std::uint8_t { leaves, root };  // a broadcast, a reduction

  ThresholdPlan(const WeakRequest& request, Towards towards);

  static constexpr Parameter parameters[] = {
      {.name = "of_ranks", .fallback = 0, .lowest = 0, .highest = 1, .help = "0: a share of the data, 1: of the ranks"},
      {.name = "route",
       .fallback = 0,
       .lowest = 0,
       .highest = 2,
       .help = "0: by length, 1: the binomial tree, 2: a chain"},
      {.name = "chunk",
       .fallback = 0,
       .lowest = 0,
       .highest = std::int64_t{4} << 20,
       .help = "bytes that travel at a time; 0: by length and ranks, at most 61440"},
      {.name = "slots",
       .fallback = 16,
       .lowest = 2,
       .highest = 1024,
       .help = "chunks that a rank may be ahead of the next; of long ones fewer for a reduction's several children, "
               "with chunk=0 more of short ones"},
  };
  // What holds of a parameter that papaya chooses.
  std::int64_t in_force(std::size_t parameter, std::int64_t asked) const noexcept;

  SegmentShape segment() const noexcept;
  // Peer 0 is the parent, peer 1 + i child i.
  std::vector<Streams::Peer> peers(int rank) const;
  bool takes_part(int rank) const noexcept { return takes_part_[static_cast<std::size_t>(rank)]; }
  patterns::Neighbours neighbours(int rank) const { return patterns::neighbours_of(rank, root_, route_, takes_part_); }
  // Of a call, on a rank that has its result or not, and whose own contribution is in somebody's result or not.
  WeakStatus status(std::uint64_t clock, bool has_result, bool is_in_result) const noexcept;

  // Of the message, as far as it is sent.
  std::uint64_t chunks() const noexcept { return (elements_ + chunk_elements_ - 1) / chunk_elements_; }
  std::size_t elements_in(std::uint64_t chunk) const noexcept {
    return std::min(chunk_elements_, elements_ - static_cast<std::size_t>(chunk) * chunk_elements_);
  }
  std::size_t bytes_in(std::uint64_t chunk) const noexcept { return elements_in(chunk) * element_bytes_; }
  std::size_t offset_of(std::uint64_t chunk) const noexcept {
    return static_cast<std::size_t>(chunk) * chunk_elements_ * element_bytes_;
  }
  std::size_t chunk_bytes() const noexcept { return in_lines(chunk_elements_ * element_bytes_); }
  std::uint64_t slots() const noexcept;  // of a stream
  int root() const noexcept { return root_; }

 private:
  std::size_t chain_chunk_bytes(bool in_rank_order) const noexcept;
  int most_children() const noexcept;
  // The streams that come to a rank and need slots there.
  int writers() const noexcept { return towards_ == Towards::leaves ? 1 : most_children(); }

  const Towards towards_;
  const int ranks_;
  const int root_;
  const std::size_t count_;
  const std::size_t element_bytes_;
  const std::uint64_t slots_;   // of one writer
  const bool is_chunk_chosen_;  // by papaya
  std::size_t elements_;
  double share_ = 1;  // of the elements or of the ranks, exactly
  std::size_t chunk_elements_;
  std::vector<bool> takes_part_;
  int ranks_taking_part_;
  patterns::Route route_;
};

}  // namespace papaya
