#include "profiler/report/site_losses.hpp"

#include <algorithm>

namespace papaya::report {
namespace {

constexpr std::size_t least_cells = 1024;

// By place, each once.
void sum_up(std::vector<SiteLosses::Cell>& cells) {
  std::stable_sort(cells.begin(), cells.end(), [](const auto& a, const auto& b) { return a.place < b.place; });
  std::size_t kept = 0;
  for (const SiteLosses::Cell& cell : cells) {
    if (kept > 0 && cells[kept - 1].place == cell.place)
      cells[kept - 1].ns += cell.ns;
    else
      cells[kept++] = cell;
  }
  cells.resize(kept);
}

// Of those, summed up, the costliest.
void keep(std::vector<SiteLosses::Cell>& cells, std::size_t most) {
  if (cells.size() <= most) return;
  const auto end = cells.begin() + static_cast<std::ptrdiff_t>(most);
  std::nth_element(cells.begin(), end, cells.end(), [](const auto& a, const auto& b) { return a.ns > b.ns; });
  cells.erase(end, cells.end());
  std::sort(cells.begin(), cells.end(), [](const auto& a, const auto& b) { return a.place < b.place; });
}

}  // namespace

void SiteLosses::add(const ComparedCall& call, std::size_t bin, std::size_t most) {
  for (std::size_t i = 0; i < call.files.size(); ++i) {
    if (!(call.caused_ns[i] > 0)) continue;
    lost_ns_[bin] += call.caused_ns[i];
    cells_.push_back(
        {static_cast<std::uint32_t>(call.files[i] * lost_ns_.size() + bin), static_cast<float>(call.caused_ns[i])});
  }
  most = std::max(most, least_cells);
  if (cells_.size() <= 2 * most) return;
  sum_up(cells_);
  is_whole_ = is_whole_ && cells_.size() <= most;
  keep(cells_, most);
}

std::vector<SiteLosses::Cell> SiteLosses::cells(std::size_t most) const {
  std::vector<Cell> cells = cells_;
  sum_up(cells);
  keep(cells, most);
  return cells;
}

}  // namespace papaya::report
