#include "algorithms/weak/weak.hpp"

#include <algorithm>
#include <vector>

namespace papaya {

namespace {
std::vector<const WeakDescriptor*>& list() {
  static auto& descriptors = *new std::vector<const WeakDescriptor*>;  // never destroyed, as the other registry
  return descriptors;
}
}  // namespace

std::string_view name_of(WeakCollective collective) noexcept {
  switch (collective) {
    case WeakCollective::ssp_allreduce:
      return "ssp_allreduce";
    case WeakCollective::threshold_bcast:
      return "threshold_bcast";
    case WeakCollective::threshold_reduce:
      return "threshold_reduce";
    case WeakCollective::partial_allreduce:
      return "partial_allreduce";
    case WeakCollective::group_allreduce:
      return "group_allreduce";
    case WeakCollective::sparse_allreduce:
      return "sparse_allreduce";
  }
  return "";
}

std::span<const WeakDescriptor* const> weak_registry() noexcept {
  return list();
}

const WeakDescriptor* find_weak(std::string_view name) noexcept {
  const auto found = std::find_if(list().begin(), list().end(), [&](auto* one) { return one->name == name; });
  return found == list().end() ? nullptr : *found;
}

WeakRegistration::WeakRegistration(const WeakDescriptor& descriptor) {
  const auto position = std::lower_bound(list().begin(), list().end(), &descriptor, [](auto* a, auto* b) {
    return a->collective != b->collective ? a->collective < b->collective : a->name < b->name;
  });
  list().insert(position, &descriptor);
}

}  // namespace papaya
