// Who multiplies what, in which order, and which block is written to whom for that. Every rank makes the same plan, so
// an owner knows without a request where its blocks are needed next, and nothing has to be read from another rank.
#pragma once

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "layout.hpp"

namespace matrix_multiplication {

// Who computes blocks of C: their owners, as in the paper; the owners, after blocks have been moved until all ranks
// have as much to do; or ranks in a grid, each a rectangle of C, which needs the fewest blocks of A and B: again as
// much each. `least`: of these two the one that moves fewer bytes.
enum class Assignment { least, balanced, grid, owner };
// Of the products of a rank: all of one block of A's columns and B's rows after the other, which needs each block once;
// or, as in the paper, all of one block of C.
enum class Order { panels, chains };

constexpr std::array<Name, 2> operands{Name::a, Name::b};

// A block on its way into a slot of its reader's segment.
struct Transfer {
  Name name = Name::a;
  int row = 0;
  int column = 0;
  int writer = 0;
  int reader = 0;
  int slot = 0;
  bool needs_credit = false;  // the slot has had another block before
};

// C(row, column) += A(row, inner) * B(inner, column).
struct Product {
  int row = 0;
  int column = 0;
  int inner = 0;
  bool is_first = false;  // of this block of C
  bool is_last = false;
  std::array<int, 2> slots{-1, -1};   // of the operands; -1: own blocks
  std::array<int, 2> arrivals{0, 0};  // transfers into that slot until then
  std::vector<std::size_t> emptied;   // transfers into slots that this product is the last to need
};

struct Schedule {  // of one rank
  std::vector<Product> products;
  std::vector<Transfer> transfers;  // to it, in the order in which it needs them
};

struct Return {  // of a block of C that another rank than its owner has computed
  int row = 0;
  int column = 0;
  int writer = 0;
  int owner = 0;
  int place = 0;  // among those to that owner
};

struct Plan {
  Assignment assignment = Assignment::owner;
  std::vector<int> workers;  // by block of C
  std::array<int, 2> slots{0, 0};
  std::vector<Return> returns;
  int most_returns = 0;  // to one owner
  Schedule mine;
  std::vector<std::vector<Transfer>> outgoing;  // of this rank, by reader
  std::uint64_t bytes = 0;                      // that are moved, of all ranks
  double balance = 1;                           // largest share of the work, by the mean
};

struct Layouts {
  Layout a;
  Layout b;
  Layout c;
  const Layout& of(Name name) const noexcept { return name == Name::a ? a : name == Name::b ? b : c; }
};

// `buffers`: slots for each operand; 0: as many as two panels need.
Plan make_plan(const Layouts& layouts, int rank, int ranks, Assignment assignment, Order order, int buffers);

}  // namespace matrix_multiplication
