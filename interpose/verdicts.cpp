#include "interpose/verdicts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <utility>

#include "base/log.hpp"
#include "base/mpi_name.hpp"
#include "interpose/attention.hpp"

namespace papaya::verdicts {

namespace {

constexpr std::size_t most_kept = 8;

// Of communicators that are gone. Never destroyed: MPI_Finalize may be called by an exit handler.
struct Kept {
  std::mutex mutex;
  std::vector<Difference> differences;
};
Kept& kept() noexcept {
  static auto& one = *new Kept;
  return one;
}

std::string name_of(const Communicator& state) {
  char name[MPI_MAX_OBJECT_NAME] = "";
  int length = 0;
  PMPI_Comm_get_name(state.handle, name, &length);
  return length != 0 ? std::string(name) : fmt::format("communicator {:06x}", state.id & 0xffffff);
}

// By the rank that has found it. The record keeps the first few.
void tell(const Difference& one, bool is_dropped, const Job& job, Records& records) {
  log::error(
      fmt::format("PAPAYA_VERIFY: {} by {} differs from MPI's own in call {} on {} of {} ranks: element {} of the "
                  "result on rank {} is "
                  "{}, not {}. {}",
                  mpi_name(one.collective, Form::blocking), one.algorithm->name, one.call, one.communicator_name,
                  one.ranks, one.element, job.rank, one.ours, one.expected,
                  is_dropped ? "The algorithm serves this communicator no longer."
                             : "No barrier, allreduce or the like followed in which the ranks could drop it there."));
  if (!records.recorder.is_open()) return;
  trace::Header& header = records.recorder.header();
  const std::uint64_t row = std::atomic_ref(header.difference_count).fetch_add(1, std::memory_order_relaxed);
  if (row < trace::difference_capacity + trace::further_difference_capacity) {
    trace::Difference& to = row < trace::difference_capacity
                                ? header.differences[row]
                                : header.further_differences[row - trace::difference_capacity];
    to = {.communicator = one.communicator,
          .call = one.call,
          .element = one.element,
          .algorithm = papaya::trace_number(*one.algorithm),
          .collective = static_cast<std::uint8_t>(one.collective),
          .is_dropped = is_dropped};
    Recorder::set_name(to.ours, sizeof to.ours, one.ours);
    Recorder::set_name(to.expected, sizeof to.expected, one.expected);
  }
}

}  // namespace

bool pass(Communicator& state, const Descriptor& algorithm, Collective collective, std::optional<Found> found,
          const CallFacts& facts) noexcept {
  std::vector<Verdict>& open = state.verdicts;
  auto verdict = std::find_if(open.begin(), open.end(), [&](const auto& one) { return one.algorithm == &algorithm; });
  if (verdict == open.end()) verdict = open.insert(open.end(), {&algorithm, {}});
  if (found && !verdict->difference)
    verdict->difference = Difference{.algorithm = &algorithm,
                                     .collective = collective,
                                     .communicator = state.id,
                                     .communicator_name = name_of(state),
                                     .ranks = state.size,
                                     .call = facts.call,
                                     .element = found->element,
                                     .ours = std::move(found->ours),
                                     .expected = std::move(found->expected)};
  if (!is_meeting(collective)) return found.has_value();
  agree(state, facts);
  // All ranks return the same bits.
  return is_dropped(facts_of(state), algorithm);
}

void agree(Communicator& state, const CallFacts& facts) noexcept {
  std::vector<Verdict> open = std::exchange(state.verdicts, {});
  std::vector<int> finder;
  for (const Verdict& one : open) finder.push_back(one.difference ? state.rank : state.size);
  const nonblocking::InsideMpi inside_mpi;
  PMPI_Allreduce(MPI_IN_PLACE, finder.data(), static_cast<int>(finder.size()), MPI_INT, MPI_MIN, state.handle);
  for (std::size_t i = 0; i < open.size(); ++i) {
    if (finder[i] == state.size) continue;
    state.dropped.push_back(open[i].algorithm);
    if (finder[i] == state.rank) tell(*open[i].difference, true, facts.job, facts.records);
  }
}

void keep(Communicator& state) noexcept {
  const std::lock_guard lock(kept().mutex);
  std::vector<Difference>& all = kept().differences;
  for (Verdict& one : state.verdicts)
    if (one.difference && all.size() < most_kept) all.push_back(*std::move(one.difference));
}

void tell_kept(const Job& job, Records& records) noexcept {
  if (job.verify_every == 0) return;
  const std::lock_guard lock(kept().mutex);
  if (job.oob->least(kept().differences.empty() ? job.ranks : job.rank) != job.rank) return;
  for (const Difference& one : kept().differences) tell(one, false, job, records);
}

}  // namespace papaya::verdicts
