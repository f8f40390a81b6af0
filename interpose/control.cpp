#include "interpose/control.hpp"

#include <mpi.h>

#include <cstdint>
#include <string>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "interpose/call.hpp"
#include "interpose/communicator.hpp"
#include "interpose/peers.hpp"
#include "interpose/runtime.hpp"
#include "interpose/trials.hpp"

// The standard leaves what else may be passed to the tool: nothing is asked for here.
int papaya_MPI_Pcontrol(int level, ...) {
  using namespace papaya;
  Runtime& process = runtime();
  Records& records = process.records;
  const bool is_on = level != 0;
  const bool changes = records.recording.exchange(is_on, std::memory_order_relaxed) != is_on;
  if (changes && process.active.load(std::memory_order_acquire) && records.recorder.is_open()) {
    const std::uint64_t now = clock::ticks();
    const std::uint64_t off = records.recorder.switch_recording(is_on, now);
    MpiTimes::stop_polls();
    if (is_on && records.recorder.header().timed_count != 0) records.mpi_times.leave_out(off, now);
  }
  // While it is off handles get another meaning, and another thread's call that began before may still note one.
  if (changes) peers::forget_requests();
  return PMPI_Pcontrol(level);
}

void papaya_flavour_phase(const char* name) {
  papaya::Runtime& process = papaya::runtime();
  if (!process.active.load(std::memory_order_acquire) || !process.records.recorder.is_open()) return;
  if (name != nullptr)
    process.records.recorder.begin_phase(name);
  else
    process.records.recorder.end_phase();
}

int papaya_flavour_select(const char* collective, const char* selection) {
  using namespace papaya;
  Runtime& process = runtime();
  Collective which{};
  if (!process.active.load(std::memory_order_acquire)) return 1;
  if (collective == nullptr || selection == nullptr) {
    if (process.job.rank == 0)
      log::warn(std::string("papaya_set_algorithm: the ") + (collective == nullptr ? "collective" : "selection") +
                " is a null pointer; nothing is changed.");
    return 1;
  }
  std::string problem = "no such collective";
  if (!tuning::collective_of(collective, which) || !process.job.selection.select(which, selection, problem)) {
    if (process.job.rank == 0)
      log::warn("papaya_set_algorithm(" + std::string(collective) + ", " + selection + "): " + problem);
    return 1;
  }
  process.job.is_set_by_program[index_of(which)] = true;
  const std::string old_names = process.job.selection.old_names_warning();
  if (process.job.rank == 0 && !old_names.empty()) log::warn(old_names);
  communicators::forget_choices();
  return 0;
}

int papaya_flavour_explain(const char* collective, const void* comm, unsigned long bytes, char* text,
                           unsigned long size) {
  using namespace papaya;
  Runtime& process = runtime();
  Collective which{};
  if (collective == nullptr || comm == nullptr || text == nullptr || size == 0 ||
      !process.active.load(std::memory_order_acquire) || !tuning::collective_of(collective, which))
    return 1;
  const MPI_Comm handle = *static_cast<const MPI_Comm*>(comm);
  Communicator* const state = handle == MPI_COMM_NULL ? nullptr : communicators::find_or_make(handle);
  if (state == nullptr) return 1;
  // Of a predefined operation, with elements of one byte.
  const unsigned long blocks = which == Collective::allgatherv ? static_cast<unsigned long>(state->size) : 1;
  const CallShape call{.collective = which, .count = static_cast<std::int64_t>(bytes * blocks), .root = 0};
  const Signature signature{.element_bytes = 1, .operation = Signature::Operation::predefined, .commutative = true};
  const Decision decision = decide(process.job, *state, call, signature);
  tuning::Choice choice = decision.choice;
  if (const trials::One* const trial = trials::find(*state, which, bytes); trial != nullptr && choice.automatic) {
    if (trial->candidates.size() > 1) {
      choice.rule = trial->candidates[trial->trial.in_use()];
      if (choice.rule == nullptr) choice.reason = trial->trial.trials() > 0 ? Reason::quickest : Reason::in_turn;
    } else {
      choice = decide(process.job, *state, call, signature, trial->learnt()).choice;
    }
  }
  if (choice.rule != nullptr) {
    const Plan* const plan = state->plans.find(communicators::members_of(*state), *choice.rule, decision.bytes);
    if (plan != nullptr && plan->failure != Reason::none) choice = {.reason = plan->failure};
  }
  const std::string answer = choice.rule != nullptr ? tuning::text_of_algorithm(*choice.rule)
                                                    : "native: " + std::string(name_of(choice.reason));
  text[answer.copy(text, size - 1)] = '\0';
  return 0;
}

unsigned long papaya_flavour_replaced(const char* collective) {
  using namespace papaya;
  Collective which{};
  if (collective == nullptr || !tuning::collective_of(collective, which)) return 0;
  runtime().job.program_counts_replaced = true;
  return communicators::replaced_calls(which);
}
