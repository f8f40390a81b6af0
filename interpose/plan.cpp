#include "interpose/plan.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include "algorithms/transport/shared_notified.hpp"
#include "interpose/decide.hpp"
#include "interpose/make_wire.hpp"

namespace papaya {

void Region::take(const Resources& resources, std::int64_t offset, std::size_t bytes) noexcept {
  regions_ = &resources.regions;
  deposits_ = &resources.deposits;
  offset_ = offset;
  bytes_ = bytes;
}

void Region::give_back() noexcept {
  if (regions_ == nullptr) return;
  if (!deposits_->keep(begin(), offset_, bytes_)) regions_->release(offset_, bytes_);
  regions_ = nullptr;
}

Plan::Plan(const tuning::Rule& chosen, std::size_t bytes, std::uint64_t number, bool device_through_host) noexcept
    : rule(&chosen),
      capacity(bytes),
      trace_number(papaya::trace_number(*chosen.algorithm)),
      collective(chosen.algorithm->collective),
      ordinal(number),
      through_host(device_through_host) {}

void Plan::give_up(Reason why) noexcept {
  joining.prepared.reset();
  prepared.reset();
  node_messages.reset();
  messages.reset();
  wire.reset();
  region.give_back();
  failure = why;
}

namespace {

constexpr std::size_t small_capacity = 4096;
constexpr std::size_t medium_capacity = 65536;
constexpr std::size_t largest_capacity = std::size_t{16} << 20;
constexpr std::int64_t page_bytes = 4096;  // of the memory that communicators are given

bool has_wire_alone(const Members& members) noexcept {
  return members.team.nodes == nullptr;
}

// Does the algorithm borrow the memory of its deposits on this communicator? Its region then holds what is small, and
// one plan serves all sizes.
bool borrows(const Members& members, const Descriptor& algorithm) noexcept {
  return algorithm.control_bytes != nullptr && members.nodes == 1 && !has_wire_alone(members) &&
         members.resources.deposits.exists();
}

const std::vector<int>& ranks_of_this_node(const Team& team) noexcept {
  return team.nodes->ranks[static_cast<std::size_t>(team.nodes->of_rank[static_cast<std::size_t>(team.rank)])];
}

// Short deposits at a place that does not change are read 10 to 30 ns sooner than those of which the flag's line says
// where they are: what a rank has for them in the region of its communicator, as long as half of all that is for
// regions is free.
std::size_t own_bytes_for(int ranks) noexcept {
  return std::clamp<std::size_t>(32768 / static_cast<std::size_t>(ranks) / 1024 * 1024, 1024, 16384);
}

// For ranks that are ahead of others (Team::messages), on this node. What lies in different parts of the window at
// once has different tags: its pages are fewer than MPI has tags.
std::unique_ptr<Messages> messages_on_node(const Members& members, const Region& region) {
  std::vector<int> here;
  if (members.nodes == 1)
    here = members.world_ranks;
  else
    for (const int rank : ranks_of_this_node(members.team))
      here.push_back(members.world_ranks[static_cast<std::size_t>(rank)]);
  std::vector<int> tags(here.size(), static_cast<int>(region.offset() / page_bytes));
  return members.resources.channels.on_node(here, std::move(tags));
}

// The same between nodes. Null, on all ranks alike, where MPI has fewer tags than a rank has pages that others write
// to.
std::unique_ptr<Messages> messages_between_nodes(const Members& members, const ArenaNotified& wire) {
  const Resources& resources = members.resources;
  if (static_cast<std::int64_t>(resources.transport->arena().bytes()) / page_bytes > resources.channels.largest_tag())
    return nullptr;
  std::vector<int> tags;
  for (int rank = 0; rank < members.team.size; ++rank)
    tags.push_back(static_cast<int>(wire.offset_of(rank) / page_bytes));
  return resources.channels.between_nodes(members.world_ranks, std::move(tags));
}

struct Allocated {
  std::int64_t offset = -1;
  std::uint64_t own_bytes = 0;
};

// For all ranks, by the first of them.
Allocated allocate_on_one_node(const Members& members, Plan& plan) noexcept {
  Regions& regions = members.resources.regions;
  const int users = members.team.size;
  const auto bytes_with = [&](std::size_t own_bytes) {
    plan.own_bytes = own_bytes;
    return shared_on_one_node(members, plan).total();
  };
  if (borrows(members, *plan.rule->algorithm)) {
    const std::size_t own_bytes = own_bytes_for(users);
    const std::int64_t offset = regions.allocate(bytes_with(own_bytes), users, regions.region_bytes() / 2);
    if (offset >= 0) return {offset, own_bytes};
  }
  return {regions.allocate(bytes_with(0), users, bytes_to_leave(members, plan)), 0};
}

Steps set_up_on_one_node(Plan& plan, const Members& members, Agreement& agreement) {
  Allocated found;
  if (members.team.rank == 0) found = allocate_on_one_node(members, plan);
  co_await agreement.from_first(&found, sizeof found);
  if (found.offset < 0) {
    plan.failure = members.resources.why_no_memory;
    co_return;
  }
  plan.own_bytes = found.own_bytes;
  plan.region.take(members.resources, found.offset, shared_on_one_node(members, plan).total());
  std::unique_ptr<Prepared> prepared = prepare_on_one_node(members, plan);
  const int is_ready = prepared != nullptr ? 1 : 0;
  int are_ready = 0;
  co_await agreement.least(is_ready, are_ready);
  if (are_ready)
    plan.prepared = std::move(prepared);
  else {
    prepared.reset();
    plan.give_up(Reason::no_shared_memory);
  }
}

bool are_all_there(const std::vector<std::int64_t>& offsets) noexcept {
  return std::none_of(offsets.begin(), offsets.end(), [](std::int64_t one) { return one < 0; });
}

// Each node has a region for its ranks, where the algorithm has one and the plan not the wire alone.
Steps take_regions(Plan& plan, const Members& members, Agreement& agreement) {
  const Descriptor& algorithm = *plan.rule->algorithm;
  const std::vector<int>& here = ranks_of_this_node(members.team);
  const auto users = static_cast<int>(here.size());
  const std::size_t bytes = algorithm.region_bytes(users, plan.capacity, plan.rule->values);
  const bool allocates = members.team.rank == here.front() && bytes != 0;
  const std::int64_t mine = allocates ? members.resources.regions.allocate(bytes, users, 0) : 0;
  co_await agreement.gather(mine, members.offsets.data());
  const std::int64_t offset = members.offsets[static_cast<std::size_t>(here.front())];
  if (bytes != 0 && offset >= 0) plan.region.take(members.resources, offset, bytes);
  if (!are_all_there(members.offsets)) plan.give_up(members.resources.why_no_memory);
}

// With the plan's region, if it has one, and its wire. Null if there is too little memory.
std::unique_ptr<Prepared> prepare_across_nodes(const Members& members, Plan& plan, const ArenaNotified& wire) noexcept {
  const Descriptor& algorithm = *plan.rule->algorithm;
  Team team = members.team;
  if (plan.region.exists()) {
    const std::vector<int>& here = ranks_of_this_node(team);
    const auto index = std::find(here.begin(), here.end(), team.rank) - here.begin();
    team.region = plan.region.begin();
    if (!members.resources.regions.prepare_share(plan.region.offset(), plan.region.bytes(), static_cast<int>(index),
                                                 static_cast<int>(here.size())))
      return nullptr;
  }
  try {
    if (is_rooted(algorithm.collective)) {
      plan.messages = messages_between_nodes(members, wire);
      if (plan.region.exists()) plan.node_messages = messages_on_node(members, plan.region);
    }
    team.wire = plan.wire.get();
    team.messages = plan.messages.get();
    team.node_messages = plan.node_messages.get();
    return algorithm.prepare(team, plan.capacity, plan.rule->values);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

Steps set_up_across_nodes(Plan& plan, const Members& members, Agreement& agreement) {
  if (plan.rule->algorithm->region_bytes != nullptr && !has_wire_alone(members)) {
    Steps taking = take_regions(plan, members, agreement);
    co_await until([&] { return taking.advance(); });
    if (plan.failure != Reason::none) co_return;
  }
  const Resources& resources = members.resources;
  if (resources.transport == nullptr)
    co_return plan.give_up(resources.has_too_little ? Reason::no_shared_memory : Reason::no_transport);
  MadeWire made;
  const SegmentShape shape = plan.rule->algorithm->segment(members.team.layout(), plan.capacity, plan.rule->values);
  Steps making = make_wire({*resources.transport, members.world_ranks, *members.team.policy, shape}, agreement,
                           members.offsets, made);
  co_await until([&] { return making.advance(); });
  if (made.wire == nullptr) co_return plan.give_up(made.failure);
  const ArenaNotified& connected = *made.wire;
  plan.wire = std::move(made.wire);
  std::unique_ptr<Prepared> prepared = prepare_across_nodes(members, plan, connected);
  const int is_ready = prepared != nullptr ? 1 : 0;
  int are_ready = 0;
  co_await agreement.least(is_ready, are_ready);
  if (are_ready) {
    plan.prepared = std::move(prepared);
    co_return;
  }
  prepared.reset();
  plan.give_up(Reason::no_shared_memory);
}

}  // namespace

std::size_t capacity_of(const Members& members, const Descriptor& algorithm, std::size_t bytes) noexcept {
  const Resources& resources = members.resources;
  if (borrows(members, algorithm)) return resources.deposits.largest_bytes();
  if (bytes <= small_capacity) return small_capacity;
  if (bytes <= medium_capacity || algorithm.max_bytes <= medium_capacity)
    return std::min(medium_capacity, algorithm.max_bytes);
  // A quarter of the window, or of what of it is not lent, for one algorithm: a program has several communicators and
  // collectives. Nodes may differ in what they lend; ranks of several must not differ in this.
  const bool lends = members.nodes == 1 && resources.deposits.exists();
  const std::size_t limit = resources.limit;
  const std::size_t window = lends ? std::min(limit, resources.regions.region_bytes()) : limit;
  return std::clamp(window / 4 / static_cast<std::size_t>(members.team.size), medium_capacity, largest_capacity);
}

Plan& Plans::plan_for(const Members& members, const tuning::Rule& rule, std::size_t bytes, Form form) {
  if (Plan* const plan = find(members, rule, bytes); plan != nullptr) return *plan;
  const Descriptor& algorithm = *rule.algorithm;
  const bool through_host = form == Form::nonblocking || is_rooted(algorithm.collective) || !algorithm.serves_declines;
  return plans_.emplace_back(rule, capacity_of(members, algorithm, bytes), made_++, through_host);
}

Plan* Plans::find(const Members& members, const tuning::Rule& rule, std::size_t bytes) noexcept {
  const std::size_t capacity = capacity_of(members, *rule.algorithm, bytes);
  for (Plan& plan : plans_)
    if (plan.rule == &rule && plan.capacity == capacity) return &plan;
  return nullptr;
}

void Plans::give_back(const tuning::Rule& rule) noexcept {
  plans_.remove_if([&](const Plan& plan) { return plan.rule == &rule && plan.prepared != nullptr; });
}

bool may_be_lean(const Members& members, const Plan& plan) noexcept {
  return plan.rule->algorithm->lean_bytes != nullptr && members.nodes == 1 && !has_wire_alone(members) &&
         members.resources.deposits.exists();
}

SharedBytes shared_on_one_node(const Members& members, const Plan& plan) noexcept {
  const Descriptor& algorithm = *plan.rule->algorithm;
  const int ranks = members.team.size;
  if (borrows(members, algorithm))
    return {.wire = 0, .region = algorithm.control_bytes(ranks, plan.capacity, plan.own_bytes)};
  if (plan.is_lean && may_be_lean(members, plan))
    return {.wire = 0,
            .region = algorithm.lean_bytes(ranks, plan.capacity, members.resources.deposits.largest_bytes())};
  SharedBytes bytes = shared_bytes(algorithm, members.team.layout(), plan.capacity, plan.rule->values);
  if (has_wire_alone(members)) bytes.region = 0;
  return bytes;
}

// Those with memory of their own leave an eighth of the window to the flags of those that borrow it: they need little,
// on every communicator. Those that may borrow as well also leave what the arenas have addresses for beyond their
// promise. Plans of nonblocking calls are few.
std::size_t bytes_to_leave(const Members& members, const Plan& plan) noexcept {
  const Resources& resources = members.resources;
  if (!resources.deposits.exists() || borrows(members, *plan.rule->algorithm) || plan.is_lean ||
      has_wire_alone(members))
    return 0;
  return resources.regions.region_bytes() / (may_be_lean(members, plan) ? 2 : 6);
}

std::unique_ptr<Prepared> prepare_on_one_node(const Members& members, Plan& plan) noexcept {
  const Descriptor& algorithm = *plan.rule->algorithm;
  const Resources& resources = members.resources;
  Team team = members.team;
  if (!resources.regions.prepare_share(plan.region.offset(), plan.region.bytes(), team.rank, team.size)) return nullptr;
  if (borrows(members, algorithm) || plan.is_lean) {
    team.deposits = &resources.deposits;
    team.own_bytes = plan.own_bytes;
  }
  team.region = plan.region.begin() + shared_on_one_node(members, plan).wire;
  try {
    if (algorithm.segment != nullptr)
      plan.wire = std::make_unique<SharedNotified>(plan.region.begin(), team.rank, *team.policy,
                                                   algorithm.segment(team.layout(), plan.capacity, plan.rule->values));
    team.wire = plan.wire.get();
    if (is_rooted(algorithm.collective)) plan.messages = messages_on_node(members, plan.region);
    team.messages = team.node_messages = plan.messages.get();
    return algorithm.prepare(team, plan.capacity, plan.rule->values);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

Steps set_up(Plan& plan, const Members& members, Agreement& agreement) {
  return members.nodes == 1 ? set_up_on_one_node(plan, members, agreement)
                            : set_up_across_nodes(plan, members, agreement);
}

}  // namespace papaya
