#include "tools/simulation/simulated_notified.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <simgrid/kernel/Timer.hpp>
#include <unordered_map>
#include <utility>

namespace papaya::simulation {

namespace {

namespace s4u = simgrid::s4u;

double now_s() {
  return s4u::Engine::get_clock();
}

// A rank's messages leave one after another, as fast as its node's link takes them, and no more than these
// bytes of them are under way at once: the network shares a link evenly among all that is under way, and all
// segments of a message would arrive together at its end.
constexpr std::size_t most_in_flight_bytes = 128 << 10;
constexpr std::size_t notification_bytes = 8;

// By actor. Actors take turns on one thread.
std::unordered_map<aid_t, Processor*>& processors() {
  static auto& all = *new std::unordered_map<aid_t, Processor*>;
  return all;
}

std::uint64_t late_writes = 0;

// Takes no memory until it is written to.
std::unique_ptr<std::byte, void (*)(void*)> zeroed(std::size_t bytes) {
  void* const memory = std::calloc(bytes, 1);
  if (memory == nullptr) throw std::bad_alloc();
  return {static_cast<std::byte*>(memory), std::free};
}

}  // namespace

Processor::Processor() {
  processors()[s4u::this_actor::get_pid()] = this;
}

Processor::~Processor() {
  processors().erase(s4u::this_actor::get_pid());
}

void Processor::configure(wait::Policy& policy) {
  // Spinning, so that it never sleeps in the kernel with all other ranks on the same thread; and by a clock
  // so slow that every time to wait before a poke is none. "Crowded", so that it samples no load.
  policy.configure(wait::Mode::spin, {.cores = 1, .ranks = 2, .board = nullptr, .rank = 0, .ns_per_tick = 1e12}, poke);
}

Processor& Processor::own() {
  return *processors().at(s4u::this_actor::get_pid());
}

void Processor::poke() {
  Processor& own = Processor::own();
  // What is owed passes first, and something may come meanwhile.
  own.catch_up();
  if (own.seen_ == own.arrived_) {
    own.asleep_ = true;
    own.awake_->acquire();
  }
  own.seen_ = own.arrived_;
}

void Processor::announce_arrival() {
  ++arrived_;
  if (std::exchange(asleep_, false)) awake_->release();
}

void Processor::catch_up() {
  if (owed_s_ <= 0) return;
  const double seconds = std::exchange(owed_s_, 0);
  s4u::this_actor::sleep_for(seconds);
}

struct SimulatedNotified::Job {
  std::vector<SimulatedNotified*> wires;  // null: not there any more
  std::vector<s4u::Host*> hosts;
  double link_s_per_byte = 0;  // of the slowest link between nodes
  Memory shared_segment{nullptr, nullptr};
};

struct SimulatedNotified::Message {
  std::shared_ptr<Job> job;
  int from;
  int to;
  std::uint32_t number;  // of those from one to the other
  std::size_t offset;
  std::size_t bytes;
  int id;
  std::uint64_t value;
  std::vector<std::byte> data;

  bool stays_on_node() const {
    return job->hosts[static_cast<std::size_t>(from)] == job->hosts[static_cast<std::size_t>(to)];
  }
};

// Carries one message at a time. There are as many as messages have ever been under way at once.
struct SimulatedNotified::Courier {
  std::unique_ptr<Message> message;
  double depart_s = 0;
  s4u::SemaphorePtr called = s4u::Semaphore::create(0);

  static std::vector<Courier*>& idle() {
    static auto& couriers = *new std::vector<Courier*>;
    return couriers;
  }

  void run() {
    while (true) {
      s4u::this_actor::sleep_until(depart_s);
      const Job& job = *message->job;
      s4u::Comm::sendto(job.hosts[static_cast<std::size_t>(message->from)],
                        job.hosts[static_cast<std::size_t>(message->to)], message->bytes + notification_bytes);
      deliver(std::move(message));
      idle().push_back(this);
      called->acquire();
    }
  }
};

void SimulatedNotified::carry(std::unique_ptr<Message> message, double depart_s) {
  std::vector<Courier*>& idle = Courier::idle();
  if (!idle.empty()) {
    Courier* const courier = idle.back();
    idle.pop_back();
    courier->message = std::move(message);
    courier->depart_s = depart_s;
    courier->called->release();
    return;
  }
  auto* const courier = new Courier;  // lives as long as the simulation
  courier->message = std::move(message);
  courier->depart_s = depart_s;
  s4u::Actor::create("courier", s4u::this_actor::get_host(), [courier] { courier->run(); })->daemonize();
}

std::unique_ptr<SimulatedNotified> SimulatedNotified::create(MPI_Comm comm, const SegmentShape& shape,
                                                             const Costs& costs, Processor& processor,
                                                             bool keeps_data) {
  std::unique_ptr<SimulatedNotified> self(new SimulatedNotified);
  int ranks = 1;
  MPI_Comm_rank(comm, &self->rank_);
  MPI_Comm_size(comm, &ranks);
  const auto size = static_cast<std::size_t>(ranks);
  const auto me = static_cast<std::size_t>(self->rank_);
  // One process: an address is good on all ranks.
  std::shared_ptr<Job>* first = nullptr;
  if (self->rank_ == 0) {
    self->job_ = std::make_shared<Job>();
    self->job_->wires.resize(size);
    self->job_->hosts.resize(size);
    if (!keeps_data) self->job_->shared_segment = zeroed(shape.bytes);
    first = &self->job_;
  }
  MPI_Bcast(&first, sizeof first, MPI_BYTE, 0, comm);
  self->job_ = *first;
  self->job_->wires[me] = self.get();
  self->job_->hosts[me] = s4u::this_actor::get_host();
  self->costs_ = costs;
  self->processor_ = &processor;
  self->keeps_data_ = keeps_data;
  if (keeps_data) self->own_segment_ = zeroed(shape.bytes);
  self->segment_ = keeps_data ? self->own_segment_.get() : self->job_->shared_segment.get();
  self->bell_ = &self->own_bell_;
  self->notifications_.resize(static_cast<std::size_t>(shape.notifications));
  self->sent_.resize(size);
  self->received_.resize(size);
  MPI_Barrier(comm);
  const auto elsewhere = std::find_if(self->job_->hosts.begin(), self->job_->hosts.end(),
                                      [&](s4u::Host* host) { return host != self->job_->hosts[0]; });
  if (self->rank_ == 0 && elsewhere != self->job_->hosts.end()) {
    std::vector<s4u::Link*> links;
    double latency_s = 0;
    self->job_->hosts[0]->route_to(*elsewhere, links, &latency_s);
    for (const s4u::Link* link : links)
      self->job_->link_s_per_byte = std::max(self->job_->link_s_per_byte, 1 / link->get_bandwidth());
  }
  MPI_Barrier(comm);
  return self;
}

SimulatedNotified::~SimulatedNotified() {
  job_->wires[static_cast<std::size_t>(rank_)] = nullptr;
  late_writes += queued_.size() + early_.size();
}

std::uint64_t SimulatedNotified::take_late_writes() {
  return std::exchange(late_writes, 0);
}

void SimulatedNotified::write_notify(int peer, std::size_t offset, const void* source, std::size_t bytes, int id,
                                     std::uint64_t value) noexcept {
  auto message = std::make_unique<Message>();
  message->job = job_;
  message->from = rank_;
  message->to = peer;
  message->number = sent_[static_cast<std::size_t>(peer)]++;
  message->offset = offset;
  message->bytes = bytes;
  message->id = id;
  message->value = value;
  if (keeps_data_ && bytes != 0) {
    const auto* const begin = static_cast<const std::byte*>(source);
    message->data.assign(begin, begin + bytes);
  }
  // On the node the rank itself copies into the other's segment.
  processor_->work(message->stays_on_node()
                       ? costs_.node_message_s + static_cast<double>(bytes) * costs_.copy_s_per_byte
                       : costs_.message_s + static_cast<double>(bytes) * costs_.pack_s_per_byte);
  processor_->catch_up();
  if (peer == rank_)
    arrive(std::move(message));
  else
    send(std::move(message));
}

void SimulatedNotified::send(std::unique_ptr<Message> message) {
  if (message->stays_on_node())
    simgrid::kernel::timer::Timer::set(now_s() + costs_.node_latency_s,
                                       [carried = std::move(message)]() mutable { deliver(std::move(carried)); });
  else if (queued_.empty() && may_depart(*message))
    depart(std::move(message));
  else
    queued_.push_back(std::move(message));
}

bool SimulatedNotified::may_depart(const Message& message) const noexcept {
  return in_flight_bytes_ == 0 || in_flight_bytes_ + message.bytes <= most_in_flight_bytes;
}

void SimulatedNotified::depart(std::unique_ptr<Message> message) {
  const double depart_s = std::max(now_s(), free_at_s_);
  free_at_s_ = depart_s + static_cast<double>(message->bytes + notification_bytes) * job_->link_s_per_byte;
  in_flight_bytes_ += message->bytes;
  carry(std::move(message), depart_s);
}

void SimulatedNotified::deliver(std::unique_ptr<Message> message) {
  const std::shared_ptr<Job> job = message->job;
  if (SimulatedNotified* const from = job->wires[static_cast<std::size_t>(message->from)];
      from != nullptr && !message->stays_on_node()) {
    from->in_flight_bytes_ -= message->bytes;
    while (!from->queued_.empty() && from->may_depart(*from->queued_.front())) {
      std::unique_ptr<Message> next = std::move(from->queued_.front());
      from->queued_.pop_front();
      from->depart(std::move(next));
    }
  }
  SimulatedNotified* const to = job->wires[static_cast<std::size_t>(message->to)];
  if (to == nullptr)
    ++late_writes;
  else
    to->arrive(std::move(message));
}

void SimulatedNotified::arrive(std::unique_ptr<Message> message) {
  const int from = message->from;
  std::uint32_t& next = received_[static_cast<std::size_t>(from)];
  if (message->number != next) {
    const auto key = std::pair(from, message->number);
    early_.emplace(key, std::move(message));
    return;
  }
  take(*message);
  ++next;
  for (auto found = early_.find({from, next}); found != early_.end(); found = early_.find({from, next})) {
    take(*found->second);
    early_.erase(found);
    ++next;
  }
  processor_->announce_arrival();
}

bool SimulatedNotified::redirect(std::size_t offset, std::size_t bytes, void* place) noexcept {
  if (bytes != 0) redirected_.emplace(offset, static_cast<std::byte*>(place));
  return true;
}

void SimulatedNotified::take(const Message& message) {
  notifications_[static_cast<std::size_t>(message.id)] = message.value;
  std::byte* place = segment_ + message.offset;
  if (const auto found = redirected_.find(message.offset); message.bytes != 0 && found != redirected_.end()) {
    place = found->second;
    redirected_.erase(found);
  }
  if (!message.data.empty()) std::memcpy(place, message.data.data(), message.bytes);
  if (place != segment_ + message.offset) return;  // the network puts it where it belongs, as a message of MPI's
  // What has come is read out of the segment once, to be copied or to be reduced (reduce_s_per_byte is the
  // whole of it: Processor::work of a reduction takes the difference).
  processor_->work(static_cast<double>(message.bytes) * costs_.copy_s_per_byte);
}

std::uint64_t SimulatedNotified::look(int id) noexcept {
  return notifications_[static_cast<std::size_t>(id)];
}

std::uint64_t SimulatedNotified::reset(int id) noexcept {
  return std::exchange(notifications_[static_cast<std::size_t>(id)], 0);
}

}  // namespace papaya::simulation
