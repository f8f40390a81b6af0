#include "algorithms/weak/wait_avoiding_group.hpp"

#include "algorithms/weak/group_across_nodes.hpp"

namespace papaya {

namespace {

constexpr Parameter parameters[] = {
    {.name = "group", .fallback = 4, .lowest = 1, .highest = 1 << 20, .help = "ranks of a group, a power of two"},
    {.name = "period",
     .fallback = 10,
     .lowest = 1,
     .highest = 1 << 30,
     .help = "calls from one of all ranks to the next"},
    {.name = "lag",
     .fallback = 4,
     .lowest = 0,
     .highest = 1 << 16,
     .help = "calls that a rank may be behind before others wait"},
    {.name = "thread",
     .fallback = 1,
     .lowest = 0,
     .highest = 1,
     .help = "1: across nodes a thread answers for ranks that are away, under MPI_THREAD_MULTIPLE; 0: their calls do"},
};

const char* refusal(const WeakRequest& request) noexcept {
  return std::has_single_bit(static_cast<std::uint64_t>(request.values[0]))
             ? nullptr
             : "group is no power of two; take 2, 4, 8 and so on";
}

constexpr WeakDescriptor descriptor = {
    .collective = WeakCollective::group_allreduce,
    .name = "wait_avoiding_group",
    .summary =
        "executed in groups, other ones in each call, by the first of each that arrives, with the others' newest",
    .source = "Li et al., TPDS 2021 (WAGMA-SGD)",
    .refusal = refusal,
    .parameters = parameters,
    .segment = [](const WeakRequest& request) -> SegmentShape {
      if (request.nodes == nullptr) return {64, 1};
      return GroupAcrossNodes::relay_shape(GroupShape::of(request)).segment();
    },
    .region_bytes =
        [](const WeakRequest& request) {
          return request.nodes == nullptr ? GroupShape::of(request).region_bytes() : std::size_t{0};
        },
    .prepare = [](const Team& team, const WeakRequest& request) -> std::unique_ptr<Weak> {
      if (request.nodes != nullptr)
        return std::make_unique<GroupAcrossNodes>(team, GroupShape::of(request), *request.reduction,
                                                  request.values[group_thread] != 0);
      return std::make_unique<WaitAvoidingGroupOf<std::atomic<std::uint64_t>>>(team, GroupShape::of(request));
    },
};

const WeakRegistration registration(descriptor);

}  // namespace

}  // namespace papaya
