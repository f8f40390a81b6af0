#include "base/cost_model.hpp"

#include <algorithm>
#include <tuple>
#include <vector>

namespace papaya {

namespace {

std::vector<CostModel>& list() {
  static auto& models = *new std::vector<CostModel>;  // never destroyed: reports may be made in exit handlers
  return models;
}

auto order_of(const CostModel& model) {
  const bool spans_nodes = model.network_ns != nullptr;
  return std::tuple(model.collective, spans_nodes, spans_nodes ? 0 : model.most_bytes, model.algorithm);
}

}  // namespace

void add_cost_model(const CostModel& model) {
  const auto position = std::lower_bound(list().begin(), list().end(), model,
                                         [](const auto& a, const auto& b) { return order_of(a) < order_of(b); });
  list().insert(position, model);
}

std::span<const CostModel> cost_models() noexcept {
  return list();
}

}  // namespace papaya
