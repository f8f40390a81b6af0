// Stands in a flavour of the tests beside the algorithms of the product: "wrong" does what another one does, and on
// rank 1 adds 1000 to the sixth element, an int, of every result from its third run on.
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "algorithms/algorithm.hpp"

namespace papaya {

namespace {

class Wrong final : public Prepared {
 public:
  Wrong(std::unique_ptr<Prepared> right, int rank) : right_(std::move(right)), rank_(rank) { right_->phase_of = this; }

  bool run(const Operands& operands, wait::Site& site) override {
    if (!right_->run(operands, site)) return false;
    if (++runs_ < 3 || rank_ != 1 || operands.receive == nullptr) return true;
    std::byte* const sixth = static_cast<std::byte*>(operands.receive) + 5 * sizeof(int);
    int value = 0;
    std::memcpy(&value, sixth, sizeof value);
    value += 1000;
    std::memcpy(sixth, &value, sizeof value);
    return true;
  }
  bool is_missing(int rank) const override { return right_->is_missing(rank); }
  bool may_end() noexcept override { return right_->may_end(); }

 private:
  std::unique_ptr<Prepared> right_;
  int rank_;
  int runs_ = 0;
};

constexpr std::string_view right_of(Collective collective) {
  switch (collective) {
    case Collective::bcast:
      return "arrival_bcast";
    case Collective::allgather:
      return "arrival_allgather";
    case Collective::alltoall:
      return "arrival_alltoall";
    case Collective::gather:
      return "arrival_gather";
    case Collective::scatter:
      return "arrival_scatter";
    case Collective::reduce_scatter:
    case Collective::reduce_scatter_block:
      return "arrival_blocks";
    default:
      return "arrival_leader";
  }
}

// Found when it is asked for: it may be registered after this one.
template <Collective collective>
const Descriptor& right() {
  return *find_algorithm(collective, right_of(collective));
}

template <Collective collective>
std::vector<std::int64_t> values() {
  std::vector<std::int64_t> all;
  for (const Parameter& parameter : right<collective>().parameters) all.push_back(parameter.fallback);
  return all;
}

template <Collective collective>
constexpr Descriptor wrong = {
    .collective = collective,
    .name = "wrong",
    .summary = "",
    .source = "",
    .one_node = true,
    .serves_alltoallv = collective == Collective::alltoall,
    .parameters = {},
    .region_bytes = [](int ranks, std::size_t capacity, std::span<const std::int64_t>) -> std::size_t {
      return right<collective>().region_bytes(ranks, capacity, values<collective>());
    },
    .prepare = [](const Team& team, std::size_t capacity, std::span<const std::int64_t>) -> std::unique_ptr<Prepared> {
      return std::make_unique<Wrong>(right<collective>().prepare(team, capacity, values<collective>()), team.rank);
    },
};

const Registration registrations[] = {Registration(wrong<Collective::allreduce>),
                                      Registration(wrong<Collective::bcast>),
                                      Registration(wrong<Collective::reduce>),
                                      Registration(wrong<Collective::alltoall>),
                                      Registration(wrong<Collective::allgather>),
                                      Registration(wrong<Collective::gather>),
                                      Registration(wrong<Collective::scatter>),
                                      Registration(wrong<Collective::reduce_scatter>),
                                      Registration(wrong<Collective::reduce_scatter_block>)};

}  // namespace

}  // namespace papaya
