#include "interpose/queue.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "base/mpi_name.hpp"
#include "interpose/attention.hpp"
#include "interpose/communicator.hpp"
#include "interpose/decide.hpp"
#include "interpose/text_of.hpp"

namespace papaya::nonblocking {

namespace {

// A thread comes here again out of what it calls of MPI: papaya's own waits, and MPI's progress.
thread_local constinit bool inside = false;
class Inside {
 public:
  Inside() noexcept { inside = true; }
  ~Inside() { inside = false; }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
};
std::atomic<int> outstanding{0};  // operations; relaxed, as `attention`

// Never destroyed: MPI_Finalize may be called by an exit handler.
struct Active {
  std::mutex mutex;  // taken with a queue's held, never the other way
  std::vector<std::shared_ptr<Queue>> queues;
};
Active& active = *new Active;

}  // namespace

std::shared_ptr<Queue> active_queue(std::size_t index) noexcept {
  const std::lock_guard lock(active.mutex);
  return index < active.queues.size() ? active.queues[index] : nullptr;
}
std::shared_ptr<Queue> only_active_queue() noexcept {
  const std::lock_guard lock(active.mutex);
  return active.queues.size() == 1 ? active.queues[0] : nullptr;
}

bool are_outstanding() noexcept {
  return outstanding.load(std::memory_order_relaxed) != 0;
}

void progress_queues() noexcept {
  if (inside) return;
  const Inside here;
  for (std::size_t index = 0; const std::shared_ptr<Queue> queue = active_queue(index); ++index) queue->advance();
}

Queue::Queue(const Communicator& state, const Members& blocking, MPI_Comm copy, MPI_Comm world, double stall_seconds)
    : copy_(copy),
      locations_(state.locations),
      world_ranks_(state.members),
      offsets_(static_cast<std::size_t>(state.size)),
      members_{.resources = blocking.resources,
               .team = {state.rank, state.size, false, nullptr, blocking.team.policy, nullptr, locations_},
               .nodes = state.facts.nodes,
               .world_ranks = world_ranks_,
               .offsets = offsets_},
      agreement_(copy, MpiAgreement::Way::asking, members_.resources.transport, world),
      stall_seconds_(stall_seconds) {}

Queue::~Queue() {
  plans_.clear();
  MPI_Comm copy = copy_;
  PMPI_Comm_free(&copy);
}

Plan& Queue::plan_for(const tuning::Rule& rule, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  return plans_.plan_for(members_, rule, bytes, Form::nonblocking);
}

namespace {

// Afterwards the request, and the operation's code with it, may be gone at any time.
void complete(std::vector<MPI_Request>& ended) noexcept {
  if (ended.empty()) return;
  for (MPI_Request& request : ended) PMPI_Grequest_complete(request);
  attention.fetch_sub(static_cast<int>(ended.size()), std::memory_order_relaxed);
  outstanding.fetch_sub(static_cast<int>(ended.size()), std::memory_order_relaxed);
}

}  // namespace

Reason Queue::add(std::unique_ptr<Operation> operation, const std::shared_ptr<Queue>& self) noexcept {
  const Plan& plan = operation->plan;
  std::vector<MPI_Request> ended;
  Reason reason;
  attention.fetch_add(1, std::memory_order_relaxed);
  outstanding.fetch_add(1, std::memory_order_relaxed);
  const bool was_inside = inside;
  inside = true;
  {
    const std::lock_guard lock(mutex_);
    if (operations_.empty()) first_since_ns_ = clock::monotonic_ns();
    operations_.push_back(std::move(operation));
    if (!active_) {
      const std::lock_guard lock_active(active.mutex);
      active.queues.push_back(self);
      active_ = true;
    }
    run_what_can_run(ended);
    reason = plan.failure;
  }
  inside = was_inside;
  complete(ended);
  return reason;
}

void Queue::advance() noexcept {
  std::vector<MPI_Request> ended;
  {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock.owns_lock()) return;
    run_what_can_run(ended);
  }
  complete(ended);
}

void Queue::run_what_can_run(std::vector<MPI_Request>& ended) noexcept {
  while (!operations_.empty() && operations_.front()->steps.advance()) {
    ended.push_back(operations_.front()->request);
    operations_.pop_front();
    first_since_ns_ = clock::monotonic_ns();
  }
  if (!operations_.empty() || !active_) return;
  const std::lock_guard lock(active.mutex);
  const auto found = std::find_if(active.queues.begin(), active.queues.end(),
                                  [&](const std::shared_ptr<Queue>& one) { return one.get() == this; });
  if (found != active.queues.end()) active.queues.erase(found);
  active_ = false;
}

bool Queue::report_stall() noexcept {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return false;
  if (operations_.empty() || operations_.front()->is_stall_reported) return true;
  Operation& first = *operations_.front();
  const double seconds = static_cast<double>(clock::monotonic_ns() - first_since_ns_) * 1e-9;
  if (seconds < stall_seconds_) return false;
  first.is_stall_reported = true;
  const std::string call =
      fmt::format("{}, call {} on {}, cannot go on for {:.0f} s",
                  mpi_name(first.arguments.collective, Form::nonblocking), first.call, text_of(first.comm), seconds);
  const Plan& plan = first.plan;
  if (plan.prepared == nullptr) {
    log::warn(fmt::format("{}: rank {} waits for ranks that have not arrived", call, members_.team.rank));
    return true;
  }
  int count = 0;
  const std::string missing = missing_ranks(*plan.prepared, members_.team.size, count);
  log::warn(count == 0 ? fmt::format("{} on rank {}", call, members_.team.rank)
                       : fmt::format("{}: rank {} waits for data of rank {}, which may be waiting for another rank",
                                     call, members_.team.rank, missing));
  return true;
}

bool Queue::is_empty() noexcept {
  const std::lock_guard lock(mutex_);
  return operations_.empty();
}

wait::Doorbell* Queue::bell() noexcept {
  const std::lock_guard lock(mutex_);
  if (operations_.empty()) return nullptr;
  const Notified* const wire = operations_.front()->plan.wire.get();
  return wire == nullptr ? nullptr : &wire->bell();
}

// From when it is the queue's first.
Steps Queue::run(Operation& operation) {
  Plan& plan = operation.plan;
  const Next next =
      next_step({.rule = plan.rule}, Form::nonblocking, members_.nodes, {plan.prepared != nullptr, plan.failure});
  if (next.step == Step::set_up) {
    Steps preparing = set_up(plan, members_, agreement_);
    co_await until([&] { return preparing.advance(); });
  }
  if (plan.prepared != nullptr) {
    OverWire& algorithm = *plan.prepared->split_phase();
    algorithm.start(operation.operands);
    co_await until([&] { return algorithm.progress(); });
    co_await until([&] {
      plan.wire->progress();
      return plan.wire->may_leave();
    });
    if (operation.operands.receive != nullptr) operation.receive.write_back();
    co_return;
  }
  MPI_Request inner = MPI_REQUEST_NULL;
  int code = operation.start_natively(copy_, &inner);
  co_await until([&] {
    int flag = code != MPI_SUCCESS;
    if (!flag) code = PMPI_Test(&inner, &flag, MPI_STATUS_IGNORE);
    return flag != 0 || code != MPI_SUCCESS;
  });
  *operation.code = code;
  if (operation.arguments.collective == Collective::bcast && operation.operands.receive != nullptr)
    operation.receive.write_back();
}

}  // namespace papaya::nonblocking
