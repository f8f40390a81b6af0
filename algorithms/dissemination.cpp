#include "algorithms/dissemination.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>

#include "algorithms/patterns/tree.hpp"

namespace papaya {

namespace {

using patterns::TreeNode;

constexpr std::size_t banks = 2;

std::size_t slot_bytes(std::size_t capacity) noexcept {
  return in_lines(std::clamp(capacity, std::size_t{64}, DisseminatedReduction::largest_message));
}

// What a rank knows and does, in values of one message each: number 0 is its operand, then come those it
// receives and those it combines, as they appear.
struct Plan {
  struct Message {
    int peer;
    int notification;         // and position in the segment: the peer's for those sent, this rank's for those received
    std::vector<int> values;  // in their order
  };
  struct Combination {
    int left;
    int right;
    int result;
  };
  struct Round {
    std::vector<Message> sent;
    std::vector<Message> received;
    std::vector<Combination> combined;  // once all have come
  };
  std::vector<Round> rounds;
  int values = 1;
  int result = 0;
};

struct Shape {
  int participants;
  int radix;
  int rounds = patterns::dissemination_rounds(participants, radix);

  std::int64_t reach(int round) const { return patterns::dissemination_reach(radix, round - 1); }  // before the round
  // Participants that send to another in a round.
  int senders(int round) const {
    return round < rounds ? radix : static_cast<int>((participants - reach(round) + reach(round) - 1) / reach(round));
  }
  int notifications() const { return rounds * radix; }
  int notification(int round, int i) const { return (round - 1) * radix + i - 1; }
};

// ---- partial results

std::optional<Plan> plan_partial_results(const Shape& shape, int rank) {
  const auto last = patterns::dissemination_last_round(shape.participants, shape.radix);
  if (!last) return std::nullopt;
  Plan plan;
  // The partial results that this rank's data consist of, in their order, and each with the sum up to it.
  struct PartialResult {
    patterns::DataBoundary boundary;
    int value;
    int sum;
  };
  std::vector<PartialResult> partials = {{{}, 0, 0}};
  const auto sum_at = [&](patterns::DataBoundary boundary) {
    return std::find_if(partials.begin(), partials.end(),
                        [&](const PartialResult& p) { return p.boundary == boundary; })
        ->sum;
  };
  for (int l = 1; l <= shape.rounds; ++l) {
    Plan::Round round;
    const bool is_last = l == shape.rounds;
    const int all = partials.back().sum;
    int sum = all;
    if (is_last && last->left_out != 0) {
      // Without those up to the boundary: what is left of them is combined anew, beside the first
      // messages.
      auto partial = std::find_if(partials.begin(), partials.end(),
                                  [&](const PartialResult& p) { return p.boundary == last->left_boundary; });
      sum = -1;
      for (++partial; partial != partials.end(); ++partial) {
        if (sum >= 0) round.combined.push_back({sum, partial->value, plan.values++});
        sum = sum < 0 ? partial->value : plan.values - 1;
      }
    }
    const int whole = is_last ? last->whole : shape.radix;
    const int senders = whole + (is_last && last->sent != 0 ? 1 : 0);
    for (int i = 1; i <= senders; ++i) {
      const int id = shape.notification(l, i);
      round.sent.push_back({patterns::dissemination_target(rank, shape.participants, shape.radix, l, i),
                            id,
                            {i <= whole ? all : sum_at(last->boundary)}});
      const int value = plan.values++;
      round.received.push_back(
          {patterns::dissemination_source(rank, shape.participants, shape.radix, l, i), id, {value}});
      if (sum >= 0) round.combined.push_back({sum, value, plan.values++});
      sum = sum < 0 ? value : plan.values - 1;
      if (!is_last) partials.push_back({{l, i}, value, sum});
    }
    plan.result = sum;
    plan.rounds.push_back(std::move(round));
  }
  return plan;
}

// ---- nodes of the tree

// The nodes that cover what `rank` knows before a round, in rank order.
std::vector<TreeNode> known_before(const Shape& shape, int rank, int round) {
  std::vector<TreeNode> nodes;
  const auto add = [&](TreeNode node) { nodes.push_back(node); };
  const std::int64_t reach = shape.reach(round);
  if (reach >= shape.participants)
    patterns::cover_by_tree(0, shape.participants - 1, shape.participants, add);
  else if (const int first = rank - static_cast<int>(reach) + 1; first >= 0)
    patterns::cover_by_tree(first, rank, shape.participants, add);
  else {
    patterns::cover_by_tree(0, rank, shape.participants, add);
    patterns::cover_by_tree(shape.participants + first, shape.participants - 1, shape.participants, add);
  }
  return nodes;
}

// What `source` sends to its target number `i`: all it knows, but for what the target has by then.
std::vector<TreeNode> sent_in(const Shape& shape, int source, int round, int i) {
  std::vector<TreeNode> nodes = known_before(shape, source, round);
  if (round < shape.rounds) return nodes;
  const int target = patterns::dissemination_target(source, shape.participants, shape.radix, round, i);
  // The target lacks what lies more than i times the reach before it.
  const std::int64_t has = i * shape.reach(round);
  std::erase_if(nodes, [&](TreeNode node) {
    for (int rank = node.first; rank < patterns::tree_end(node, shape.participants); ++rank)
      if ((target - rank + shape.participants) % shape.participants >= has) return false;
    return true;
  });
  return nodes;
}

class TreePlanner {
 public:
  TreePlanner(const Shape& shape, int rank) : shape_(shape), rank_(rank) { known_.push_back({{rank, 0}, 0}); }

  Plan make() {
    for (int l = 1; l <= shape_.rounds; ++l) {
      Plan::Round round;
      for (int i = 1; i <= shape_.senders(l); ++i) {
        const int id = shape_.notification(l, i);
        Plan::Message sent{patterns::dissemination_target(rank_, shape_.participants, shape_.radix, l, i), id, {}};
        for (const TreeNode node : sent_in(shape_, rank_, l, i)) sent.values.push_back(*find(node));
        round.sent.push_back(std::move(sent));
      }
      for (int i = 1; i <= shape_.senders(l); ++i) {
        const int source = patterns::dissemination_source(rank_, shape_.participants, shape_.radix, l, i);
        Plan::Message received{source, shape_.notification(l, i), {}};
        for (const TreeNode node : sent_in(shape_, source, l, i)) {
          received.values.push_back(plan_.values);
          known_.push_back({node, plan_.values++});
        }
        round.received.push_back(std::move(received));
      }
      for (const TreeNode node : known_before(shape_, rank_, l + 1)) plan_.result = build(node, round);
      plan_.rounds.push_back(std::move(round));
    }
    return std::move(plan_);
  }

 private:
  struct Known {
    TreeNode node;
    int value;
  };
  const int* find(TreeNode node) const {
    for (const Known& known : known_)
      if (known.node == node) return &known.value;
    return nullptr;
  }
  // The value of a node, whose ranks all are in nodes that are known.
  int build(TreeNode node, Plan::Round& round) {
    if (const int* const value = find(node)) return *value;
    const int half = 1 << (node.level - 1);
    const int left = build(patterns::tree_node(node.first, node.level - 1, shape_.participants), round);
    const int right = build(patterns::tree_node(node.first + half, node.level - 1, shape_.participants), round);
    round.combined.push_back({left, right, plan_.values});
    known_.push_back({node, plan_.values});
    return plan_.values++;
  }

  const Shape shape_;
  const int rank_;
  Plan plan_;
  std::vector<Known> known_;
};

// The most nodes of the tree that cover what a participant knows before a round, whatever its number and theirs.
std::size_t most_nodes(const Shape& shape, int round) {
  const auto reach = static_cast<std::uint64_t>(std::min<std::int64_t>(shape.reach(round), shape.participants));
  return std::min<std::size_t>(reach, 2 * static_cast<std::size_t>(std::bit_width(reach)) - 1);
}

// Where in a bank, in messages, what a notification announces begins; after the last one, how many there are. In the
// last round partial results may take one sender more than nodes of the tree do.
std::vector<std::size_t> offsets_of(const Shape& shape) {
  std::vector<std::size_t> begins = {0};
  for (int l = 1; l <= shape.rounds; ++l)
    for (int i = 1; i <= shape.radix; ++i) {
      const int senders = shape.senders(l);
      begins.push_back(begins.back() + (i <= senders ? most_nodes(shape, l) : i == senders + 1 ? 1 : 0));
    }
  return begins;
}

std::size_t messages_of_bank(int participants, const RadixChoice& radix) {
  std::size_t most = 1;
  for (int n = radix.first(); n <= radix.last(); ++n) most = std::max(most, offsets_of({participants, n}).back());
  return most;
}

// Returns when the steps are done.
void finish(Steps& steps, Notified& wire, wait::Policy& policy, wait::Site& site, void* stalled) {
  while (!steps.advance())
    wire.wait(
        policy, site, [&] { return steps.can_go_on(); }, stalled);
}

}  // namespace

// Of one n.
struct DisseminatedReduction::Plans {
  Plans(const Shape& shape, int me)
      : offsets(offsets_of(shape)), nodes(TreePlanner(shape, me).make()), partial(plan_partial_results(shape, me)) {}

  std::vector<std::size_t> offsets;
  Plan nodes;
  std::optional<Plan> partial;
};

SegmentShape DisseminatedReduction::segment(int participants, std::size_t capacity, int radix) {
  const RadixChoice all(participants, radix);
  return {banks * messages_of_bank(participants, all) * slot_bytes(capacity), all.notifications()};
}

DisseminatedReduction::DisseminatedReduction(Notified& wire, std::vector<int> peers, int me, std::size_t capacity,
                                             int radix, std::uint64_t calls_before)
    : wire_(wire),
      peers_(std::move(peers)),
      me_(me),
      slot_(slot_bytes(capacity)),
      radix_(static_cast<int>(peers_.size()), radix),
      call_(calls_before),
      bank_bytes_(messages_of_bank(static_cast<int>(peers_.size()), radix_) * slot_) {
  std::size_t most_values = 0;
  for (int n = radix_.first(); n <= radix_.last(); ++n) {
    const Plans& plans = *plans_.emplace_back(std::make_unique<Plans>(Shape{static_cast<int>(peers_.size()), n}, me_));
    const int values = std::max(plans.nodes.values, plans.partial ? plans.partial->values : 0);
    most_values = std::max(most_values, static_cast<std::size_t>(values));
  }
  at_.resize(most_values);
  // For combined values and for messages of several; each is at most all that is received.
  own_.resize(most_values * slot_ + bank_bytes_ + 64);
  if (!radix_.is_settled()) rehearsed_.resize(2 * std::min(capacity, largest_message));
}

DisseminatedReduction::~DisseminatedReduction() = default;

Steps DisseminatedReduction::call(Operands operands, int radix) {
  const std::uint64_t number = ++call_;
  const Plans& plans = *plans_[static_cast<std::size_t>(radix - radix_.first())];
  const Plan& plan = operands.reduction->exact && plans.partial ? *plans.partial : plans.nodes;
  const std::size_t bytes = operands.bytes;
  const std::size_t bank = number % banks * bank_bytes_;
  const int first_id = radix_.id(radix, 1, 1);
  std::byte* own = own_.data() + (64 - reinterpret_cast<std::uintptr_t>(own_.data()) % 64) % 64;
  at_[0] = static_cast<const std::byte*>(operands.send);
  for (const Plan::Round& round : plan.rounds) {
    const std::byte* packed = nullptr;
    const Plan::Message* before = nullptr;
    for (const Plan::Message& message : round.sent) {
      const std::byte* from = at_[static_cast<std::size_t>(message.values.empty() ? 0 : message.values[0])];
      if (message.values.size() > 1) {
        if (before == nullptr || before->values != message.values) {
          packed = own;
          for (const int value : message.values) {
            std::memcpy(own, at_[static_cast<std::size_t>(value)], bytes);
            own += bytes;
          }
          own += (64 - reinterpret_cast<std::uintptr_t>(own) % 64) % 64;
          before = &message;
        }
        from = packed;
      }
      wire_.write_notify(peers_[static_cast<std::size_t>(message.peer)],
                         bank + plans.offsets[static_cast<std::size_t>(message.notification)] * slot_, from,
                         message.values.size() * bytes, first_id + message.notification, number);
    }
    if (&round == &plan.rounds.front() && operands.deposited != nullptr) operands.deposited(operands.context);
    for (const Plan::Message& message : round.received) {
      co_await heard(wire_, first_id + message.notification, number, peers_[static_cast<std::size_t>(message.peer)]);
      const std::byte* from =
          wire_.segment() + bank + plans.offsets[static_cast<std::size_t>(message.notification)] * slot_;
      for (const int value : message.values) {
        at_[static_cast<std::size_t>(value)] = from;
        from += bytes;
      }
    }
    for (const Plan::Combination& c : round.combined) {
      operands.reduction->combine(*operands.reduction, at_[static_cast<std::size_t>(c.left)],
                                  at_[static_cast<std::size_t>(c.right)], own, operands.count);
      at_[static_cast<std::size_t>(c.result)] = own;
      own += in_lines(bytes);
    }
  }
  co_await released(wire_);
  std::memmove(operands.receive, at_[static_cast<std::size_t>(plan.result)], bytes);
}

DisseminatedReduction::Rehearsal::Rehearsal(const Operands& like, std::vector<std::byte>& buffers) : operands(like) {
  reduction.element_bytes = 1;
  reduction.exact = like.reduction->exact;
  reduction.combine = [](const Reduction&, const void* left, const void*, void* out, std::size_t count) {
    std::memmove(out, left, count);
  };
  operands.send = buffers.data();
  operands.receive = buffers.data() + buffers.size() / 2;
  operands.count = like.bytes;
  operands.reduction = &reduction;
  operands.deposited = nullptr;
}

SegmentShape DisseminatedBarrier::segment(int participants, int radix) {
  return {64, RadixChoice(participants, radix).notifications()};
}

Steps DisseminatedBarrier::call(Operands operands, int radix) {
  const std::uint64_t number = ++call_;
  const auto participants = static_cast<int>(peers_.size());
  for (int l = 1; l <= patterns::dissemination_rounds(participants, radix); ++l) {
    for (int i = 1; i <= radix; ++i)
      if (const int participant = patterns::dissemination_target(me_, participants, radix, l, i); participant != me_)
        wire_.notify(peers_[static_cast<std::size_t>(participant)], radix_.id(radix, l, i), number);
    if (l == 1 && operands.deposited != nullptr) operands.deposited(operands.context);
    for (int i = 1; i <= radix; ++i)
      if (const int participant = patterns::dissemination_source(me_, participants, radix, l, i); participant != me_)
        co_await heard(wire_, radix_.id(radix, l, i), number, peers_[static_cast<std::size_t>(participant)]);
  }
}

void DisseminatedBarrier::settle(wait::Policy& policy, wait::Site& site, Prepared* stalled) {
  radix_.settle(
      wire_, peers_, me_,
      [&](int radix) {
        running_ = call({}, radix);
        finish(running_, wire_, policy, site, stalled);
      },
      [&](int id) {
        wire_.wait(
            policy, site, [&] { return wire_.look(id) != 0; }, stalled);
      });
  running_ = Steps();
}

}  // namespace papaya
