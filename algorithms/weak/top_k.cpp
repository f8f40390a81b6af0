#include "algorithms/weak/top_k.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <type_traits>

#include "base/clock.hpp"

namespace papaya {

namespace {

// Of numbers, in their order: without the sign, IEEE's bits are.
template <class Element>
auto magnitude(Element value) noexcept {
  using Bits = std::conditional_t<sizeof(Element) == 4, std::uint32_t, std::uint64_t>;
  return std::bit_cast<Bits>(value) & (std::numeric_limits<Bits>::max() >> 1);
}

std::size_t elements_sent(const WeakRequest& request) noexcept {
  const auto share = static_cast<double>(request.values[0]) / 1e6;
  const auto k = static_cast<std::size_t>(std::llround(share * static_cast<double>(request.count)));
  return std::clamp<std::size_t>(k, std::min<std::size_t>(request.count, 1), request.count);
}

// Values, then indices: whole lines, one at least.
std::size_t slot_bytes_of(const WeakRequest& request) noexcept {
  const std::size_t pairs = elements_sent(request);
  return in_lines(std::max<std::size_t>(pairs * (request.element_bytes + sizeof(std::uint32_t)), 1));
}

}  // namespace

template <class Element>
void LargestElements<Element>::add(const Element* contribution) noexcept {
  constexpr int shift = static_cast<int>(8 * sizeof(Element)) - 1 - bucket_bits;
  std::fill(buckets_.begin(), buckets_.end(), 0);
  double squares[4] = {};  // four, since additions wait for each other
  for (std::size_t i = 0; i < sums_.size(); ++i) {
    const Element sum = sums_[i] + contribution[i];
    sums_[i] = sum;
    ++buckets_[static_cast<std::size_t>(magnitude(sum) >> shift)];
    squares[i % 4] += static_cast<double>(sum) * static_cast<double>(sum);
  }
  squares_ = squares[0] + squares[1] + squares[2] + squares[3];
  squares_taken_ = 0;
}

template <class Element>
void LargestElements<Element>::take(std::size_t k, Element* values, std::uint32_t* indices) {
  if (k == 0) return;
  constexpr int shift = static_cast<int>(8 * sizeof(Element)) - 1 - bucket_bits;
  // The bucket in which the k-th largest is, and how many are in those above.
  std::size_t bucket = buckets_.size() - 1;
  std::size_t above = 0;
  while (above + buckets_[bucket] < k) above += buckets_[bucket--];

  boundary_.clear();
  for (const Element sum : sums_)
    if (static_cast<std::size_t>(magnitude(sum) >> shift) == bucket) boundary_.push_back(magnitude(sum));
  const auto last = boundary_.begin() + static_cast<std::ptrdiff_t>(k - above - 1);
  std::nth_element(boundary_.begin(), last, boundary_.end(), std::greater<>());
  const std::uint64_t least = *last;
  const auto larger = std::count_if(boundary_.begin(), last, [&](std::uint64_t one) { return one > least; });
  std::size_t equal = k - above - static_cast<std::size_t>(larger);  // so many of those that are just as large

  std::size_t taken = 0;
  for (std::size_t i = 0; taken < k; ++i) {
    const std::uint64_t size = magnitude(sums_[i]);
    if (size < least || (size == least && equal == 0)) continue;
    if (size == least) --equal;
    squares_taken_ += static_cast<double>(sums_[i]) * static_cast<double>(sums_[i]);
    values[taken] = sums_[i];
    indices[taken++] = static_cast<std::uint32_t>(i);
    sums_[i] = 0;
  }
}

template <class Element>
void LargestElements<Element>::take_all(std::size_t begin, std::size_t end, Element* values) noexcept {
  std::copy(sums_.begin() + static_cast<std::ptrdiff_t>(begin), sums_.begin() + static_cast<std::ptrdiff_t>(end),
            values);
  std::fill(sums_.begin() + static_cast<std::ptrdiff_t>(begin), sums_.begin() + static_cast<std::ptrdiff_t>(end),
            Element{});
  squares_taken_ = squares_;
}

template <class Element>
double LargestElements<Element>::relative_norm() const noexcept {
  if (squares_ == 0) return 0;
  return std::sqrt((squares_ - std::min(squares_, squares_taken_)) / squares_);
}

template <class Element>
SegmentShape TopK<Element>::segment(const WeakRequest& request) noexcept {
  return {2 * static_cast<std::size_t>(request.ranks) * slot_bytes_of(request), request.ranks};
}

template <class Element>
TopK<Element>::TopK(const Team& team, const WeakRequest& request)
    : Weak(team),
      count_(request.count),
      k_(elements_sent(request)),
      slot_bytes_(slot_bytes_of(request)),
      largest_(count_),
      source_(slot_bytes_),
      number_(team.first_round - 1),
      clock_(team.first_round - 1) {}

template <class Element>
TopK<Element>::~TopK() {
  wait::Site site;
  if (!may_end())
    team_.wire->wait(
        *team_.policy, site, [this] { return may_end(); }, nullptr);
}

// A rank's message with the present number.
template <class Element>
const std::byte* TopK<Element>::message_of(int rank) const noexcept {
  if (rank == team_.rank) return source_.data();
  return team_.wire->segment() +
         (2 * static_cast<std::size_t>(rank) + static_cast<std::size_t>(number_ % 2)) * slot_bytes_;
}

// The next one, which is in the source, to all others, the next ranks first.
template <class Element>
void TopK<Element>::send(std::size_t bytes) noexcept {
  ++number_;
  const std::size_t slot =
      (2 * static_cast<std::size_t>(team_.rank) + static_cast<std::size_t>(number_ % 2)) * slot_bytes_;
  for (int i = 1; i < team_.size; ++i)
    team_.wire->write_notify((team_.rank + i) % team_.size, slot, source_.data(), bytes, team_.rank, number_);
}

template <class Element>
Steps TopK<Element>::steps(Operands operands) {
  ++clock_;
  const bool sends_all = sends_all_next_ || k_ == count_;
  sends_all_next_ = false;
  status_ = {.clock = clock_,
             .oldest = clock_,
             .own = clock_,
             .ranks = team_.size,
             .bytes = count_ * sizeof(Element),
             .share = sends_all ? 1 : static_cast<double>(k_) / static_cast<double>(count_)};
  team_.wire->progress();  // who never waits takes what has come, too
  const std::size_t at_once = sends_all ? slot_bytes_ / sizeof(Element) : count_;
  auto* const result = static_cast<Element*>(operands.receive);
  if (count_ != 0) largest_.add(static_cast<const Element*>(operands.send));

  // The elements from `begin` on that a message is about: all, unless they are sent whole.
  for (std::size_t begin = 0; begin < count_; begin += at_once) {
    const std::size_t end = begin + std::min(at_once, count_ - begin);
    if (!team_.wire->are_sources_free()) {
      const std::uint64_t begin_ticks = clock::ticks();
      co_await released(*team_.wire);
      count_wait(begin_ticks);
    }
    auto* const own = reinterpret_cast<Element*>(source_.data());
    const std::size_t sent = sends_all ? end - begin : k_;
    if (sends_all)
      largest_.take_all(begin, end, own);
    else
      largest_.take(k_, own, reinterpret_cast<std::uint32_t*>(own + k_));
    send(sent * (sizeof(Element) + (sends_all ? 0 : sizeof(std::uint32_t))));
    if (begin == 0) tell_deposited(operands);

    std::fill(result + begin, result + end, Element{});
    for (int rank = 0; rank < team_.size; ++rank) {
      if (rank != team_.rank && team_.wire->look(rank) < number_) {
        const std::uint64_t begin_ticks = clock::ticks();
        co_await heard(rank, number_, rank);
        count_wait(begin_ticks);
      }
      const auto* const values = reinterpret_cast<const Element*>(message_of(rank));
      const auto* const indices = reinterpret_cast<const std::uint32_t*>(values + sent);
      if (sends_all)
        for (std::size_t i = 0; i < sent; ++i) result[begin + i] += values[i];
      else
        for (std::size_t i = 0; i < sent; ++i) result[indices[i]] += values[i];
    }
  }
  if (count_ == 0) tell_deposited(operands);
  status_.residual = largest_.relative_norm();
}

template class LargestElements<float>;
template class LargestElements<double>;
template class TopK<float>;
template class TopK<double>;

namespace {

constexpr Parameter parameters[] = {{.name = "per_million",
                                     .fallback = 10000,
                                     .lowest = 1,
                                     .highest = 1000000,
                                     .help = "elements of a million that a call sends; one at least"}};

const char* refusal(const WeakRequest& request) noexcept {
  if (request.type != kernels::ElementType::f32 && request.type != kernels::ElementType::f64)
    return "top_k compares magnitudes: its elements must be of type float or double";
  if (request.operation != kernels::Operation::sum)
    return "top_k adds up what it has not sent yet: its operation must be the sum";
  if (request.count > std::numeric_limits<std::uint32_t>::max())
    return "top_k numbers elements by 32 bits: split a contribution of 2^32 elements or more";
  return nullptr;
}

bool is_float(const WeakRequest& request) noexcept {
  return request.type == kernels::ElementType::f32;
}

constexpr WeakDescriptor descriptor = {
    .collective = WeakCollective::sparse_allreduce,
    .name = "top_k",
    .summary = "the largest elements with their indices to all ranks, the rest in a later call: one latency, p k pairs",
    .source = "Stich et al. 2018; Renggli et al. 2019 (SparCML); announced in Iakymchuk et al. 2021",
    .commutative_only = true,
    .refusal = refusal,
    .parameters = parameters,
    .segment = [](const WeakRequest& request) { return TopK<double>::segment(request); },
    .prepare = [](const Team& team, const WeakRequest& request) -> std::unique_ptr<Weak> {
      if (is_float(request)) return std::make_unique<TopK<float>>(team, request);
      return std::make_unique<TopK<double>>(team, request);
    },
};
const WeakRegistration registration(descriptor);

}  // namespace

}  // namespace papaya
