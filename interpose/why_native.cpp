#include "interpose/why_native.hpp"

#include <fmt/format.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <new>

#include "base/log.hpp"
#include "interpose/hints.hpp"

namespace papaya::why_native {

void report(const Job& job, const Communicator& state, const Descriptor* algorithm, std::size_t bytes,
            Reason reason) noexcept {
  const bool is_told = reason == Reason::several_nodes || reason == Reason::no_shared_memory ||
                       reason == Reason::never_wanted || reason == Reason::no_transport ||
                       reason == Reason::unknown_origin || reason == Reason::not_met ||
                       (reason == Reason::order && !job.arrival_order);
  if (!is_told || job.rank != 0 || job.program_counts_replaced || algorithm == nullptr) return;
  static std::array<std::atomic<std::uint32_t>, collective_count> reported{};
  static_assert(reason_names.size() <= 32);
  const std::uint32_t bit = 1u << static_cast<unsigned>(reason);
  // Relaxed: nothing else depends on it.
  if ((reported[index_of(algorithm->collective)].fetch_or(bit, std::memory_order_relaxed) & bit) != 0) return;
  Variable variable{};
  if (!tuning::variable_of(algorithm->collective, variable)) return;
  const bool is_hinted = state.hints != nullptr && !state.hints->texts[index_of(algorithm->collective)].empty();
  try {
    const bool is_of_program = job.is_set_by_program[index_of(algorithm->collective)];
    log::warn(
        fmt::format("{} names {}, but a call of {} bytes on {} ranks goes to MPI: {}.{}",
                    is_hinted       ? hints::key_of(algorithm->collective)
                    : is_of_program ? "papaya_set_algorithm"
                                    : row_of(variable).name,
                    algorithm->name, bytes, state.size, name_of(reason),
                    reason == Reason::several_nodes ? " papaya info --algorithms lists those that work there." : ""));
  } catch (const std::bad_alloc&) {
  }
}

void report_what_was_not_set_up(const Job& job, const Communicator& state) noexcept {
  for (const Plan& plan : state.plans)
    if (plan.is_due && plan.is_named) report(job, state, plan.rule->algorithm, plan.first_bytes, Reason::not_met);
}

}  // namespace papaya::why_native
