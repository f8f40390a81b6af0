#include "algorithms/exchange.hpp"

#include <algorithm>

namespace papaya {

bool Exchange::run(const Operands& operands, wait::Site& site) {
  const Team& team = rounds_.team();
  const std::size_t largest = std::max<std::size_t>(part_bytes(), 1);
  const std::uint64_t first = next_;
  const std::uint64_t count = std::max<std::uint64_t>((operands.bytes + largest - 1) / largest, 1);
  next_ = first + count;
  const auto part_of = [&](std::uint64_t round) {
    const std::size_t offset = static_cast<std::size_t>(round - first) * largest;
    return Part{round, offset, std::min(largest, operands.bytes - offset)};
  };

  rounds_.enter(first);
  rounds_.wait_until_free(first, site, static_cast<Prepared*>(this));
  if (operands.veto)
    rounds_.publish(first, team.rank, Rounds::vetoed);
  else
    deposit(operands, part_of(first));
  if (operands.deposited != nullptr) operands.deposited(operands.context);
  if (!operands.veto) keep(operands);

  bool vetoed = operands.veto;
  const bool early = may_take_early(operands);
  std::uint64_t deposited = first + 1;
  for (std::uint64_t round = first; round < next_; ++round) {
    const Part part = part_of(round);
    waiting_count_ = 0;
    for (int i = 1; i < team.size; ++i) waiting_[static_cast<std::size_t>(waiting_count_++)] = (team.rank + i) % team.size;
    // After the first round it is known that nobody vetoes.
    const bool may_take = early || round != first;
    if (deposited == round) {
      rounds_.wait_until_free(round, site, static_cast<Prepared*>(this));
      deposit(operands, part_of(deposited++));
    }
    const auto ready = [&] {
      take_ready(operands, part, may_take, vetoed);
      if (waiting_count_ == 0) return true;
      // Nothing to take: run ahead.
      if (!vetoed && deposited < next_ && rounds_.is_free(deposited)) deposit(operands, part_of(deposited++));
      return false;
    };
    if (!ready())
      team.policy->until(site, rounds_.bell(), static_cast<std::uint32_t>(round), ready, [] { return false; },
                         static_cast<Prepared*>(this));
    if (round == first) {
      rounds_.all_have_taken(first);
      if (!vetoed && !early)
        for (int i = 1; i < team.size; ++i) take(operands, part, (team.rank + i) % team.size);
    }
    rounds_.ring(round);
    if (vetoed) break;
    if (count > 1) rounds_.take(round + 1);
  }
  rounds_.take(next_);
  return !vetoed;
}

// Takes from whoever is there; true if that changed anything.
bool Exchange::take_ready(const Operands& operands, const Part& part, bool may_take, bool& vetoed) noexcept {
  int kept = 0;
  for (int i = 0; i < waiting_count_; ++i) {
    const int sender = waiting_[static_cast<std::size_t>(i)];
    const std::uint64_t progress = rounds_.progress_of(part.round, sender);
    if (progress == Rounds::vetoed)
      vetoed = true;
    else if (progress < (may_take && !vetoed ? needed_progress(operands, part, sender) : Rounds::complete))
      waiting_[static_cast<std::size_t>(kept++)] = sender;
    else if (may_take && !vetoed)
      take(operands, part, sender);
  }
  const bool changed = kept < waiting_count_;
  waiting_count_ = kept;
  return changed;
}

}  // namespace papaya
