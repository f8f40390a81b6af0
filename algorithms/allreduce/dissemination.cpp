// MPI_Allreduce by n-way dissemination (End et al. 2015): ceil(log_{n+1} p) rounds, in each of which every
// rank writes to n others and is written to by n. For small messages across nodes: the fewest rounds there
// are, and nobody waits for a result to come back. Peers and rounds are in patterns/dissemination.hpp.
//
// Two ways, of which every rank takes the same:
//
// Partial results, as in the paper, for operations whose bits do not depend on the order (integers): a
// message is one partial result. The last round is cut by Theorem 1 so that nobody's data counts twice; for
// numbers of ranks that no cut fits, and for all other operations:
//
// Nodes of the fixed tree in rank order. The data that a rank has are those of a range of ranks that ends at
// its own, and differ from rank to rank, so partial results of them would give each rank other bits. Hence
// what is known of a range is kept and sent as the fewest nodes of the tree that cover it, at most 2 log2 of
// its length; two halves of a node become the node as soon as a rank has both. Every value is a node's,
// whoever computes it, and what is known twice is known once: the same bits on all ranks, as those of the
// other algorithms in rank order, and operations need not commute.
//
// Call n has bank n mod 2 of everybody's segment. A rank that ends call n has heard, directly or not, from
// all ranks that they have entered it, so none of them reads the bank of call n-1 any more.
//
// Cost: ceil(log_{n+1} p) latencies, n messages each.

#include "algorithms/patterns/dissemination.hpp"

#include <algorithm>
#include <cstring>
#include <optional>
#include <vector>

#include "algorithms/patterns/tree.hpp"
#include "algorithms/steps.hpp"

namespace papaya {

namespace {

using patterns::TreeNode;

constexpr std::size_t largest_message = 65536;
constexpr std::size_t banks = 2;

std::size_t slot_bytes(std::size_t capacity) noexcept {
  return in_lines(std::min(capacity, largest_message));
}

// What a rank knows and does, in values of one message each: number 0 is its operand, then come those it
// receives and those it combines, as they appear.
struct Plan {
  struct Message {
    int peer;
    int notification;  // and place in the segment: the peer's for those sent, this rank's for those received
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
  int ranks;
  int ways;
  int rounds = patterns::dissemination_rounds(ranks, ways);

  std::int64_t reach(int round) const {
    return patterns::dissemination_reach(ways, round - 1);
  }  // before the round
  // Ranks that send to another in a round.
  int senders(int round) const {
    return round < rounds ? ways : static_cast<int>((ranks - reach(round) + reach(round) - 1) / reach(round));
  }
  int notifications() const { return rounds * ways; }
  int notification(int round, int i) const { return (round - 1) * ways + i - 1; }
};

// ---- partial results

std::optional<Plan> plan_partial_results(const Shape& shape, int rank) {
  const auto last = patterns::dissemination_last_round(shape.ranks, shape.ways);
  if (!last) return std::nullopt;
  Plan plan;
  // The pieces that this rank's data consist of, in their order, and each with the sum up to it.
  struct Piece {
    patterns::DataBoundary boundary;
    int value;
    int sum;
  };
  std::vector<Piece> pieces = {{{}, 0, 0}};
  const auto sum_at = [&](patterns::DataBoundary boundary) {
    return std::find_if(pieces.begin(), pieces.end(), [&](const Piece& p) { return p.boundary == boundary; })
        ->sum;
  };
  for (int l = 1; l <= shape.rounds; ++l) {
    Plan::Round round;
    const bool is_last = l == shape.rounds;
    const int all = pieces.back().sum;
    int sum = all;
    if (is_last && last->left_out != 0) {
      // Without the pieces up to the boundary: what is left of them is combined anew, beside the first
      // messages.
      auto piece = std::find_if(pieces.begin(), pieces.end(),
                                [&](const Piece& p) { return p.boundary == last->left_boundary; });
      sum = -1;
      for (++piece; piece != pieces.end(); ++piece) {
        if (sum >= 0) round.combined.push_back({sum, piece->value, plan.values++});
        sum = sum < 0 ? piece->value : plan.values - 1;
      }
    }
    const int whole = is_last ? last->whole : shape.ways;
    const int senders = whole + (is_last && last->sent != 0 ? 1 : 0);
    for (int i = 1; i <= senders; ++i) {
      const int id = shape.notification(l, i);
      round.sent.push_back({patterns::dissemination_target(rank, shape.ranks, shape.ways, l, i),
                            id,
                            {i <= whole ? all : sum_at(last->boundary)}});
      const int value = plan.values++;
      round.received.push_back(
          {patterns::dissemination_source(rank, shape.ranks, shape.ways, l, i), id, {value}});
      if (sum >= 0) round.combined.push_back({sum, value, plan.values++});
      sum = sum < 0 ? value : plan.values - 1;
      if (!is_last) pieces.push_back({{l, i}, value, sum});
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
  if (reach >= shape.ranks)
    patterns::cover_by_tree(0, shape.ranks - 1, shape.ranks, add);
  else if (const int first = rank - static_cast<int>(reach) + 1; first >= 0)
    patterns::cover_by_tree(first, rank, shape.ranks, add);
  else {
    patterns::cover_by_tree(0, rank, shape.ranks, add);
    patterns::cover_by_tree(shape.ranks + first, shape.ranks - 1, shape.ranks, add);
  }
  return nodes;
}

// What `source` sends to its target number `i`: all it knows, but for what the target has by then.
std::vector<TreeNode> sent_in(const Shape& shape, int source, int round, int i) {
  std::vector<TreeNode> nodes = known_before(shape, source, round);
  if (round < shape.rounds) return nodes;
  const int target = patterns::dissemination_target(source, shape.ranks, shape.ways, round, i);
  // The target lacks what lies more than i times the reach before it.
  const std::int64_t has = i * shape.reach(round);
  std::erase_if(nodes, [&](TreeNode node) {
    for (int rank = node.first; rank < patterns::tree_end(node, shape.ranks); ++rank)
      if ((target - rank + shape.ranks) % shape.ranks >= has) return false;
    return true;
  });
  return nodes;
}

// The most nodes that a message of a round may have.
int most_nodes(const Shape& shape, int round) {
  std::size_t most = 1;
  for (int rank = 0; rank < shape.ranks; ++rank)
    most = std::max(most, known_before(shape, rank, round).size());
  return static_cast<int>(most);
}

class TreePlanner {
 public:
  TreePlanner(const Shape& shape, int rank) : shape_(shape), rank_(rank) { known_.push_back({{rank, 0}, 0}); }

  Plan make() {
    for (int l = 1; l <= shape_.rounds; ++l) {
      Plan::Round round;
      for (int i = 1; i <= shape_.senders(l); ++i) {
        const int id = shape_.notification(l, i);
        Plan::Message sent{patterns::dissemination_target(rank_, shape_.ranks, shape_.ways, l, i), id, {}};
        for (const TreeNode node : sent_in(shape_, rank_, l, i)) sent.values.push_back(*find(node));
        round.sent.push_back(std::move(sent));
      }
      for (int i = 1; i <= shape_.senders(l); ++i) {
        const int source = patterns::dissemination_source(rank_, shape_.ranks, shape_.ways, l, i);
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
    const int left = build(patterns::tree_node(node.first, node.level - 1, shape_.ranks), round);
    const int right = build(patterns::tree_node(node.first + half, node.level - 1, shape_.ranks), round);
    round.combined.push_back({left, right, plan_.values});
    known_.push_back({node, plan_.values});
    return plan_.values++;
  }

  const Shape shape_;
  const int rank_;
  Plan plan_;
  std::vector<Known> known_;
};

// ---- running

// Where in a segment, in messages, what a notification announces begins; after the last one, how many there
// are.
std::vector<std::size_t> places(const Shape& shape) {
  std::vector<std::size_t> begins = {0};
  for (int l = 1; l <= shape.rounds; ++l) {
    const auto most = static_cast<std::size_t>(most_nodes(shape, l));
    for (int i = 1; i <= shape.ways; ++i) begins.push_back(begins.back() + most);
  }
  return begins;
}

class Dissemination final : public OverWire {
 public:
  Dissemination(const Team& team, std::size_t capacity, const Shape& shape)
      : OverWire(team),
        slot_(slot_bytes(capacity)),
        places_(places(shape)),
        nodes_(TreePlanner(shape, team.rank).make()),
        partial_(plan_partial_results(shape, team.rank)),
        call_(team.first_round - 1) {
    const int most = std::max(nodes_.values, partial_ ? partial_->values : 0);
    at_.resize(static_cast<std::size_t>(most));
    // For combined values and for messages of several; each is at most all that is received.
    own_.resize((static_cast<std::size_t>(most) + places_.back()) * slot_ + 64);
  }

 private:
  Steps steps(Operands operands) override {
    ++call_;
    const Plan& plan = operands.reduction->exact && partial_ ? *partial_ : nodes_;
    Notified& wire = *team_.wire;
    const std::size_t bytes = operands.bytes;
    const std::size_t bank = call_ % banks * places_.back() * slot_;
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
        wire.write_notify(message.peer,
                          bank + places_[static_cast<std::size_t>(message.notification)] * slot_, from,
                          message.values.size() * bytes, message.notification, call_);
      }
      if (&round == &plan.rounds.front()) tell_deposited(operands);
      for (const Plan::Message& message : round.received) {
        co_await heard(message.notification, call_, message.peer);
        const std::byte* from =
            wire.segment() + bank + places_[static_cast<std::size_t>(message.notification)] * slot_;
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
    wire.release_sources();
    std::memmove(operands.receive, at_[static_cast<std::size_t>(plan.result)], bytes);
  }

  const std::size_t slot_;
  const std::vector<std::size_t> places_;
  const Plan nodes_;
  const std::optional<Plan> partial_;
  std::uint64_t call_;
  std::vector<const std::byte*> at_;  // of each value of this call
  std::vector<std::byte> own_;        // combined values and messages of several
};

constexpr Parameter parameters[] = {
    {"ways", 2, 1, 7, "ranks that each rank sends to in a round"},
};

Shape shape_for(int ranks, std::span<const std::int64_t> values) {
  return {ranks, static_cast<int>(values[0])};
}

constexpr Descriptor descriptor = {
    .collective = Collective::allreduce,
    .name = "dissemination",
    .summary =
        "every rank sends to n others in each of ceil(log_{n+1} p) rounds, and has the result after the last",
    .source = "End et al. 2015",
    .one_node = false,
    .split_phase = true,
    .takes_vetoes = false,
    .max_bytes = largest_message,
    .parameters = parameters,
    .segment = [](int ranks, std::size_t capacity, std::span<const std::int64_t> values) -> SegmentShape {
      const Shape shape = shape_for(ranks, values);
      return {std::max<std::size_t>(banks * places(shape).back() * slot_bytes(capacity), 64),
              std::max(shape.notifications(), 1)};
    },
    .prepare = [](const Team& team, std::size_t capacity,
                  std::span<const std::int64_t> values) -> std::unique_ptr<Prepared> {
      return std::make_unique<Dissemination>(team, capacity, shape_for(team.size, values));
    },
};
const Registration registration(descriptor);

}  // namespace

}  // namespace papaya
