#include "algorithms/weak/threshold.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace papaya {

namespace {

// With its header less than what MPI over TCP sends without asking the receiver.
constexpr std::size_t most_chosen_bytes = 61440;
// A chunk takes as much longer as so many bytes on a link: 26 us at 10 Gbit/s, and 0.26 ms at 1 Gbit/s where two cores
// carry eight nodes (docs/architecture/weak.md). Of messages between 256 KiB and 2 MiB on 4, 8 and 16 nodes 24 KiB are
// as good; 16 KiB are up to a tenth slower.
constexpr std::size_t cost_bytes = 32768;

// Of the parameters, by their position.
constexpr std::size_t chunk_parameter = 2;
struct Values {
  explicit Values(const WeakRequest& request) noexcept
      : is_of_ranks(request.values[0] != 0),
        route(request.values[1]),
        chunk_bytes(static_cast<std::size_t>(request.values[chunk_parameter])),
        slots(static_cast<std::uint64_t>(request.values[3])) {}
  bool is_of_ranks;
  std::int64_t route;
  std::size_t chunk_bytes;
  std::uint64_t slots;
};

int tree_levels(int ranks) noexcept {
  return static_cast<int>(std::bit_width(static_cast<unsigned>(ranks - 1)));
}

}  // namespace

ThresholdPlan::ThresholdPlan(const WeakRequest& request, Towards towards)
    : towards_(towards),
      ranks_(request.ranks),
      root_(request.root),
      count_(request.count),
      element_bytes_(request.element_bytes),
      slots_(Values(request).slots),
      is_chunk_chosen_(Values(request).chunk_bytes == 0) {
  const Values values(request);
  elements_ = values.is_of_ranks ? count_ : patterns::share_of(request.share, count_);
  ranks_taking_part_ = values.is_of_ranks
                           ? static_cast<int>(patterns::share_of(request.share, static_cast<std::size_t>(ranks_)))
                           : ranks_;
  if (values.is_of_ranks)
    share_ = static_cast<double>(ranks_taking_part_) / ranks_;
  else if (count_ != 0)
    share_ = static_cast<double>(elements_) / static_cast<double>(count_);
  takes_part_ = patterns::taking_part(ranks_, root_, ranks_taking_part_);
  const auto in_chunks_of = [&](std::size_t bytes) {
    chunk_elements_ = std::clamp<std::size_t>(bytes / std::max<std::size_t>(element_bytes_, 1), 1,
                                              std::max<std::size_t>(elements_, 1));
  };
  in_chunks_of(is_chunk_chosen_ ? most_chosen_bytes : values.chunk_bytes);

  // Chunk times until the last rank has the message.
  const bool in_rank_order = towards == Towards::root && !request.reduction->commutative;
  const auto length = static_cast<std::uint64_t>(ranks_taking_part_);
  const std::uint64_t by_chain = chunks() * (in_rank_order ? 2 : 1) + length;
  const std::uint64_t by_tree = chunks() * static_cast<std::uint64_t>(tree_levels(ranks_taking_part_)) + 2;
  const bool is_chain = values.route == 2 || (values.route == 0 && by_chain < by_tree);
  route_ = !is_chain       ? patterns::Route::binomial
           : in_rank_order ? patterns::Route::both_sides
                           : patterns::Route::around;
  if (is_chunk_chosen_ && is_chain) in_chunks_of(chain_chunk_bytes(in_rank_order));
}

// The header has the formula.
std::size_t ThresholdPlan::chain_chunk_bytes(bool in_rank_order) const noexcept {
  const auto bytes = static_cast<double>(elements_) * static_cast<double>(element_bytes_);
  const double fill = std::max(ranks_taking_part_ - 2, 1);
  const double best = std::sqrt((in_rank_order ? 2.0 : 1.0) * bytes * static_cast<double>(cost_bytes) / fill);
  return static_cast<std::size_t>(
      std::clamp(best, static_cast<double>(Streams::least_chunk_bytes), static_cast<double>(most_chosen_bytes)));
}

std::int64_t ThresholdPlan::in_force(std::size_t parameter, std::int64_t asked) const noexcept {
  return parameter == chunk_parameter && asked == 0 ? static_cast<std::int64_t>(chunk_elements_ * element_bytes_)
                                                    : asked;
}

// Long chunks of several children share the slots that one would have, but for four each: the link to the parent is
// theirs in turn. Shorter ones that papaya chose have more slots, so that as many bytes are under way.
std::uint64_t ThresholdPlan::slots() const noexcept {
  if (chunk_bytes() <= Streams::least_chunk_bytes) return slots_;
  const bool is_shorter = is_chunk_chosen_ && chunks() > 1 && chunk_bytes() < most_chosen_bytes;
  const std::uint64_t of_one = is_shorter ? slots_ * most_chosen_bytes / chunk_bytes() : slots_;
  return std::clamp<std::uint64_t>(of_one / static_cast<std::uint64_t>(writers()), std::min<std::uint64_t>(of_one, 4),
                                   of_one);
}

int ThresholdPlan::most_children() const noexcept {
  switch (route_) {
    case patterns::Route::binomial:
      return std::max(tree_levels(ranks_), 1);
    case patterns::Route::around:
      return 1;
    case patterns::Route::both_sides:
      return 2;
  }
  return 0;
}

SegmentShape ThresholdPlan::segment() const noexcept {
  return Streams::segment_of(1 + most_children(), writers(), slots(), chunk_bytes());
}

std::vector<Streams::Peer> ThresholdPlan::peers(int rank) const {
  // Ids depend on how many peers there are: as many on all ranks, though they are not all used.
  std::vector<Streams::Peer> peers(
      static_cast<std::size_t>(1 + most_children()),
      {.to = rank, .from = rank, .slots_there = 0, .slots_here = 0, .number_there = 0, .number_here = 0});
  if (!takes_part(rank)) return peers;
  const patterns::Neighbours mine = neighbours(rank);
  if (mine.parent >= 0) {
    const std::vector<patterns::Child> siblings = neighbours(mine.parent).children;
    const auto self = std::find_if(siblings.begin(), siblings.end(), [&](auto& one) { return one.rank == rank; });
    const int number = static_cast<int>(self - siblings.begin());
    peers[0] = {.to = mine.parent,
                .from = mine.parent,
                .slots_there = towards_ == Towards::root ? number : 0,
                .slots_here = 0,
                .number_there = 1 + number,
                .number_here = 0};
  }
  for (std::size_t i = 0; i < mine.children.size(); ++i)
    peers[1 + i] = {.to = mine.children[i].rank,
                    .from = mine.children[i].rank,
                    .slots_there = 0,
                    .slots_here = towards_ == Towards::root ? static_cast<int>(i) : 0,
                    .number_there = 0,
                    .number_here = 1 + static_cast<int>(i)};
  return peers;
}

WeakStatus ThresholdPlan::status(std::uint64_t clock, bool has_result, bool is_in_result) const noexcept {
  return {.clock = clock,
          .oldest = has_result ? clock : 0,
          .own = is_in_result ? clock : 0,
          .ranks = ranks_taking_part_,
          .bytes = has_result ? elements_ * element_bytes_ : 0,
          .share = share_};
}

}  // namespace papaya
