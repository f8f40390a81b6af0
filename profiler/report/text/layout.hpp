// Lines, tables and bars of report.txt.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "profiler/analysis/analysis.hpp"

namespace papaya::report {

// Of a table; the rest is in report.json.
inline constexpr std::size_t most_ranks_listed = 12;
inline constexpr std::size_t most_call_sites_listed = 10;

// Columns on a terminal: one for each code point. Names of programs may use more; they stand last on their
// lines.
std::size_t columns_of(std::string_view text);
// No wider than `columns`: "split of MPI_COM..., ranks 4-7". What tells names apart stands at their ends: the ranks of
// a communicator stay, or the end of any other name.
std::string shortened(std::string_view name, std::size_t columns);
// Breaks at spaces; a word longer than a line is cut.
std::string wrap(std::string_view text, std::string_view first_indent, std::size_t indent);

std::string bytes_text(double bytes);
// 0 where there is no whole.
double share_of(double part, double whole);
// A bar and a percentage.
std::string share_bar(double share);
// Beside figures that compare nodes. Two nodes' clocks may both be off.
std::string between_nodes_text(const Analysis& analysis);

// Columns as wide as their widest cell: the first `left_columns` left-aligned, the others right-aligned, the
// last one left-aligned again where it holds words.
class Table {
 public:
  Table(std::string title, std::size_t left_columns, std::vector<std::string> names, bool last_is_words = false)
      : title_(std::move(title)), left_columns_(left_columns), last_is_words_(last_is_words) {
    add(std::move(names));
  }
  // `below`: what is said of the row on lines of its own.
  void add(std::vector<std::string> row, std::vector<std::string> below = {}) {
    rows_.push_back(std::move(row));
    below_.push_back(std::move(below));
  }
  bool empty() const { return rows() == 0; }
  std::size_t rows() const { return rows_.size() - 1; }

  std::string text() const;

 private:
  std::string title_;
  std::size_t left_columns_;
  bool last_is_words_;
  std::vector<std::vector<std::string>> rows_;
  std::vector<std::vector<std::string>> below_;  // each row
};

}  // namespace papaya::report
