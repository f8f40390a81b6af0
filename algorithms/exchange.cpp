#include "algorithms/exchange.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "base/copy.hpp"

namespace papaya {

bool Exchange::run(const Operands& operands, wait::Site& site) {
  if (operands.bytes <= short_bytes_ && !operands.declines && may_take_early(operands))
    return run_short(operands, site);
  return run_long(operands, site);
}

bool Exchange::run_long(const Operands& operands, wait::Site& site) {
  reading_ = may_read_ && rounds_.team().read_memory != nullptr && reads_directly(operands);
  if (!operands.declines && !reading_ && !rounds_.borrow(deposit_bytes(operands), site))
    return run_left_out(operands, site);
  const bool done = run_in_fragments(operands, site);
  rounds_.give_back(next_);
  return done;
}

// There is no memory to deposit in.
bool Exchange::run_left_out(const Operands& operands, wait::Site& site) noexcept {
  Operands left_out = operands;
  left_out.declines = true;
  reading_ = false;
  return run_in_fragments(left_out, site);
}

bool Exchange::run_in_fragments(const Operands& operands, wait::Site& site) noexcept {
  const Team& team = rounds_.team();
  const std::size_t largest = std::max<std::size_t>(reading_ ? operands.bytes : round_bytes(operands), 1);
  const std::uint64_t first = next_;
  const std::uint64_t count = std::max<std::uint64_t>((operands.bytes + largest - 1) / largest, 1);
  next_ = first + count;
  const auto fragment_of = [&](std::uint64_t round) {
    const std::size_t offset = static_cast<std::size_t>(round - first) * largest;
    return Fragment{round, offset, std::min(largest, operands.bytes - offset)};
  };

  rounds_.enter(first);
  rounds_.wait_until_free(first, site, static_cast<Prepared*>(this));
  if (operands.declines)
    rounds_.publish(first, team.rank, Rounds::declined);
  else if (reading_)
    offer(operands, first);
  else
    deposit(operands, fragment_of(first));
  if (operands.deposited != nullptr) operands.deposited(operands.context);
  if (!operands.declines) keep(operands);

  bool declined = operands.declines;
  const bool early = may_take_early(operands);
  std::uint64_t deposited = first + 1;
  for (std::uint64_t round = first; round < next_; ++round) {
    const Fragment fragment = fragment_of(round);
    waiting_count_ = 0;
    for (int i = 1; i < team.size; ++i)
      waiting_[static_cast<std::size_t>(waiting_count_++)] = (team.rank + i) % team.size;
    // After the first round it is known that nobody declines.
    const bool may_take = early || round != first;
    if (deposited == round) {
      rounds_.wait_until_free(round, site, static_cast<Prepared*>(this));
      deposit(operands, fragment_of(deposited++));
    }
    const auto ready = [&] {
      take_ready(operands, fragment, may_take, declined);
      if (waiting_count_ == 0) return true;
      // Nothing to take: run ahead.
      if (!declined && deposited < next_ && rounds_.is_free(deposited)) deposit(operands, fragment_of(deposited++));
      return false;
    };
    if (!ready())
      team.policy->until(
          site, rounds_.bell(), static_cast<std::uint32_t>(round), ready, [] { return false; },
          static_cast<Prepared*>(this));
    if (round == first) {
      rounds_.all_have_released(first);
      if (!declined && !early)
        for (int i = 1; i < team.size; ++i) take_any(operands, fragment, (team.rank + i) % team.size);
    }
    rounds_.ring(round);
    if (declined) break;
    if (count > 1) rounds_.return_credit(round + 1);
  }
  rounds_.return_credit(next_);
  if (reading_ && !declined) {
    // The others read this rank's memory, which is the program's again afterwards.
    rounds_.wait_until_released(next_, site, static_cast<Prepared*>(this));
    if (rounds_.anybody_refused(first)) {
      may_read_ = false;
      Operands again = operands;
      again.deposited = nullptr;
      return run(again, site);
    }
  }
  return !declined;
}

// One round without fragments: the path to the flag is as short as it can be.
bool Exchange::run_short(const Operands& operands, wait::Site& site) noexcept {
  const Team& team = rounds_.team();
  const std::size_t bytes = operands.bytes;
  const auto* const send = static_cast<const std::byte*>(operands.send);
  auto* const receive = static_cast<std::byte*>(operands.receive);
  const auto block = [bytes](int rank) { return static_cast<std::size_t>(rank) * bytes; };
  const std::size_t mine = has_block_for_each_ ? block(team.rank) : 0;
  const std::size_t all = has_block_for_each_ ? block(team.size) : bytes;

  if (!rounds_.borrow(all, site)) return run_left_out(operands, site);
  const std::uint64_t round = next_++;
  rounds_.enter(round);
  rounds_.wait_until_free(round, site, static_cast<Prepared*>(this));
  copy_bytes(rounds_.own_data(round, all), send, all);
  rounds_.publish(round, team.rank, Rounds::complete);
  // Fetched while this rank waits, the next call's slot is there when it is needed. After short calls nobody looks at
  // it any more: all have come to the call before.
  if (rounds_.shape().banks >= 4) rounds_.prefetch(next_, team.rank, all);
  if (operands.deposited != nullptr) operands.deposited(operands.context);
  if (receive + block(team.rank) != send + mine) copy_bytes(receive + block(team.rank), send + mine, bytes);

  bool declined = false;
  const auto take_from = [&](int sender, const std::atomic<std::uint64_t>& said) {
    // Acquire: partner of the release in publish; the deposited bytes come with it.
    const std::uint64_t flag = said.load(std::memory_order_acquire);
    if (flag < (round << 16 | Rounds::complete)) return false;
    declined = declined || flag == (round << 16 | Rounds::declined);
    if (declined) return true;
    copy_bytes(receive + block(sender), rounds_.data(round, sender, all) + mine, bytes);
    return true;
  };
  if (team.size == 2) {
    const int other = 1 - team.rank;
    const auto ready = [&take_from, other, &said = rounds_.flag(round, other)] { return take_from(other, said); };
    if (!ready())
      team.policy->until(
          site, rounds_.bell(), static_cast<std::uint32_t>(round), ready, [] { return false; },
          static_cast<Prepared*>(this));
  } else {
    waiting_count_ = 0;
    for (int i = 1; i < team.size; ++i)
      waiting_[static_cast<std::size_t>(waiting_count_++)] = (team.rank + i) % team.size;
    const auto ready = [&] {
      int kept = 0;
      for (int i = 0; i < waiting_count_; ++i)
        if (const int sender = waiting_[static_cast<std::size_t>(i)]; !take_from(sender, rounds_.flag(round, sender)))
          waiting_[static_cast<std::size_t>(kept++)] = sender;
      waiting_count_ = kept;
      return kept == 0;
    };
    if (!ready())
      team.policy->until(
          site, rounds_.bell(), static_cast<std::uint32_t>(round), ready, [] { return false; },
          static_cast<Prepared*>(this));
  }
  rounds_.all_have_released(round);
  rounds_.ring(round);
  rounds_.return_credit(next_);
  rounds_.give_back(next_);
  return !declined;
}

void Exchange::offer(const Operands& operands, std::uint64_t round) noexcept {
  const int rank = rounds_.team().rank;
  const Source source{getpid(), operands.send};
  std::memcpy(rounds_.own_data(round, sizeof source), &source, sizeof source);
  rounds_.publish(round, rank, Rounds::complete);
}

void Exchange::read(const Operands& operands, std::uint64_t round, int sender) noexcept {
  Source source{};
  std::memcpy(&source, rounds_.data(round, sender, sizeof source), sizeof source);
  const Direct mine = direct(operands, sender);
  if (!rounds_.team().read_memory(source.process, static_cast<const std::byte*>(source.address) + mine.offset, mine.to,
                                  operands.bytes))
    rounds_.refuse(round);
}

void Exchange::take_any(const Operands& operands, const Fragment& fragment, int sender) noexcept {
  if (reading_)
    read(operands, fragment.round, sender);
  else
    take(operands, fragment, sender);
}

// Takes from whoever is there; true if that changed anything.
bool Exchange::take_ready(const Operands& operands, const Fragment& fragment, bool may_take, bool& declined) noexcept {
  int kept = 0;
  for (int i = 0; i < waiting_count_; ++i) {
    const int sender = waiting_[static_cast<std::size_t>(i)];
    const std::uint64_t progress = rounds_.progress_of(fragment.round, sender);
    if (progress == Rounds::declined)
      declined = true;
    else if (progress <
             (may_take && !declined && !reading_ ? needed_progress(operands, fragment, sender) : Rounds::complete))
      waiting_[static_cast<std::size_t>(kept++)] = sender;
    else if (may_take && !declined)
      take_any(operands, fragment, sender);
  }
  const bool changed = kept < waiting_count_;
  waiting_count_ = kept;
  return changed;
}

}  // namespace papaya
