#include "algorithms/sorted_ring.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "base/clock.hpp"

namespace papaya {

namespace {

// The words of a slot: a hop, and a wait or an expectation for each rank.
std::size_t bytes_of_words(int ranks) noexcept {
  return in_lines((static_cast<std::size_t>(ranks) + 1) * sizeof(std::uint32_t));
}

// A time in a word; never 0, which says that there is none.
std::uint32_t word_of(std::uint64_t ns) noexcept {
  return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(ns, 1, 0xffffffffu));
}

}  // namespace

SegmentShape SortedRing::segment(int ranks, const Shape& shape) {
  return {window.slots * (bytes_of_words(ranks) + shape.chunk_bytes), 2 * ranks};
}

SortedRing::SortedRing(const Team& team, const Shape& shape)
    : OverWire(team),
      shape_(shape),
      words_bytes_(bytes_of_words(team.size)),
      order_(static_cast<std::size_t>(team.size)),
      carried_(2 * (words_bytes_ + shape.chunk_bytes)),
      begin_(team.first_round - 1),
      end_(begin_),
      to_next_(window, begin_),
      from_previous_(window, begin_),
      last_credit_(static_cast<std::size_t>(team.size), begin_) {
  std::iota(order_.begin(), order_.end(), 0);
  measured_order_ = order_;
  arrivals_.late_ns.resize(static_cast<std::size_t>(team.size));
  take_position();
}

// Waits for the last credits of the others.
SortedRing::~SortedRing() {
  wait::Site site;
  for (int peer = 0; peer < team_.size; ++peer)
    if (const std::uint64_t last = last_credit_[static_cast<std::size_t>(peer)]; last > begin_)
      team_.wire->wait(
          *team_.policy, site, [&] { return team_.wire->look(credit_id(peer)) >= last; }, this);
}

std::size_t SortedRing::slot_offset(std::uint64_t number) const noexcept {
  return static_cast<std::size_t>(number % window.slots) * (words_bytes_ + shape_.chunk_bytes);
}
std::byte* SortedRing::slot(std::uint64_t number) const noexcept {
  return team_.wire->segment() + slot_offset(number);
}

void SortedRing::take_position() {
  const auto ranks = static_cast<std::size_t>(team_.size);
  const auto mine = static_cast<std::size_t>(std::find(order_.begin(), order_.end(), team_.rank) - order_.begin());
  position_ = static_cast<int>(mine);
  next_ = order_[(mine + 1) % ranks];
  previous_ = order_[(mine + ranks - 1) % ranks];
  out_.clear();  // to be planned anew
}

void SortedRing::plan(int pre_steps) {
  if (pre_steps == pre_steps_ && !out_.empty()) return;
  pre_steps_ = pre_steps;
  out_ = patterns::link_passes(team_.size, shape_.blocks, pre_steps, position_);
  in_ = patterns::link_passes(team_.size, shape_.blocks, pre_steps, (position_ + team_.size - 1) % team_.size);
}

// One call's progress, in chunks.
struct SortedRing::Call {
  SortedRing& ring;
  const Operands& operands;
  const std::uint64_t entered_ns = clock::monotonic_ns();
  const std::size_t element = operands.reduction->element_bytes;
  const std::size_t per_chunk = ring.shape_.chunk_bytes / element;  // elements
  const std::uint64_t chunks;                                       // of a block
  std::uint64_t received = 0;
  std::uint64_t sent = 0;
  std::uint64_t total_in = 0;
  std::uint64_t total_out = 0;

  Call(SortedRing& r, const Operands& o)
      : ring(r), operands(o), chunks(std::max<std::size_t>(1, (largest_block() + per_chunk - 1) / per_chunk)) {
    int steps = 0;
    if (ring.shape_.blocks > 1)
      steps = std::min(ring.shape_.most_pre_steps, patterns::pre_steps(ring.order_, ring.arrivals_, chunks));
    ring.plan(steps);
    total_in = ring.in_.size() * chunks;
    total_out = ring.out_.size() * chunks;
  }

  std::size_t blocks() const noexcept { return static_cast<std::size_t>(ring.shape_.blocks); }
  std::size_t largest_block() const noexcept { return (operands.count + blocks() - 1) / blocks(); }
  // The first element of a block; of the one after the last the end.
  std::size_t block_begin(std::size_t block) const noexcept {
    return block * (operands.count / blocks()) + std::min(block, operands.count % blocks());
  }
  // Numbers that a call uses up, on every link: a block passes it twice at most.
  std::uint64_t numbers() const noexcept { return 2 * blocks() * chunks; }

  struct Chunk {
    std::size_t offset;    // bytes
    std::size_t elements;  // a short block's last chunks may be empty
  };
  Chunk chunk_at(const patterns::Pass& pass, std::uint64_t chunk) const noexcept {
    const auto block = static_cast<std::size_t>(pass.block);
    const std::size_t begin = block_begin(block);
    const std::size_t size = block_begin(block + 1) - begin;
    const std::size_t from = std::min(static_cast<std::size_t>(chunk) * per_chunk, size);
    return {(begin + from) * element, std::min(per_chunk, size - from)};
  }
  // Of block 0, the first chunk has words with it.
  static bool carries_words(const patterns::Pass& pass, std::uint64_t chunk) noexcept {
    return pass.block == 0 && chunk == 0;
  }
  // What this rank sends on with words.
  std::byte* carried(bool is_result) const noexcept {
    return ring.carried_.data() + (is_result ? ring.words_bytes_ + ring.shape_.chunk_bytes : 0);
  }

  bool may_receive() const noexcept {
    return received < total_in &&
           ring.team_.wire->look(ring.arrival_id(ring.previous_)) > ring.from_previous_.released();
  }
  void receive() noexcept {
    const patterns::Pass& pass = ring.in_[received / chunks];
    const std::uint64_t chunk = received % chunks;
    const Chunk c = chunk_at(pass, chunk);
    const std::byte* const slot = ring.slot(ring.from_previous_.released() + 1);
    const std::byte* const from = slot + ring.words_bytes_;
    auto* const to = static_cast<std::byte*>(operands.receive) + c.offset;
    if (pass.is_result)
      std::memcpy(to, from, c.elements * element);
    else
      operands.reduction->combine(*operands.reduction, from, static_cast<const std::byte*>(operands.send) + c.offset,
                                  to, c.elements);
    if (carries_words(pass, chunk)) take_words(slot, pass.is_result);
    ++received;
    if (ring.from_previous_.release()) ring.return_credit();
  }

  // The words of block 0, which go on with it.
  void take_words(const std::byte* words, bool is_result) noexcept {
    std::memcpy(carried(is_result), words, ring.words_bytes_);
    auto* const expectation = reinterpret_cast<std::uint32_t*>(carried(true));
    patterns::Arrivals& arrivals = ring.arrivals_;
    if (is_result) {
      arrivals.hop_ns = expectation[0];
      std::copy_n(expectation + 1, arrivals.late_ns.size(), arrivals.late_ns.begin());
    } else if (ring.position_ + 1 == ring.team_.size) {
      // At the last position all waits are there.
      put_wait();
      patterns::learn_arrivals(
          arrivals, ring.measured_order_,
          {reinterpret_cast<const std::uint32_t*>(carried(false)) + 1, static_cast<std::size_t>(ring.team_.size)});
      expectation[0] = arrivals.hop_ns;
      std::copy(arrivals.late_ns.begin(), arrivals.late_ns.end(), expectation + 1);
    } else {
      return;
    }
    ring.waited_ns_ = word_of(clock::monotonic_ns() - entered_ns);
  }
  void put_wait() const noexcept {
    reinterpret_cast<std::uint32_t*>(carried(false))[1 + ring.team_.rank] = ring.waited_ns_;
  }

  bool may_send() noexcept {
    if (sent == total_out) return false;
    const int brought_by = ring.out_[sent / chunks].brought_by;
    if (brought_by >= 0 && received <= static_cast<std::uint64_t>(brought_by) * chunks + sent % chunks) return false;
    return ring.to_next_.has_slot([this] { return ring.team_.wire->look(ring.credit_id(ring.next_)); });
  }
  void send() noexcept {
    const patterns::Pass& pass = ring.out_[sent / chunks];
    const std::uint64_t chunk = sent % chunks;
    const Chunk c = chunk_at(pass, chunk);
    const bool begins_here = pass.brought_by < 0;
    const std::byte* from = static_cast<const std::byte*>(begins_here ? operands.send : operands.receive) + c.offset;
    const std::uint64_t number = ring.to_next_.send();
    std::size_t offset = ring.slot_offset(number) + ring.words_bytes_;
    std::size_t bytes = c.elements * element;
    if (carries_words(pass, chunk)) {
      std::byte* const with_words = carried(pass.is_result);
      if (begins_here) std::memset(with_words, 0, ring.words_bytes_);
      if (!pass.is_result) put_wait();
      if (bytes != 0) std::memcpy(with_words + ring.words_bytes_, from, bytes);
      from = with_words;
      offset -= ring.words_bytes_;
      bytes += ring.words_bytes_;
    }
    ring.team_.wire->write_notify(ring.next_, offset, from, bytes, ring.arrival_id(ring.team_.rank), number);
    ++sent;
  }
};

Steps SortedRing::steps(Operands operands) {
  if (team_.size == 1) {
    std::memmove(operands.receive, operands.send, operands.bytes);
    co_return;
  }
  Call call(*this, operands);
  bool told = false;
  while (call.received < call.total_in || call.sent < call.total_out) {
    const bool receives = call.may_receive();
    if (receives) call.receive();
    const bool sends = call.may_send();
    if (sends) call.send();
    if (receives || sends) continue;
    if (!told) tell_deposited(operands);
    told = true;
    co_await until([&] { return call.may_receive() || call.may_send(); },
                   call.received < call.total_in ? previous_ : next_);
  }
  team_.wire->release_sources();
  if (!told) tell_deposited(operands);
  end_call(call.numbers());
}

void SortedRing::return_credit() noexcept {
  team_.wire->notify(previous_, credit_id(team_.rank), from_previous_.released());
}

// Returns the credit that whoever comes before this rank in the next call needs, and knows what the one after
// it returns.
void SortedRing::end_call(std::uint64_t numbers) {
  last_credit_[static_cast<std::size_t>(next_)] = to_next_.last_credit();
  const int next = next_;
  const int previous = previous_;
  end_ += numbers;
  measured_order_ = order_;
  if (patterns::sort_by_arrival(order_, arrivals_)) take_position();

  const bool is_due = from_previous_.skip_to(end_);
  if (previous_ != previous) from_previous_.return_credit();
  if (is_due || previous_ != previous) return_credit();
  // The next rank has done the same.
  to_next_.skip_to(end_);
  if (next_ != next) {
    to_next_.expect_credit();
    to_next_.forget_released(begin_);  // what the other one said is true of its own slots
  }
  last_credit_[static_cast<std::size_t>(next_)] = to_next_.last_credit();
}

}  // namespace papaya
