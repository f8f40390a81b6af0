// Results for people and programs.
#pragma once

#include <string>

#include "tools/bench/options.hpp"
#include "tools/bench/result.hpp"

namespace papaya::bench {

std::string header_text(const Result& result);
// The table of one collective: its head, and each row as soon as it is there; at most 120 columns.
std::string table_head(const Result& result, const Operation& operation);
std::string table_row(const Row& row, int launches);
// What the reader must know before believing the table: wrong results, missed arrivals. Empty if nothing.
std::string remarks_text(const Result& result);
std::string json_text(const Result& result);
std::string csv_text(const Result& result);
// Size against p50 excess, one line per algorithm, the limit dashed.
std::string plot_svg(const Result& result);
// False, with a line on standard error, if it cannot be written; no file where the name is empty.
bool write_file(const std::string& name, const std::string& text);
// Those that the options name.
bool write_files(const Options& options, const Result& result);

std::string short_bytes(std::size_t bytes);  // "64K"

// "three significant digits" of microseconds, such as 0.0715, 12.3, 4567.
std::string short_number(double value);

// The share that is done, on standard error, once a run has taken two seconds and somebody looks on.
class Progress {
 public:
  explicit Progress(bool wanted);
  ~Progress();
  void show(double share, const std::string& what);
  void clear();

 private:
  bool wanted_;
  double begin_s_;
  double shown_s_ = 0;
  bool visible_ = false;
};

}  // namespace papaya::bench
