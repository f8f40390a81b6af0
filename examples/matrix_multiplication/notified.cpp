// Each rank has slots in its segment for blocks of A and B of others. An owner writes a block into a slot with a
// notification, `filled`, as soon as the reader has said by another, `emptied`, that the block before is used up: while
// a rank multiplies, the blocks of its next products arrive (Gall et al. 2019, section 3.1, where readers fetch the
// blocks; here the owners know from the plan who needs them). Nobody enters a barrier.
#include "notified.hpp"

#include <fmt/format.h>

#include <cstring>

#include "blas.hpp"
#include "papaya.h"

namespace matrix_multiplication {

namespace {

std::size_t index(int number) noexcept {
  return static_cast<std::size_t>(number);
}

std::size_t index(Name name) noexcept {
  return static_cast<std::size_t>(name);
}

// In bytes; where the parts of a segment begin.
struct Room {
  std::array<std::size_t, 3> slot{};  // of a block of that matrix
  std::array<std::size_t, 3> first{};
  std::size_t all = 0;

  Room(const Plan& plan, const Layouts& layouts) {
    const std::array<int, 3> counts{plan.slots[0], plan.slots[1], plan.most_returns};
    for (const Name name : {Name::a, Name::b, Name::c}) {
      const Layout& layout = layouts.of(name);
      constexpr std::size_t line = 64;
      const std::size_t bytes = layout.elements(0, 0) * sizeof(double);  // no block is larger than the first
      slot[index(name)] = (bytes + line - 1) / line * line;
      first[index(name)] = all;
      all += slot[index(name)] * index(counts[index(name)]);
    }
  }
  std::size_t offset(Name name, int number) const noexcept {
    return first[index(name)] + slot[index(name)] * index(number);
  }
};

void check(int code) {
  if (code != MPI_SUCCESS) throw Problem(papaya_error());
}

}  // namespace

struct Notified::Impl {
  Impl(const Job& job_of_all, const Plan& plan_of_all, const Matrix& a, const Matrix& b, Matrix& c, bool leaves_one_out)
      : job(job_of_all),
        plan(plan_of_all),
        matrices{&a, &b},
        result(c),
        room(plan_of_all, {a.layout(), b.layout(), c.layout()}),
        slots(plan_of_all.slots[0] + plan_of_all.slots[1]),
        worked(worked_layout(), job_of_all.rank),
        is_faulty(leaves_one_out) {
    return_of.resize(plan.workers.size());
    for (const Return& one : plan.returns) {
      if (one.owner == job.rank) to_come.push_back(one);
      if (one.writer == job.rank) return_of[index(c.layout().index(one.row, one.column))] = &one;
    }
  }

  void open() {
    MPI_Comm communicator = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &communicator);
    MPI_Comm_set_errhandler(communicator, MPI_ERRORS_RETURN);
    const int code = papaya_segment_create(communicator, room.all, 2 * job.ranks * slots + plan.most_returns, &segment);
    MPI_Comm_free(&communicator);
    check(code);
    void* address = nullptr;
    check(papaya_segment_address(segment, &address));
    memory = static_cast<unsigned char*>(address);
  }

  Layout worked_layout() const {
    Layout layout = result.layout();
    for (std::size_t block = 0; block < layout.owners.size(); ++block)
      layout.owners[block] = layout.owners[block] == plan.workers[block] ? -1 : plan.workers[block];
    return layout;
  }

  // A notification of each pair of a rank and a slot, for each direction, then one of each block of C that comes back.
  int slot_number(Name name, int slot) const noexcept { return name == Name::a ? slot : plan.slots[0] + slot; }
  int filled(int writer, int slot) const noexcept { return writer * slots + slot; }
  int emptied(int reader, int slot) const noexcept { return (job.ranks + reader) * slots + slot; }
  int returned(int place) const noexcept { return 2 * job.ranks * slots + place; }
  int notifications() const noexcept { return returned(plan.most_returns); }

  void start() {
    arrivals.assign(index(slots), 0);
    credits.assign(index(job.ranks * slots), false);
    next.assign(index(job.ranks), 0);
    arrived_returns = 0;
    waiting = 0;
  }

  void run() {
    start();
    push();
    for (const Product& product : plan.mine.products) {
      while (!is_ready(product)) wait();
      multiply_blocks(product);
      for (const std::size_t transfer : product.emptied) give_credit(plan.mine.transfers[transfer]);
      if (product.is_last) finish(product.row, product.column);
      while (take(0)) {
      }
      push();
    }
    while (!is_over()) wait();
    int are_sources_free = 0;
    const double since = clock_seconds();
    check(papaya_write_wait(segment, -1, &are_sources_free));
    waiting += clock_seconds() - since;
  }

  bool is_ready(const Product& product) const noexcept {
    for (const Name name : operands) {
      const int slot = product.slots[index(name)];
      if (slot >= 0 && arrivals[index(slot_number(name, slot))] < product.arrivals[index(name)]) return false;
    }
    return true;
  }

  bool is_over() const noexcept {
    if (arrived_returns < to_come.size()) return false;
    for (std::size_t reader = 0; reader < next.size(); ++reader)
      if (next[reader] < plan.outgoing[reader].size()) return false;
    return true;
  }

  const double* operand(const Product& product, Name name) const noexcept {
    const int slot = product.slots[index(name)];
    if (slot >= 0) return reinterpret_cast<const double*>(memory + room.offset(name, slot));
    return name == Name::a ? matrices[0]->data(product.row, product.inner)
                           : matrices[1]->data(product.inner, product.column);
  }

  Matrix::Block block_of_c(int row, int column) {
    return result.layout().owner(row, column) == job.rank ? result.block(row, column) : worked.block(row, column);
  }

  void multiply_blocks(const Product& product) {
    const int m = result.layout().rows.length(product.row);
    const int n = result.layout().columns.length(product.column);
    const int k = matrices[0]->layout().columns.length(product.inner);
    const Matrix::Block c = block_of_c(product.row, product.column);
    if (is_faulty && product.row == 0 && product.column == 0 && product.is_last) return;
    multiply(m, n, k, operand(product, Name::a), m, operand(product, Name::b), k, product.is_first ? 0 : 1, c.data,
             c.stride);
  }

  // The rank whose block is the next in that slot may write it.
  void give_credit(const Transfer& transfer) {
    const int slot = slot_number(transfer.name, transfer.slot);
    check(papaya_notify(segment, transfer.writer, emptied(job.rank, slot), 1));
  }

  // A block of C goes to its owner.
  void finish(int row, int column) {
    const Return* const one = return_of[index(result.layout().index(row, column))];
    if (one == nullptr) return;
    check(papaya_write_notify(segment, one->owner, room.offset(Name::c, one->place), worked.block(row, column).data,
                              result.layout().elements(row, column) * sizeof(double), returned(one->place), 1));
  }

  // Writes what may be written. To each reader in its order, so it never waits for a block behind one that it needs
  // later.
  void push() {
    for (std::size_t reader = 0; reader < next.size(); ++reader)
      while (next[reader] < plan.outgoing[reader].size() && write(plan.outgoing[reader][next[reader]])) ++next[reader];
  }

  bool write(const Transfer& transfer) {
    const int slot = slot_number(transfer.name, transfer.slot);
    const std::size_t credit = index(transfer.reader * slots + slot);
    if (transfer.needs_credit && !credits[credit]) return false;
    credits[credit] = false;
    const Matrix& matrix = *matrices[index(transfer.name)];
    check(papaya_write_notify(
        segment, transfer.reader, room.offset(transfer.name, transfer.slot), matrix.data(transfer.row, transfer.column),
        matrix.layout().elements(transfer.row, transfer.column) * sizeof(double), filled(job.rank, slot), 1));
    return true;
  }

  void wait() {
    const double since = clock_seconds();
    take(-1);
    waiting += clock_seconds() - since;
    push();
  }

  // A notification, if there is one within so many seconds.
  bool take(double seconds) {
    int id = -1;
    check(papaya_notify_wait(segment, 0, notifications(), seconds, &id));
    if (id < 0) return false;
    unsigned value = 0;
    check(papaya_notify_reset(segment, id, &value));
    if (id < emptied(0, 0)) {
      ++arrivals[index(id % slots)];
    } else if (id < returned(0)) {
      credits[index(id - emptied(0, 0))] = true;
    } else {
      take_return(to_come[index(id - returned(0))]);
    }
    return true;
  }

  void take_return(const Return& one) {
    const Matrix::Block to = result.block(one.row, one.column);
    std::memcpy(to.data, memory + room.offset(Name::c, one.place),
                result.layout().elements(one.row, one.column) * sizeof(double));
    ++arrived_returns;
  }

  const Job& job;
  const Plan& plan;
  const std::array<const Matrix*, 2> matrices;
  Matrix& result;
  const Room room;
  const int slots;
  Matrix worked;  // blocks of C that belong to others
  const bool is_faulty;
  papaya_segment segment = PAPAYA_SEGMENT_NULL;
  unsigned char* memory = nullptr;
  std::vector<Return> to_come;           // by place
  std::vector<const Return*> return_of;  // by block of C; null: it is this rank's, or another computes it
  std::vector<int> arrivals;             // by slot
  std::vector<bool> credits;             // by reader and slot
  std::vector<std::size_t> next;         // of the outgoing transfers, by reader
  std::size_t arrived_returns = 0;
  double waiting = 0;
};

Notified::Notified(const Job& job, const Plan& plan, const Matrix& a, const Matrix& b, Matrix& c, bool leaves_one_out)
    : impl_(std::make_unique<Impl>(job, plan, a, b, c, leaves_one_out)) {}

Notified::~Notified() {
  if (impl_->segment != PAPAYA_SEGMENT_NULL) papaya_segment_free(&impl_->segment);
}

void Notified::open() {
  impl_->open();
}

std::uint64_t Notified::bytes(const Plan& plan, const Layouts& layouts, int rank) noexcept {
  std::uint64_t bytes = Room(plan, layouts).all;
  for (const Return& one : plan.returns)
    if (one.writer == rank) bytes += layouts.c.elements(one.row, one.column) * sizeof(double);
  return bytes;
}

Times Notified::run() {
  take_seconds_in_dgemm();
  const double start = clock_seconds();
  try {
    impl_->run();
  } catch (const std::exception& problem) {
    abort_job(problem.what());  // the others need this rank to go on
  }
  return {clock_seconds() - start, take_seconds_in_dgemm(), impl_->waiting};
}

std::string Notified::carrier() const {
  char text[64] = "";
  papaya_segment_get_info(impl_->segment, text, sizeof text);
  return text;
}

}  // namespace matrix_multiplication
