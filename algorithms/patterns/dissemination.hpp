// Peers and data of the n-way dissemination algorithm for any number of ranks (End et al. 2015), free of
// memory and communication.
//
// Round l = 1..k of k = ceil(log_{n+1} P): rank p sends to p + i*(n+1)^(l-1) and receives from p -
// i*(n+1)^(l-1), i = 1..n, modulo P. Before it a rank has the data of the (n+1)^(l-1) ranks that end at
// itself. In the last round that is more than there is unless P is a power of n+1; an operation that is not
// idempotent needs every rank's data once, and what a rank has combined cannot be taken apart. It can be cut
// where something was added, though: a rank's data are its own, then what came from the first peer of the
// first round, and so on, each a partial result that goes further back. A prefix of them of (j+1) (n+1)^(l-1) ranks
// ends after peer j of round l (the paper's boundary g_l[j]); its own data is the prefix of 1 (g_0). Where P
// = s*m + sent - left_out, m = (n+1)^(k-1), for two such prefixes, the last sender of the last round sends
// its first `sent` ranks, and the receiver leaves its own first `left_out` out of the result.
#pragma once

#include <cstdint>
#include <optional>

namespace papaya::patterns {

// The largest n that is worth a try (End et al. 2015).
inline constexpr int largest_radix = 7;

constexpr int dissemination_rounds(int ranks, int radix) noexcept {
  int rounds = 0;
  for (std::int64_t reached = 1; reached < ranks; reached *= radix + 1) ++rounds;
  return rounds;
}

// (n+1)^rounds: the ranks whose data a rank has after so many rounds, if there are as many.
constexpr std::int64_t dissemination_reach(int radix, int rounds) noexcept {
  std::int64_t reach = 1;
  for (; rounds > 0; --rounds) reach *= radix + 1;
  return reach;
}

constexpr int dissemination_target(int rank, int ranks, int radix, int round, int i) noexcept {
  return static_cast<int>((rank + i * dissemination_reach(radix, round - 1)) % ranks);
}
constexpr int dissemination_source(int rank, int ranks, int radix, int round, int i) noexcept {
  const std::int64_t back = i * dissemination_reach(radix, round - 1) % ranks;
  return static_cast<int>((rank + ranks - back) % ranks);
}

// Where the data of a rank may be cut: after peer j of round l, both from 1; {0, 0} after its own.
struct DataBoundary {
  int round = 0;
  int peer = 0;
  friend constexpr bool operator==(DataBoundary, DataBoundary) = default;
};
constexpr std::int64_t ranks_before(DataBoundary boundary, int radix) noexcept {
  return boundary.round == 0 ? 1 : (boundary.peer + 1) * dissemination_reach(radix, boundary.round - 1);
}

// The paper's 5-tuple: sender s of the last round, its boundary (l_snd, j_snd) and the receiver's (l_rcv,
// j_rcv), which fall together on the ring: P = g_s,l_snd[j_snd] - g_l_rcv[j_rcv], where g counts ranks before
// the own one.
struct DisseminationTuple {
  int sender;
  DataBoundary send;
  DataBoundary receive;
};

// What the last round does.
struct LastRound {
  int whole = 0;          // senders 1..whole send all they have
  std::int64_t sent = 0;  // sender whole + 1 sends its first so many ranks' data, at `boundary`; 0: there is none
  DataBoundary boundary{};
  std::int64_t left_out = 0;  // of the receiver's own first ranks, at `left_boundary`; 0: nothing
  DataBoundary left_boundary{};
};

// The tuple for `ranks`, if there is one, with the fewest ranks left out; and with the least to send of
// those.
constexpr std::optional<DisseminationTuple> dissemination_tuple(int ranks, int radix) noexcept {
  const int rounds = dissemination_rounds(ranks, radix);
  if (rounds == 0) return std::nullopt;
  const std::int64_t all = dissemination_reach(radix, rounds - 1);
  std::optional<DisseminationTuple> best;
  std::int64_t best_left_out = 0;
  const auto visit = [&](int sender, DataBoundary send, DataBoundary receive) {
    // Boundaries counted as in the paper, from the rank itself: one less than the ranks before them.
    const std::int64_t span = sender * all + (ranks_before(send, radix) - 1) - (ranks_before(receive, radix) - 1);
    if (span != ranks) return;
    const std::int64_t left_out = ranks_before(receive, radix);
    if (best && best_left_out <= left_out) return;
    best = {sender, send, receive};
    best_left_out = left_out;
  };
  const auto each_boundary = [&](auto&& f) {
    f(DataBoundary{});
    for (int l = 1; l < rounds; ++l)
      for (int j = 1; j <= radix; ++j) f(DataBoundary{l, j});
  };
  for (int s = 1; s <= radix; ++s)
    each_boundary([&](DataBoundary send) { each_boundary([&](DataBoundary receive) { visit(s, send, receive); }); });
  return best;
}

// Theorem 1 and the case P - 1 = g, where the sender's boundary meets the receiver's own position. Nothing: with
// this radix no cut fits these ranks.
constexpr std::optional<LastRound> dissemination_last_round(int ranks, int radix) noexcept {
  const int rounds = dissemination_rounds(ranks, radix);
  if (rounds == 0) return LastRound{};
  const std::int64_t all = dissemination_reach(radix, rounds - 1);
  const std::int64_t missing = ranks - all;  // from 1 to radix * all
  if (missing % all == 0) return LastRound{.whole = static_cast<int>(missing / all)};
  const int sender = static_cast<int>(missing / all) + 1;
  const std::int64_t needed = missing % all;  // of the last sender, if nothing is left out
  // P - 1 = g: what is needed ends at a boundary. The tuple with l_rcv = 0 and l_snd = 0 or 1 says the same
  // of the next one.
  for (int l = 0; l < rounds; ++l)
    for (int j = l == 0 ? 0 : 1; j <= (l == 0 ? 0 : radix); ++j)
      if (const DataBoundary send{l, j}; ranks_before(send, radix) == needed)
        return LastRound{.whole = sender - 1, .sent = needed, .boundary = send};
  const std::optional<DisseminationTuple> tuple = dissemination_tuple(ranks, radix);
  if (!tuple) return std::nullopt;
  // Cases 1, 2 and 5.
  return LastRound{.whole = tuple->sender - 1,
                   .sent = ranks_before(tuple->send, radix),
                   .boundary = tuple->send,
                   .left_out = ranks_before(tuple->receive, radix),
                   .left_boundary = tuple->receive};
}

}  // namespace papaya::patterns
