// What the process itself makes of records: rank 0 the report of the run, in MPI_Finalize, and the watch a report of a
// stall. The only file that knows how records are read and what is made of them; nothing else that is preloaded does.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace papaya::report {
class Readers;
}

namespace papaya::reports {

// report.txt and report.json into the folder, which is called `name` in them. False, with the reason as one line, if
// that cannot be. `readers`, unless null: this one, number 0, reads the records with them, which call help() meanwhile.
bool write(const std::string& folder, const std::string& name, std::string& one_line_error,
           report::Readers* readers) noexcept;
void help(const std::string& folder, report::Readers& readers) noexcept;

// The calls of a running job that ranks have been inside for `at_least_s` seconds and more.
struct Stall {
  std::string text;  // all of them; empty: there are none
  // Of the one that has lasted longest; empty: none is pending.
  std::string headline;
  std::string file_name;  // the same on all nodes
};
Stall find_stall(const std::string& folder, std::int64_t now_unix_ns, double at_least_s);

// The call stacks that ranks have been asked for.
struct AskedRank {
  std::string record;  // its file
  int rank;
  bool is_sent;
  bool has_answered;
};
struct Stacks {
  std::string whole;  // a line for each function
  std::string brief;  // a line for each group of ranks
};
Stacks find_stacks(const std::vector<AskedRank>& ranks);

}  // namespace papaya::reports
