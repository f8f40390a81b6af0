#include "algorithms/algorithm.hpp"

#include <algorithm>

#include "algorithms/transport/shared_notified.hpp"
#include "base/old_names.hpp"

namespace papaya {

namespace {
std::vector<const Descriptor*>& list() {
  static auto& descriptors = *new std::vector<const Descriptor*>;  // never destroyed: calls may come from exit handlers
  return descriptors;
}
}  // namespace

std::span<const Descriptor* const> registry() noexcept {
  return list();
}

SharedBytes shared_bytes(const Descriptor& descriptor, const Layout& layout, std::size_t capacity,
                         std::span<const std::int64_t> values) {
  const bool has_wire = descriptor.segment != nullptr;
  return {has_wire ? SharedNotified::region_bytes(layout.ranks, descriptor.segment(layout, capacity, values)) : 0,
          descriptor.region_bytes == nullptr ? 0 : descriptor.region_bytes(layout.ranks, capacity, values)};
}

const Descriptor* find_algorithm(Collective collective, std::string_view name) noexcept {
  for (const Descriptor* descriptor : list())
    if (descriptor->collective == collective && !name.empty() &&
        (descriptor->name == name || descriptor->old_name == name))
      return descriptor;
  return nullptr;
}

std::uint32_t trace_number(const Descriptor& descriptor) noexcept {
  const auto position = std::find(list().begin(), list().end(), &descriptor);
  return static_cast<std::uint32_t>(position - list().begin() + 1);
}

Registration::Registration(const Descriptor& descriptor) {
  // Sorted, so that every process numbers the algorithms alike whatever order the linker left them in.
  const auto position = std::lower_bound(list().begin(), list().end(), &descriptor, [](auto* a, auto* b) {
    return a->collective != b->collective ? a->collective < b->collective : a->name < b->name;
  });
  list().insert(position, &descriptor);
  if (descriptor.automatic.most_ranks > 0 || descriptor.network_ns != nullptr)
    add_cost_model({descriptor.collective, descriptor.name, descriptor.max_bytes, descriptor.network_ns});
  if (!descriptor.old_name.empty()) add_old_name(descriptor.old_name, descriptor.name);
}

}  // namespace papaya
