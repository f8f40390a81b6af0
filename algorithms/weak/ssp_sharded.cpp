#include "algorithms/weak/ssp_sharded.hpp"

#include <algorithm>
#include <cstring>
#include <memory>

#include "algorithms/weak/combine.hpp"
#include "base/clock.hpp"

namespace papaya {

namespace {

int shards_for(int ranks, std::size_t count, std::size_t element_bytes, std::size_t least_bytes) noexcept {
  const std::size_t worthwhile = std::max<std::size_t>(count * element_bytes / least_bytes, 1);
  return static_cast<int>(std::min({static_cast<std::size_t>(ranks), count, worthwhile}));
}

}  // namespace

SspShards::SspShards(int ranks, std::size_t count, std::size_t element_bytes, const Choice& choice) noexcept
    : ranks_(ranks),
      count_(count),
      element_bytes_(element_bytes),
      choice_(choice),
      shards_(shards_for(ranks, count, element_bytes, choice.least_bytes)) {}

// The first ones have an element more than the others.
std::size_t SspShards::first(int shard) const noexcept {
  if (shards_ == 0) return 0;
  const auto all = static_cast<std::size_t>(shards_);
  const auto before = static_cast<std::size_t>(shard);
  return count_ / all * before + std::min(before, count_ % all);
}

// What ranks that end tell each other, the states, the contributions.
SegmentShape SspShards::segment() const noexcept {
  return {part_at(shards_ == 0 ? 0 : ranks_, 0), 2 * shards_ + 2 * ranks_, ranks_, true};
}

std::size_t SspShards::state_at(int shard, std::uint64_t slot) const noexcept {
  return closing_at(ranks_) +
         (static_cast<std::size_t>(shard) * static_cast<std::size_t>(slots()) + static_cast<std::size_t>(slot)) *
             state_bytes();
}

std::size_t SspShards::part_at(int rank, std::uint64_t turn) const noexcept {
  return state_at(shards_, 0) + (2 * static_cast<std::size_t>(rank) + static_cast<std::size_t>(turn)) * part_bytes();
}

SspShard::SspShard(const Team& team, const SspShards& shards, const Reduction& reduction)
    : team_(team),
      shards_(shards),
      reduction_(reduction),
      bytes_(shards.bytes(team.rank)),
      from_(static_cast<std::size_t>(team.size)),
      parts_(from_.size()),
      slots_(static_cast<std::size_t>(shards.slots())) {}

bool SspShard::serve() noexcept {
  bool has_taken = false;
  std::uint64_t age = ~std::uint64_t{0};
  for (int rank = 0; rank < team_.size; ++rank) {
    From& from = from_[static_cast<std::size_t>(rank)];
    const SspPart part = SspPart::of(team_.wire->look(shards_.part_id(rank)));
    has_taken |= part.clock != from.part.clock;
    from.part = part;
    age = std::min(age, part.clock);
  }
  if (is_due(age)) {
    const std::optional<std::uint64_t> slot = free_slot();
    if (!slot) return has_taken;
    make_state({age, *slot});
    return true;
  }
  if (has_taken && !shards_.is_consistent()) acknowledge();
  return has_taken;
}

// `age` would be the new state's.
bool SspShard::is_due(std::uint64_t age) const noexcept {
  if (!shards_.is_consistent()) return age > state_.age;
  return std::all_of(from_.begin(), from_.end(), [](const From& from) { return from.part.clock > from.told; });
}

// There is one (2, 3), but what it held may be under way still.
std::optional<std::uint64_t> SspShard::free_slot() noexcept {
  std::uint64_t seen = ~std::uint64_t{0};
  for (const From& from : from_) seen = std::min(seen, from.part.seen);
  const auto found =
      std::find_if(slots_.begin(), slots_.end(), [&](const Slot& slot) { return slot.age == 0 || slot.age < seen; });
  if (found == slots_.end()) return std::nullopt;
  if (found->is_under_way) {
    if (!team_.wire->are_sources_free()) return std::nullopt;
    for (Slot& slot : slots_) slot.is_under_way = false;
  }
  return static_cast<std::uint64_t>(found - slots_.begin());
}

// It is made where this rank takes it, and goes to the others from there; to this rank last, so that whoever has seen
// it here knows that all have been sent it.
void SspShard::make_state(const SspState& state) noexcept {
  const std::size_t at = shards_.state_at(team_.rank, state.slot);
  std::byte* const made = team_.wire->segment() + at;
  for (std::size_t rank = 0; rank < from_.size(); ++rank) {
    const auto newer = static_cast<std::uint32_t>(from_[rank].part.clock - state.age);
    std::memcpy(made + rank * sizeof newer, &newer, sizeof newer);
    from_[rank].told = from_[rank].part.clock;
  }
  combine(made + shards_.header_bytes());

  const std::size_t bytes = shards_.header_bytes() + bytes_;
  const int id = shards_.state_id(team_.rank);
  for (int i = 1; i < team_.size; ++i)
    team_.wire->write_notify((team_.rank + i) % team_.size, at, made, bytes, id, state.value());
  team_.wire->notify(team_.rank, id, state.value());
  Slot& slot = slots_[static_cast<std::size_t>(state.slot)];
  slot.age = state.age;
  slot.is_under_way = !team_.wire->takes_at_once(bytes);
  state_ = state;
}

void SspShard::combine(std::byte* out) noexcept {
  for (std::size_t rank = 0; rank < from_.size(); ++rank)
    parts_[rank] = team_.wire->segment() + shards_.part_at(static_cast<int>(rank), from_[rank].part.turn);
  combine_all(reduction_, parts_, out, bytes_);
}

// A rank whose next call must await the next state is told with that.
void SspShard::acknowledge() noexcept {
  for (int rank = 0; rank < team_.size; ++rank) {
    From& from = from_[static_cast<std::size_t>(rank)];
    const std::uint64_t clock = from.part.clock;
    if (clock == from.told || clock + 1 > state_.age + shards_.slack()) continue;
    from.told = from.acknowledged = clock;
    team_.wire->notify(rank, shards_.taken_id(team_.rank), clock);
  }
}

SspSharded::SspSharded(const Team& team, const SspShards& shards, const Reduction& reduction, Keeper keeper)
    : Weak(team),
      shards_(shards),
      keeper_(keeper),
      // A user's operation is called by the program's own threads only.
      may_have_thread_(keeper == Keeper::thread && team.size > 1 && team.wire->serves_two_threads() &&
                       reduction.by_table),
      clock_(team.first_round - 1),
      sides_(static_cast<std::size_t>(shards.size())),
      closings_(static_cast<std::size_t>(team.size)),
      portions_(shards.is_consistent() ? 0 : sides_.size()) {
  if (shards_.size() != 0 && !team.wire->takes_at_once(shards_.bytes(0)))
    sources_.resize(shards_.first_byte(shards_.size()));
  if (team.rank >= shards_.size()) return;
  shard_.emplace(team, shards_, reduction);
  if (!may_have_thread_) return;
  service_.emplace(*team.wire, "papaya-shard", [this] { return shard_->serve(); });
  if (!service_->start()) service_.reset();
}

Steps SspSharded::steps(Operands operands) {
  ++clock_;
  status_ = {.clock = clock_, .oldest = clock_, .own = clock_, .ranks = team_.size, .bytes = operands.bytes};
  team_.wire->progress();
  bool is_there = has_come(operands);
  tell_deposited(operands);
  if (!is_there) {
    const std::uint64_t begin = clock::ticks();
    co_await until([&] { return has_come(operands); });
    count_wait(begin);
  }
  take_result(static_cast<std::byte*>(operands.receive));
}

// Sends and serves besides.
bool SspSharded::has_come(const Operands& operands) noexcept {
  if (sides_.empty()) return true;
  do {
    look_at_states();
    send_parts(operands);
  } while (keeper_ != Keeper::caller && !service_ && serve());
  return is_fresh(oldest_);
}

void SspSharded::look_at_states() noexcept {
  std::uint64_t oldest = ~std::uint64_t{0};
  for (int shard = 0; shard < shards_.size(); ++shard) {
    Side& side = sides_[static_cast<std::size_t>(shard)];
    const SspState state = SspState::of(team_.wire->look(shards_.state_id(shard)));
    oldest = std::min(oldest, state.age);
    if (state.age == side.state.age) continue;
    side.state = state;
    if (!shards_.is_consistent()) side.taken = std::max(side.taken, own_in(shard));
  }
  if (oldest == oldest_) return;
  oldest_ = oldest;
  if (shards_.is_consistent())
    for (int shard = 0; shard < shards_.size(); ++shard) sides_[static_cast<std::size_t>(shard)].taken = own_in(shard);
}

// With `consistent`: the newest that has come of all shards.
const std::byte* SspSharded::usable_state(int shard) const noexcept {
  const SspState& state = sides_[static_cast<std::size_t>(shard)].state;
  const bool is_ahead = shards_.is_consistent() && state.age != oldest_;
  return team_.wire->segment() + shards_.state_at(shard, is_ahead ? 1 - state.slot : state.slot);
}

std::uint64_t SspSharded::own_in(int shard) const noexcept {
  std::uint32_t newer = 0;
  std::memcpy(&newer, usable_state(shard) + static_cast<std::size_t>(team_.rank) * sizeof newer, sizeof newer);
  return (shards_.is_consistent() ? oldest_ : sides_[static_cast<std::size_t>(shard)].state.age) + newer;
}

void SspSharded::send_parts(const Operands& operands) noexcept {
  if (has_sources_ && team_.wire->are_sources_free()) {
    has_sources_ = false;
    for (Side& side : sides_) side.is_under_way = false;
  }
  for (int shard = 0; shard < shards_.size(); ++shard)
    if (may_send(shard)) send_part(shard, static_cast<const std::byte*>(operands.send));
}

bool SspSharded::may_send(int shard) noexcept {
  Side& side = sides_[static_cast<std::size_t>(shard)];
  if (side.sent.clock == clock_) return false;
  if (side.taken != side.sent.clock && !shards_.is_consistent())
    side.taken = std::max(side.taken, team_.wire->look(shards_.taken_id(shard)));
  return side.taken == side.sent.clock && !side.is_under_way;
}

void SspSharded::send_part(int shard, const std::byte* operand) noexcept {
  Side& side = sides_[static_cast<std::size_t>(shard)];
  const std::size_t first = shards_.first_byte(shard);
  const std::size_t bytes = shards_.bytes(shard);
  const std::byte* source = operand + first;
  // The operand may change after the call, when the wire may still read it.
  if (!team_.wire->takes_at_once(bytes)) {
    std::memcpy(sources_.data() + first, source, bytes);
    source = sources_.data() + first;
    side.is_under_way = has_sources_ = true;
  }
  side.sent = {clock_, side.state.age, side.sent.turn ^ 1};
  team_.wire->write_notify(shard, shards_.part_at(team_.rank, side.sent.turn), source, bytes,
                           shards_.part_id(team_.rank), side.sent.value());
  if (shard == team_.rank && service_ && team_.wire->service_bell() == nullptr) service_->wake();
}

void SspSharded::take_result(std::byte* receive) noexcept {
  for (int shard = 0; shard < shards_.size(); ++shard) {
    std::memcpy(receive + shards_.first_byte(shard), usable_state(shard) + shards_.header_bytes(),
                shards_.bytes(shard));
    const std::uint64_t own = sides_[static_cast<std::size_t>(shard)].own = own_in(shard);
    status_.own = shard == 0 ? own : std::min(status_.own, own);
    if (!portions_.empty())
      portions_[static_cast<std::size_t>(shard)] = {shards_.first(shard),
                                                    sides_[static_cast<std::size_t>(shard)].state.age, own};
    status_.oldest = oldest_;
  }
}

// As far as this rank can tell: who keeps a shard, whose part is too old there; else, whose shard's state is.
bool SspSharded::is_missing(int rank) const {
  if (shard_) return !is_fresh(SspPart::of(team_.wire->look(shards_.part_id(rank))).clock);
  return rank < shards_.size() && !is_fresh(sides_[static_cast<std::size_t>(rank)].state.age);
}

// The destructor's wait, too, is for what others tell when they end.
SspSharded::~SspSharded() {
  close();
  wait::Site site;
  if (!has_heard_all())
    team_.wire->wait(
        *team_.policy, site, [this] { return has_heard_all(); }, nullptr);
}

bool SspSharded::may_end() noexcept {
  if (is_under_way()) return false;
  close();
  return has_heard_all();
}

bool SspSharded::deals_with(int rank) const noexcept {
  return rank != team_.rank && std::min(rank, team_.rank) < shards_.size();
}

void SspSharded::close() noexcept {
  if (is_closed_) return;
  is_closed_ = true;
  if (service_) service_->stop();
  if (clock_ < team_.first_round) return;
  for (int rank = 0; rank < team_.size; ++rank) {
    if (!deals_with(rank)) continue;
    Closing& closing = closings_[static_cast<std::size_t>(rank)];
    closing = {.part = rank < shards_.size() ? sides_[static_cast<std::size_t>(rank)].sent.value() : 0,
               .state = shard_ ? shard_->state() : 0,
               .taken = shard_ ? shard_->taken(rank) : 0};
    team_.wire->write_notify(rank, SspShards::closing_at(team_.rank), &closing, sizeof closing,
                             shards_.closing_id(team_.rank), 1);
  }
}

bool SspSharded::has_heard_all() noexcept {
  if (clock_ < team_.first_round) return true;
  for (int rank = 0; rank < team_.size; ++rank)
    if (deals_with(rank) && !has_heard(rank)) return false;
  return team_.wire->are_sources_free();
}

bool SspSharded::has_heard(int rank) noexcept {
  Notified& wire = *team_.wire;
  if (wire.look(shards_.closing_id(rank)) == 0) return false;
  Closing last{};
  std::memcpy(&last, wire.segment() + SspShards::closing_at(rank), sizeof last);
  return (!shard_ || wire.look(shards_.part_id(rank)) == last.part) &&
         (rank >= shards_.size() ||
          (wire.look(shards_.state_id(rank)) == last.state && wire.look(shards_.taken_id(rank)) == last.taken));
}

namespace {

enum Values : std::size_t { slack, consistent, thread, shard_bytes };

SspShards shards_of(const WeakRequest& request) noexcept {
  return {request.ranks,
          request.count,
          request.element_bytes,
          {.slack = static_cast<std::uint64_t>(request.values[slack]),
           .is_consistent = request.values[consistent] != 0,
           .least_bytes = static_cast<std::size_t>(request.values[shard_bytes])}};
}

constexpr Parameter parameters[] = {
    slack_parameter,
    {.name = "consistent",
     .fallback = 0,
     .lowest = 0,
     .highest = 1,
     .help = "1: all shards of a result hold the same contributions"},
    {.name = "thread",
     .fallback = 0,
     .lowest = 0,
     .highest = 1,
     .help = "1: a thread keeps the shard, where transport and reduction permit; 0: the calls do"},
    {.name = "shard_bytes",
     .fallback = 4096,
     .lowest = 1,
     .highest = 1 << 30,
     .help = "bytes that a shard has at least; messages below twice that have one"},
};

constexpr WeakDescriptor descriptor = {
    .collective = WeakCollective::ssp_allreduce,
    .name = "ssp_sharded",
    .summary =
        "shards, each kept by a rank that combines the newest contributions and sends the result: 2(p-1) "
        "messages of a shard for each rank",
    .source = "Faustino 2020, 3.3 and 3.4",
    .automatic_from_bytes = 16384,  // docs/measurements.md
    .automatic_without_slack = false,
    .parameters = parameters,
    .segment = [](const WeakRequest& request) { return shards_of(request).segment(); },
    .prepare = [](const Team& team, const WeakRequest& request) -> std::unique_ptr<Weak> {
      return std::make_unique<SspSharded>(
          team, shards_of(request), *request.reduction,
          request.values[thread] != 0 ? SspSharded::Keeper::thread : SspSharded::Keeper::calls);
    },
};

const WeakRegistration registration(descriptor);

}  // namespace

std::int64_t SspSharded::in_force(std::size_t parameter, std::int64_t asked) const noexcept {
  return parameter == thread ? (shard_ ? has_thread() : may_have_thread_) : asked;
}

}  // namespace papaya
