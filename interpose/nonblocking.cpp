#include "interpose/nonblocking.hpp"

#include <sched.h>

#include <atomic>
#include <memory>
#include <new>

#include "algorithms/transport/mpi/mpi_messages.hpp"
#include "base/clock.hpp"
#include "base/log.hpp"
#include "interpose/copy_communicator.hpp"
#include "interpose/queue.hpp"
#include "interpose/run.hpp"
#include "interpose/world.hpp"

namespace papaya::nonblocking {

namespace {

// The process's; written in MPI_Init, before the first operation.
const Job* job = nullptr;
wait::Policy* policy = nullptr;
std::atomic<bool> has_stopped{false};  // relaxed: MPI_Finalize ends what operations there are

char mark;

// Out of MPI's progress, which the messages may be using, or in a thread of papaya's.
void move_on() noexcept {
  if (!MpiMessages::is_inside()) progress();
}

wait::Doorbell own_bell{};  // nobody rings it: sleeping ends by its timeout

// The generalized request: what it needs is its error code alone.
int query(void* code, MPI_Status* status) {
  PMPI_Status_set_elements(status, MPI_BYTE, 0);
  PMPI_Status_set_cancelled(status, 0);
  status->MPI_SOURCE = MPI_UNDEFINED;
  status->MPI_TAG = MPI_UNDEFINED;
  return *static_cast<int*>(code);
}
int release(void* code) {
  delete static_cast<int*>(code);
  return MPI_SUCCESS;
}
int cancel(void*, int) {
  return MPI_ERR_REQUEST;  // a collective cannot be cancelled
}

constexpr std::uint64_t most_to_wait_at_the_end_ns = 10'000'000'000;

}  // namespace

void* const waiting = &mark;

void start(const Job& the_job, wait::Policy& the_policy, void (*intercept_waiting)()) noexcept {
  if (!the_job.selection.replaces_nonblocking()) return;
  // Where one rank's operations would not move on inside MPI another rank may wait for them in vain.
  const bool good = background_progress::start(are_outstanding, move_on);
  if (the_job.oob->least(good ? 1 : 0) == 0) {
    background_progress::stop();
    if (the_job.rank == 0)
      log::warn(
          "PAPAYA_IALLREDUCE and its like: on a rank papaya cannot progress operations inside MPI's own calls "
          "(an MPI without MPI_THREAD_MULTIPLE, or a rank without these variables); nonblocking collectives stay "
          "native.");
    return;
  }
  job = &the_job;
  policy = &the_policy;
  asked_for = true;
  // Then one thread may start an operation while another is inside MPI, whose progress MPI would use.
  if (the_job.thread_level == MPI_THREAD_MULTIPLE) attention.store(1, std::memory_order_relaxed);
  if (world::is_of_sessions()) return intercept_waiting();
  if (Communicator* const world = communicators::find_or_make(MPI_COMM_WORLD)) add_queue(*world);
  intercept_waiting();
}

void stop() noexcept {
  if (!asked_for) return;
  const auto nothing_left = [] { return active_queue(0) == nullptr; };
  const std::uint64_t begin = clock::monotonic_ns();
  wait_until([&] { return nothing_left() || clock::monotonic_ns() - begin > most_to_wait_at_the_end_ns; });
  if (!nothing_left())
    log::warn("MPI_Finalize was called with nonblocking collectives under way that other ranks have not called.");
  background_progress::stop();
  has_stopped.store(true, std::memory_order_relaxed);
}

void add_queue(Communicator& state) noexcept {
  if (!asked_for || state.inter || state.outside || state.size == 1 || state.queue != nullptr) return;
  // The communicator is new, or of MPI_COMM_WORLD papaya's own: nobody else sees its error handler changed.
  const MPI_Comm origin = state.handle == MPI_COMM_WORLD ? job->world_comm : state.handle;
  MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
  PMPI_Comm_get_errhandler(origin, &handler);
  PMPI_Comm_set_errhandler(origin, MPI_ERRORS_RETURN);
  MPI_Comm copy = MPI_COMM_NULL;
  int good = copy_communicator(origin, &copy) ? 1 : 0;
  try {
    if (good) {
      PMPI_Comm_set_errhandler(copy, MPI_ERRORS_RETURN);
      state.queue = std::make_shared<Queue>(state, communicators::members_of(state), copy, job->world_comm,
                                            static_cast<double>(job->settings.number(Variable::stall_seconds)));
    }
  } catch (const std::bad_alloc&) {
    good = 0;
  }
  int all_good = 0;
  PMPI_Allreduce(&good, &all_good, 1, MPI_INT, MPI_MIN, origin);
  PMPI_Comm_set_errhandler(origin, handler);
  PMPI_Errhandler_free(&handler);
  if (!all_good) state.queue.reset();
}

void remove_queue(Communicator& state) noexcept {
  if (state.queue == nullptr) return;
  // After stop() what is left has been given up, and the list of active queues keeps it for good.
  if (!has_stopped.load(std::memory_order_relaxed)) {
    wait_until([&] { return state.queue->is_empty(); });
    // Another thread may still hold it, to look whether there is anything to do. Freed by that one, which moves others
    // on, it might keep these waiting: an algorithm ends when what is on its way to this rank has come.
    while (state.queue.use_count() > 1) sched_yield();
  }
  state.queue.reset();
}

bool begin(Communicator& state, const Arguments& a, const CallFacts& facts, Outcome& outcome,
           MPI_Request* request) noexcept {
  const auto native = [&](Reason why) {
    outcome.reason = why;
    return false;
  };
  Variable variable{};
  const bool is_asked_for = asked_for && tuning::variable_of(a.collective, variable, Form::nonblocking) &&
                            !facts.job.settings.is_default(variable);
  Described described;
  const Decision decision = decide(facts.job, state, a, Form::nonblocking, is_asked_for, described);
  const tuning::Choice& choice = decision.choice;
  if (choice.rule == nullptr) return native(choice.reason);
  // From here on on this rank's own arguments: if they are wrong, the others wait for it as they would
  // natively.
  if (request == nullptr || (a.collective == Collective::bcast && !is_named(a.type) && !is_committed(a.type)) ||
      is_erroneous(state, a, described.dense))
    return native(Reason::arguments);

  Plan& plan = state.queue->plan_for(*choice.rule, decision.bytes);
  auto operation = std::make_unique<Operation>(plan, a, described.reduction, state.handle, facts.call);
  operation->stage(state.rank == a.root, decision.bytes, facts);
  operation->code = new int{MPI_SUCCESS};
  if (PMPI_Grequest_start(query, release, cancel, operation->code, &operation->request) != MPI_SUCCESS)
    end_for_lack_of_memory(sizeof(Operation));
  *request = operation->request;
  operation->steps = state.queue->run(*operation);
  outcome.reason = state.queue->add(std::move(operation), state.queue);
  outcome.algorithm = outcome.reason == Reason::none ? plan.trace_number : 0;
  return true;
}

void progress() noexcept {
  progress_queues();
}

void wait_inside(bool (*is_done)(void* context), void* context) noexcept {
  static thread_local wait::Site site;
  bool done = false;
  while (!done) {
    const std::shared_ptr<Queue> queue = only_active_queue();
    wait::Doorbell* const rung = queue == nullptr ? nullptr : queue->bell();
    wait::Doorbell& bell = rung == nullptr ? own_bell : *rung;
    const std::uint32_t heard = bell.completed.load(std::memory_order_acquire);
    policy->until(
        site, bell, heard + 1,
        [&] {
          if (!done) {
            progress();
            done = is_done(context);
          }
          return done || bell.completed.load(std::memory_order_relaxed) != heard;
        },
        [] { return false; }, waiting);
  }
}

bool report_stall() noexcept {
  bool all = true;
  for (std::size_t index = 0; const std::shared_ptr<Queue> queue = active_queue(index); ++index)
    all = queue->report_stall() && all;
  return all;
}

}  // namespace papaya::nonblocking
