#include "algorithms/weak/wait_avoiding_group.hpp"

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
    .region_bytes = [](const WeakRequest& request) { return GroupShape::of(request).region_bytes(); },
    .prepare = [](const Team& team, const WeakRequest& request) -> std::unique_ptr<Weak> {
      return std::make_unique<WaitAvoidingGroupOf<std::atomic<std::uint64_t>>>(team, GroupShape::of(request));
    },
};

const WeakRegistration registration(descriptor);

}  // namespace

}  // namespace papaya
