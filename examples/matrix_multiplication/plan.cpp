#include "plan.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

namespace matrix_multiplication {

namespace {

constexpr std::size_t never = std::numeric_limits<std::size_t>::max();

std::size_t size(int number) noexcept {
  return static_cast<std::size_t>(number);
}

// As long as that brings the two nearer to each other, the largest block that does moves from the rank with most work
// to the one with least.
void balance(const Layout& c, std::vector<int>& workers, std::vector<std::uint64_t>& loads) {
  for (;;) {
    const auto most = std::max_element(loads.begin(), loads.end());
    const auto least = std::min_element(loads.begin(), loads.end());
    int best = -1;
    std::uint64_t moved = 0;
    c.each([&](int row, int column) {
      const std::uint64_t load = c.elements(row, column);
      if (workers[size(c.index(row, column))] != most - loads.begin() || load <= moved || *least + load >= *most)
        return;
      best = c.index(row, column);
      moved = load;
    });
    if (best < 0) return;
    workers[size(best)] = static_cast<int>(least - loads.begin());
    *most -= moved;
    *least += moved;
  }
}

std::vector<int> rectangles(const Layout& c, Grid grid) {
  std::vector<int> workers(c.owners.size());
  const auto share = [](int number, int of, int parts) { return static_cast<int>(std::int64_t{number} * parts / of); };
  c.each([&](int row, int column) {
    workers[size(c.index(row, column))] =
        share(row, c.rows.count(), grid.rows) * grid.columns + share(column, c.columns.count(), grid.columns);
  });
  return workers;
}

void assign(const Layout& c, int ranks, Assignment assignment, Plan& plan) {
  plan.assignment = assignment;
  plan.workers = assignment == Assignment::grid ? rectangles(c, grid_of(ranks)) : c.owners;
  std::vector<std::uint64_t> loads(size(ranks));
  c.each(
      [&](int row, int column) { loads[size(plan.workers[size(c.index(row, column))])] += c.elements(row, column); });
  if (assignment != Assignment::owner) balance(c, plan.workers, loads);
  const auto all = static_cast<double>(std::accumulate(loads.begin(), loads.end(), std::uint64_t{0}));
  plan.balance = static_cast<double>(*std::max_element(loads.begin(), loads.end())) * ranks / all;
  std::vector<int> places(size(ranks));
  c.each([&](int row, int column) {
    const int owner = c.owner(row, column);
    const int writer = plan.workers[size(c.index(row, column))];
    if (owner == writer) return;
    plan.returns.push_back({row, column, writer, owner, places[size(owner)]++});
    plan.bytes += c.elements(row, column) * sizeof(double);
  });
  plan.most_returns = *std::max_element(places.begin(), places.end());
}

struct Place {
  int row;
  int column;
};

Place place_of(const Product& product, Name name) noexcept {
  return name == Name::a ? Place{product.row, product.inner} : Place{product.inner, product.column};
}

class Planner {
 public:
  Planner(const Layouts& layouts, int ranks, Plan& plan) : layouts_(layouts), ranks_(ranks), plan_(plan) {}

  // Of that rank, in order; blocks that it has itself come first, while others arrive.
  std::vector<Product> products(int rank, Order order) const {
    std::vector<Product> products;
    const int inner = layouts_.a.columns.count();
    layouts_.c.each([&](int row, int column) {
      if (plan_.workers[size(layouts_.c.index(row, column))] != rank) return;
      for (int i = 0; i < inner; ++i) products.push_back({.row = row, .column = column, .inner = i});
    });
    // Ranks begin at different panels, so that not all need the same blocks at once.
    const auto panel = [&](const Product& product) {
      return (product.inner + inner - static_cast<int>(std::int64_t{rank} * inner / ranks_)) % inner;
    };
    const auto remote = [&](const Product& product) {
      int count = 0;
      for (const Name name : operands) count += is_remote(product, name, rank) ? 1 : 0;
      return count;
    };
    std::stable_sort(products.begin(), products.end(), [&](const Product& x, const Product& y) {
      if (order == Order::chains && std::pair(x.column, x.row) != std::pair(y.column, y.row))
        return std::pair(x.column, x.row) < std::pair(y.column, y.row);
      if (order == Order::panels && panel(x) != panel(y)) return panel(x) < panel(y);
      return remote(x) < remote(y);
    });
    mark_ends(products);
    return products;
  }

  // Slots that two panels of the products need, or two products of a chain.
  int slots_for(const std::vector<Product>& products, Name name, Order order, int rank) const {
    if (order == Order::chains) return 2;
    const Layout& layout = layouts_.of(name);
    std::vector<bool> needed(layout.owners.size());
    std::vector<int> counts(size(layouts_.a.columns.count()));
    for (const Product& product : products) {
      const Place place = place_of(product, name);
      const std::size_t index = size(layout.index(place.row, place.column));
      if (!is_remote(product, name, rank) || needed[index]) continue;
      needed[index] = true;
      ++counts[size(product.inner)];
    }
    return std::max(2, 2 * *std::max_element(counts.begin(), counts.end()));
  }

  // Which slot holds which block when.
  void place(std::vector<Product>& products, Name name, int slots, int rank, Schedule& schedule,
             std::vector<std::size_t>& needed_at) const;

 private:
  bool is_remote(const Product& product, Name name, int rank) const noexcept {
    const Place place = place_of(product, name);
    return layouts_.of(name).owner(place.row, place.column) != rank;
  }
  void mark_ends(std::vector<Product>& products) const {
    std::vector<Product*> last(layouts_.c.owners.size());
    for (Product& product : products) {
      Product*& before = last[size(layouts_.c.index(product.row, product.column))];
      product.is_first = before == nullptr;
      before = &product;
    }
    for (Product* const product : last)
      if (product != nullptr) product->is_last = true;
  }

  const Layouts& layouts_;
  const int ranks_;
  const Plan& plan_;
};

struct Slot {
  std::size_t block = never;
  std::size_t last_need = never;  // by a product
  std::size_t next_need = never;
  int arrivals = 0;
};

// The slot whose block is needed again last, as all of the order is known; of those that are needed no more the one
// that has been empty for longest. The one that the product before still needs only if there is no other: writing into
// it could not overlap with that product.
Slot& choose(std::vector<Slot>& slots, std::size_t now) {
  const auto is_better = [now](const Slot& x, const Slot& y) {
    if (x.block == never || y.block == never) return x.block == never && y.block != never;
    const bool is_x_busy = x.last_need + 1 == now;
    const bool is_y_busy = y.last_need + 1 == now;
    if (is_x_busy != is_y_busy) return is_y_busy;
    if (x.next_need != y.next_need) return x.next_need > y.next_need;
    return x.last_need < y.last_need;
  };
  return *std::min_element(slots.begin(), slots.end(), is_better);
}

void Planner::place(std::vector<Product>& products, Name name, int slots, int rank, Schedule& schedule,
                    std::vector<std::size_t>& needed_at) const {
  const Layout& layout = layouts_.of(name);
  const auto which = static_cast<std::size_t>(name);
  const auto index = [&](const Product& product) {
    const Place place = place_of(product, name);
    return size(layout.index(place.row, place.column));
  };
  std::vector<std::size_t> next(products.size());  // product that needs the same block
  std::vector<std::size_t> upcoming(layout.owners.size(), never);
  for (std::size_t i = products.size(); i-- > 0;) next[i] = std::exchange(upcoming[index(products[i])], i);
  std::vector<Slot> all(size(slots));
  std::vector<Slot*> slot_of(layout.owners.size());
  for (std::size_t i = 0; i < products.size(); ++i) {
    Product& product = products[i];
    const std::size_t block = index(product);
    if (!is_remote(product, name, rank)) continue;
    if (slot_of[block] == nullptr) {
      Slot& slot = choose(all, i);
      const Place at = place_of(product, name);
      if (slot.block != never) {
        slot_of[slot.block] = nullptr;
        products[slot.last_need].emptied.push_back(schedule.transfers.size());
      }
      schedule.transfers.push_back({name, at.row, at.column, layout.owner(at.row, at.column), rank,
                                    static_cast<int>(&slot - all.data()), slot.block != never});
      needed_at.push_back(i);
      slot.block = block;
      ++slot.arrivals;
      slot_of[block] = &slot;
    }
    Slot& slot = *slot_of[block];
    slot.last_need = i;
    slot.next_need = next[i];
    product.slots[which] = static_cast<int>(&slot - all.data());
    product.arrivals[which] = slot.arrivals;
  }
}

// In the order of need, over both operands.
void sort_transfers(Schedule& schedule, const std::vector<std::size_t>& needed_at) {
  std::vector<std::size_t> order(schedule.transfers.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t x, std::size_t y) { return needed_at[x] < needed_at[y]; });
  std::vector<std::size_t> rank_of(order.size());
  std::vector<Transfer> sorted;
  for (const std::size_t from : order) {
    rank_of[from] = sorted.size();
    sorted.push_back(schedule.transfers[from]);
  }
  schedule.transfers = std::move(sorted);
  for (Product& product : schedule.products)
    for (std::size_t& transfer : product.emptied) transfer = rank_of[transfer];
}

}  // namespace

Plan make_plan(const Layouts& layouts, int rank, int ranks, Assignment assignment, Order order, int buffers) {
  if (assignment == Assignment::least) {
    Plan balanced = make_plan(layouts, rank, ranks, Assignment::balanced, order, buffers);
    Plan grid = make_plan(layouts, rank, ranks, Assignment::grid, order, buffers);
    constexpr double much = 1.01;  // more work for one rank costs more than what is moved
    if (grid.balance > balanced.balance * much) return balanced;
    return grid.bytes < balanced.bytes || balanced.balance > grid.balance * much ? grid : balanced;
  }
  Plan plan;
  assign(layouts.c, ranks, assignment, plan);
  plan.outgoing.resize(size(ranks));
  const Planner planner(layouts, ranks, plan);
  for (int reader = 0; reader < ranks; ++reader) {
    Schedule schedule{planner.products(reader, order), {}};
    std::vector<std::size_t> needed_at;
    for (const Name name : operands) {
      const int slots = buffers != 0 ? buffers : planner.slots_for(schedule.products, name, order, reader);
      int& most = plan.slots[static_cast<std::size_t>(name)];
      most = std::max(most, slots);
      planner.place(schedule.products, name, slots, reader, schedule, needed_at);
    }
    sort_transfers(schedule, needed_at);
    for (const Transfer& transfer : schedule.transfers) {
      plan.bytes += layouts.of(transfer.name).elements(transfer.row, transfer.column) * sizeof(double);
      if (transfer.writer == rank) plan.outgoing[size(reader)].push_back(transfer);
    }
    if (reader == rank) plan.mine = std::move(schedule);
  }
  return plan;
}

}  // namespace matrix_multiplication
