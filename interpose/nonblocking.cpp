#include "interpose/nonblocking.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <list>
#include <memory>
#include <mutex>
#include <new>
#include <numeric>
#include <vector>

#include "algorithms/steps.hpp"
#include "algorithms/transport/mpi/mpi_notified.hpp"
#include "algorithms/transport/shared_notified.hpp"
#include "algorithms/transport/ucx/ucx_notified.hpp"
#include "base/log.hpp"
#include "base/mpi_name.hpp"
#include "base/saturating.hpp"
#include "interpose/prepare.hpp"
#include "interpose/run.hpp"
#include "interpose/staging.hpp"
#include "interpose/stall.hpp"

namespace papaya::nonblocking {

constinit std::atomic<int> attention{0};

struct Operation;

// Shared by the communicator and whoever is moving it on.
class Queue {
 public:
  explicit Queue(const Communicator& state, MPI_Comm copy);
  ~Queue();
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;

  // The set-up for calls of that rule and up to that many bytes.
  Setup& setup_for(const tuning::Rule& rule, std::size_t capacity);
  // An operation, from when it is the queue's first.
  Steps run(Operation& operation);
  // Appends one and moves the queue on. Returns why it will run natively, as far as that is known.
  Reason add(std::unique_ptr<Operation> operation, const std::shared_ptr<Queue>& self) noexcept;
  // Moves the first operations on, unless another thread is at it.
  void advance() noexcept;
  bool say_stall() noexcept;
  bool is_empty() noexcept;
  // Where to sleep: rung when the first operation is notified, if that can be.
  wait::Doorbell* bell() noexcept;

 private:
  Steps set_up_on_one_node(Setup& setup);
  Steps set_up_across_nodes(Setup& setup);
  void run_what_can_run(std::vector<MPI_Request>& ended) noexcept;

  const MPI_Comm copy_;
  Team team_;
  const std::vector<topology::Place> places_;
  const std::vector<int> members_;
  std::vector<std::int64_t> offsets_;  // of a set-up across nodes

  std::mutex mutex_;  // guards what follows; no user's code runs under it
  std::list<Setup> setups_;
  std::deque<std::unique_ptr<Operation>> operations_;  // the first one is under way
  std::uint64_t first_since_ns_ = 0;                   // when it became the first
  bool active_ = false;                                // in the list of active queues
};

// One call. Owned by its queue until it has ended.
struct Operation {
  Setup& setup;
  Arguments arguments;
  Reduction reduction;
  Operands operands{};
  // The program may free a derived type before the end: one of papaya's own made of it, and what is packed.
  MPI_Datatype type = MPI_DATATYPE_NULL;
  Staging send;
  Staging receive;
  MPI_Request request = MPI_REQUEST_NULL;  // the program's
  int* code = nullptr;                     // for the request: MPI's error of a native run
  Steps steps;
  MPI_Comm comm;       // the program's
  std::uint64_t call;  // its number there
  bool stall_said = false;

  Operation(Setup& s, const Arguments& a, const Reduction& r, MPI_Comm c, std::uint64_t number)
      : setup(s), arguments(a), reduction(r), comm(c), call(number) {}
  ~Operation() {
    if (type != MPI_DATATYPE_NULL) PMPI_Type_free(&type);
  }
  void stage(bool is_root, std::size_t bytes, const CallFacts& facts) noexcept;
  int start_natively(MPI_Comm copy, MPI_Request* inner) noexcept;
};

namespace {

bool asked_for = false;  // written in MPI_Init
char mark;
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

std::shared_ptr<Queue> active_queue(std::size_t place) noexcept {
  const std::lock_guard lock(active.mutex);
  return place < active.queues.size() ? active.queues[place] : nullptr;
}
std::shared_ptr<Queue> only_active_queue() noexcept {
  const std::lock_guard lock(active.mutex);
  return active.queues.size() == 1 ? active.queues[0] : nullptr;
}

bool are_outstanding() noexcept {
  return outstanding.load(std::memory_order_relaxed) != 0;
}
// Out of MPI's progress, which the messages may be using, or in a thread of papaya's.
void move_on() noexcept {
  if (!MpiMessages::is_inside()) progress();
}

wait::Doorbell own_bell{};  // nobody rings it: sleeping ends by its timeout

// What is asked of the copy of a communicator.
auto completed(MPI_Request& request) {
  return until([&request] {
    int flag = 0;
    return PMPI_Test(&request, &flag, MPI_STATUS_IGNORE) != MPI_SUCCESS || flag != 0;
  });
}

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

Queue::Queue(const Communicator& state, MPI_Comm copy)
    : copy_(copy),
      team_{state.rank, state.size, false, nullptr, &runtime().policy, nullptr, {}},
      places_(state.places),
      members_(state.members),
      offsets_(static_cast<std::size_t>(state.size)) {
  team_.places = places_;
}

Queue::~Queue() {
  for (Setup& setup : setups_) {
    setup.prepared.reset();
    setup.wire.reset();
    if (setup.offset >= 0) runtime().window.release(setup.offset, setup.region_bytes);
  }
  MPI_Comm copy = copy_;
  PMPI_Comm_free(&copy);
}

Setup& Queue::setup_for(const tuning::Rule& rule, std::size_t capacity) {
  const std::lock_guard lock(mutex_);
  for (Setup& setup : setups_)
    if (setup.rule == &rule && setup.capacity == capacity) return setup;
  return setups_.emplace_back(Setup{.rule = &rule,
                                    .capacity = capacity,
                                    .trace_number = trace_number(*rule.algorithm),
                                    .collective = rule.algorithm->collective,
                                    .wire = nullptr,
                                    .messages = nullptr,
                                    .node_messages = nullptr,
                                    .prepared = nullptr,
                                    .through_host = true});
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
  const Setup& setup = operation->setup;
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
    reason = setup.failure;
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
  const auto place = std::find_if(active.queues.begin(), active.queues.end(),
                                  [&](const std::shared_ptr<Queue>& one) { return one.get() == this; });
  if (place != active.queues.end()) active.queues.erase(place);
  active_ = false;
}

bool Queue::say_stall() noexcept {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return false;
  if (operations_.empty() || operations_.front()->stall_said) return true;
  Operation& first = *operations_.front();
  const double seconds = static_cast<double>(clock::monotonic_ns() - first_since_ns_) * 1e-9;
  if (seconds < static_cast<double>(runtime().settings.number(Variable::stall_seconds))) return false;
  first.stall_said = true;
  const std::string call =
      fmt::format("{}, call {} on {}, cannot go on for {:.0f} s",
                  mpi_name(first.arguments.collective, Form::nonblocking), first.call, text_of(first.comm), seconds);
  const Setup& setup = first.setup;
  if (setup.prepared == nullptr) {
    log::warn(fmt::format("{}: rank {} waits for ranks that have not come to it", call, team_.rank));
    return true;
  }
  int count = 0;
  const std::string missing = missing_ranks(*setup.prepared, team_.size, count);
  log::warn(count == 0 ? fmt::format("{} on rank {}", call, team_.rank)
                       : fmt::format("{}: rank {} waits for what comes from rank {}, which may wait for another itself",
                                     call, team_.rank, missing));
  return true;
}

bool Queue::is_empty() noexcept {
  const std::lock_guard lock(mutex_);
  return operations_.empty();
}

wait::Doorbell* Queue::bell() noexcept {
  const std::lock_guard lock(mutex_);
  if (operations_.empty()) return nullptr;
  const Notified* const wire = operations_.front()->setup.wire.get();
  return wire == nullptr ? nullptr : &wire->bell();
}

// Set-up. As in replace.cpp, but without blocking: on the copy, where all ranks come to it in the order of
// the queue.

Steps Queue::set_up_on_one_node(Setup& setup) {
  NodeWindow& window = runtime().window;
  const Descriptor& algorithm = *setup.rule->algorithm;
  const SegmentShape shape = algorithm.segment(team_.layout(), setup.capacity, setup.rule->values);
  const std::size_t bytes = SharedNotified::region_bytes(team_.size, shape);
  std::int64_t offset = team_.rank == 0 ? window.allocate(bytes, team_.size) : -1;
  MPI_Request request = MPI_REQUEST_NULL;
  PMPI_Ibcast(&offset, 1, MPI_INT64_T, 0, copy_, &request);
  co_await completed(request);
  if (offset < 0) {
    setup.failure = Reason::no_shared_memory;
    co_return;
  }
  int ready = window.prepare_share(offset, bytes, team_.rank, team_.size) ? 1 : 0;
  std::unique_ptr<Notified> wire;
  std::unique_ptr<TeamMessages> messages;
  std::unique_ptr<Prepared> prepared;
  try {
    Team team = team_;
    team.region = window.region(offset);
    if (is_rooted(algorithm.collective)) {
      std::vector<int> ranks(static_cast<std::size_t>(team.size));
      std::iota(ranks.begin(), ranks.end(), 0);
      messages = messages_on_node(copy_, team.size, ranks, offset);
    }
    team.messages = messages.get();
    if (ready) wire = std::make_unique<SharedNotified>(team.region, team.rank, *team.policy, shape);
    team.wire = wire.get();
    if (ready) prepared = algorithm.prepare(team, setup.capacity, setup.rule->values);
  } catch (const std::bad_alloc&) {
    ready = 0;
  }
  int all_ready = 0;
  PMPI_Iallreduce(&ready, &all_ready, 1, MPI_INT, MPI_MIN, copy_, &request);
  co_await completed(request);
  if (!all_ready) {
    prepared.reset();
    wire.reset();
    window.release(offset, bytes);
    setup.failure = Reason::no_shared_memory;
    co_return;
  }
  setup.offset = offset;
  setup.region_bytes = bytes;
  setup.messages = std::move(messages);
  setup.wire = std::move(wire);
  setup.prepared = std::move(prepared);
}

Steps Queue::set_up_across_nodes(Setup& setup) {
  const Descriptor& algorithm = *setup.rule->algorithm;
  Runtime& process = runtime();
  UcxWindow& ucx = process.ucx_window;
  constexpr std::int64_t unreached = -2;
  bool is_reached = process.mpi_messages.exists();
  if (ucx.exists()) {
    ucx::Link link = ucx.begin_connecting(members_) ? ucx.link(members_) : ucx::Link::refused;
    const auto latest = std::chrono::steady_clock::now() + UcxWindow::longest_connecting;
    co_await until([&] {
      ucx.progress();
      if (link == ucx::Link::under_way)
        link = std::chrono::steady_clock::now() > latest ? ucx::Link::refused : ucx.link(members_);
      return link != ucx::Link::under_way;
    });
    is_reached = link == ucx::Link::up;
  }
  std::unique_ptr<ArenaNotified> wire;
  std::unique_ptr<TeamMessages> messages;
  std::unique_ptr<Prepared> prepared;
  try {
    const SegmentShape shape = algorithm.segment(team_.layout(), setup.capacity, setup.rule->values);
    if (!ucx.exists())
      wire = MpiNotified::offer(process.mpi_messages, members_, process.policy, shape);
    else if (is_reached)
      wire = UcxNotified::offer(ucx, members_, process.policy, shape);
    Team team = team_;
    team.wire = wire.get();
    if (is_rooted(algorithm.collective)) messages = messages_between_nodes(members_);
    team.messages = messages.get();
    if (wire != nullptr) prepared = algorithm.prepare(team, setup.capacity, setup.rule->values);
  } catch (const std::bad_alloc&) {
  }
  const std::int64_t mine = prepared != nullptr ? wire->offset() : is_reached ? -1 : unreached;
  MPI_Request request = MPI_REQUEST_NULL;
  PMPI_Iallgather(&mine, 1, MPI_INT64_T, offsets_.data(), 1, MPI_INT64_T, copy_, &request);
  co_await until([&] {
    if (ucx.exists()) ucx.progress();  // others may still be connecting to this rank
    int flag = 0;
    return PMPI_Test(&request, &flag, MPI_STATUS_IGNORE) != MPI_SUCCESS || flag != 0;
  });
  // Also the barrier after which all shares are zero.
  if (std::any_of(offsets_.begin(), offsets_.end(), [](std::int64_t one) { return one < 0; })) {
    const bool all_reached =
        std::none_of(offsets_.begin(), offsets_.end(), [](std::int64_t one) { return one == unreached; });
    setup.failure = all_reached || process.too_little_between_nodes ? Reason::no_shared_memory : Reason::no_transport;
    co_return;
  }
  wire->connect(offsets_);
  if (messages != nullptr) try {
      messages->set_tags(tags_of(*wire, team_.size));
    } catch (const std::bad_alloc&) {
      end_for_lack_of_memory(offsets_.size() * sizeof(int));
    }
  setup.messages = std::move(messages);
  setup.wire = std::move(wire);
  setup.prepared = std::move(prepared);
}

// The operation.

void Operation::stage(bool is_root, std::size_t bytes, const CallFacts& facts) noexcept {
  using Use = Staging::Use;
  const Arguments& a = arguments;
  operands.count = static_cast<std::size_t>(a.count);
  operands.bytes = bytes;
  operands.root = a.root;
  operands.reduction = &reduction;
  if (a.collective == Collective::barrier) return;
  const std::size_t element = bytes / operands.count;
  MPI_Datatype kept = a.type;
  if (!is_named(a.type) && !is_dense(a.type)) {
    PMPI_Type_contiguous(1, a.type, &type);
    PMPI_Type_commit(&type);
    kept = type;
  }
  const auto is_device = [&](const void* buffer) { return device_memory::holds(buffer, facts.arrival_ticks); };
  const auto staged = [&](const void* buffer, Use use) {
    Staging one(buffer, operands.count, kept, element, use, is_device(buffer));
    if (one.lacks() != 0) end_for_lack_of_memory(one.lacks());
    return one;
  };
  if (a.collective == Collective::bcast) {
    receive = staged(a.receive, is_root ? Use::read : Use::write);
    if (is_root)
      operands.send = receive.bytes();
    else
      operands.receive = receive.bytes();
    return;
  }
  const bool in_place = a.send == MPI_IN_PLACE;
  receive = staged(a.receive, in_place ? Use::both : Use::write);
  if (!in_place) send = staged(a.send, Use::read);
  operands.receive = receive.bytes();
  operands.send = in_place ? receive.bytes() : send.bytes();
}

// A reduction runs on the program's own buffers, whose type and operation are predefined; a bcast as bytes.
int Operation::start_natively(MPI_Comm copy, MPI_Request* inner) noexcept {
  const Arguments& a = arguments;
  switch (a.collective) {
    case Collective::barrier:
      return PMPI_Ibarrier(copy, inner);
    case Collective::bcast:
      return PMPI_Ibcast(receive.bytes(), static_cast<int>(operands.bytes), MPI_BYTE, a.root, copy, inner);
    default:
      return PMPI_Iallreduce(a.send, a.receive, static_cast<int>(a.count), a.type, a.op, copy, inner);
  }
}

// From when it is the queue's first.
Steps Queue::run(Operation& operation) {
  Setup& setup = operation.setup;
  const int nodes = members_.empty() ? 1 : 2;  // or more
  if (next_step({.rule = setup.rule}, Form::nonblocking, nodes, {setup.prepared != nullptr, setup.failure}).step ==
      Step::set_up) {
    Steps preparing = members_.empty() ? set_up_on_one_node(setup) : set_up_across_nodes(setup);
    co_await until([&] { return preparing.advance(); });
  }
  if (setup.prepared != nullptr) {
    OverWire& algorithm = *setup.prepared->split_phase();
    algorithm.start(operation.operands);
    co_await until([&] { return algorithm.progress(); });
    co_await until([&] {
      setup.wire->progress();
      return setup.wire->may_leave();
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

// The whole.

void* const waiting = &mark;

bool are_asked_for() noexcept {
  return asked_for;
}

void start(bool concurrent) noexcept {
  Runtime& process = runtime();
  if (!process.selection.replaces_nonblocking()) return;
  // Where one rank's operations would not move on inside MPI another rank may wait for them in vain.
  int good = background_progress::start(are_outstanding, move_on) ? 1 : 0;
  int all_good = 0;
  PMPI_Allreduce(&good, &all_good, 1, MPI_INT, MPI_MIN, process.world_comm);
  if (!all_good) {
    background_progress::stop();
    if (process.rank == 0)
      log::warn(
          "PAPAYA_IALLREDUCE and its like: some rank's MPI gives papaya no way to move operations on inside its own "
          "calls "
          "(an MPI without MPI_THREAD_MULTIPLE, or a rank without these variables); nonblocking collectives stay "
          "native.");
    return;
  }
  asked_for = true;
  // Then one thread may start an operation while another is inside MPI, whose progress MPI would use.
  if (concurrent) attention.store(1, std::memory_order_relaxed);
  if (Communicator* const world = communicators::find_or_make(MPI_COMM_WORLD)) add_queue(*world);
  process.preload->intercept_waiting();
}

void stop() noexcept {
  if (!asked_for) return;
  const auto nothing_left = [] { return active_queue(0) == nullptr; };
  const std::uint64_t begin = clock::monotonic_ns();
  wait_until([&] { return nothing_left() || clock::monotonic_ns() - begin > most_to_wait_at_the_end_ns; });
  if (!nothing_left())
    log::warn("MPI_Finalize was called with nonblocking collectives under way that other ranks have not called.");
  background_progress::stop();
}

void add_queue(Communicator& state) noexcept {
  if (!asked_for || state.inter || state.outside || state.size == 1 || state.queue != nullptr) return;
  // The communicator is new, or of MPI_COMM_WORLD papaya's own: nobody else sees its error handler changed.
  const MPI_Comm origin = state.handle == MPI_COMM_WORLD ? runtime().world_comm : state.handle;
  MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
  PMPI_Comm_get_errhandler(origin, &handler);
  PMPI_Comm_set_errhandler(origin, MPI_ERRORS_RETURN);
  MPI_Comm copy = MPI_COMM_NULL;
  int good = communicators::copy(origin, &copy) ? 1 : 0;
  try {
    if (good) {
      PMPI_Comm_set_errhandler(copy, MPI_ERRORS_RETURN);
      state.queue = std::make_shared<Queue>(state, copy);
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
  if (runtime().active.load(std::memory_order_relaxed)) {
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
                            !runtime().settings.is_default(variable);
  Described described;
  const Decision decision = decide(state, a, Form::nonblocking, is_asked_for, described);
  const tuning::Choice& choice = decision.choice;
  if (choice.rule == nullptr) return native(choice.reason);
  // From here on on this rank's own arguments: if they are wrong, the others wait for it as they would
  // natively.
  if (request == nullptr || (a.collective == Collective::bcast && !is_named(a.type) && !is_committed(a.type)) ||
      is_erroneous(state, a, described.dense))
    return native(Reason::arguments);

  Setup& setup = state.queue->setup_for(*choice.rule, capacity_of(state, *choice.rule->algorithm, decision.bytes));
  auto operation = std::make_unique<Operation>(setup, a, described.reduction, state.handle, facts.call);
  operation->stage(state.rank == a.root, decision.bytes, facts);
  operation->code = new int{MPI_SUCCESS};
  if (PMPI_Grequest_start(query, release, cancel, operation->code, &operation->request) != MPI_SUCCESS)
    end_for_lack_of_memory(sizeof(Operation));
  *request = operation->request;
  operation->steps = state.queue->run(*operation);
  outcome.reason = state.queue->add(std::move(operation), state.queue);
  outcome.algorithm = outcome.reason == Reason::none ? setup.trace_number : 0;
  return true;
}

void progress() noexcept {
  if (inside) return;
  const Inside here;
  for (std::size_t place = 0; const std::shared_ptr<Queue> queue = active_queue(place); ++place) queue->advance();
}

void wait_inside(bool (*is_done)(void* context), void* context) noexcept {
  static thread_local wait::Site site;
  bool done = false;
  while (!done) {
    const std::shared_ptr<Queue> queue = only_active_queue();
    wait::Doorbell* const rung = queue == nullptr ? nullptr : queue->bell();
    wait::Doorbell& bell = rung == nullptr ? own_bell : *rung;
    const std::uint32_t heard = bell.completed.load(std::memory_order_acquire);
    runtime().policy.until(
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

bool say_stall() noexcept {
  bool all = true;
  for (std::size_t place = 0; const std::shared_ptr<Queue> queue = active_queue(place); ++place)
    all = queue->say_stall() && all;
  return all;
}

}  // namespace papaya::nonblocking
