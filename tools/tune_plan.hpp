// What `papaya tune` measures, part after part, and what it has measured. No MPI.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "profiler/report/report.hpp"
#include "tools/bench/options.hpp"
#include "tools/tune_options.hpp"

namespace papaya {

// One collective under one arrival pattern.
struct TunePart {
  std::string collective;
  std::vector<std::size_t> sizes;  // bytes
  std::string pattern;             // as papaya bench takes it; a replay names its run
  double skew_us = -1;             // below 0: not given
  std::string arrivals;            // of a replay
  bool natives = false;            // MPI's own algorithms as well

  std::string name() const { return collective + ", arrivals " + pattern; }
};

// As the options say. Empty, with one sentence in `problem`, if they cannot be used.
std::vector<TunePart> planned(const TuneOptions& options, std::string& problem);

// What a run did on communicators of `ranks` ranks, the collectives of the options or all that can be tuned. `notes`
// gets a sentence for each of its collectives that is left out; empty, with one in `problem`, if all are.
std::vector<TunePart> planned_from(const report::Run& run, const TuneOptions& options, std::size_t ranks,
                                   std::vector<std::string>& notes, std::string& problem);

// For ranks that do not plan.
std::string to_text(const std::vector<TunePart>& parts);
std::vector<TunePart> parts_of(const std::string& text);

// The benchmark's for a part, with so many seconds a row.
bench::Options options_for(const TunePart& part, double seconds);

// Rows that a part has at most: native's and those of the algorithms that could serve.
std::size_t rows_of(const TunePart& part, bool is_on_one_node);

// What was measured, in a file beside the tuning file, which is made of it.
class TuneStore {
 public:
  // The launch that measures now. Tuning files are of one MPI and one kind of machine.
  struct Launch {
    int ranks = 1;
    int nodes = 1;
    int cores = 1;  // of all nodes
    std::string mpi;
  };
  // False, with one sentence, if there is such a file that this launch cannot go on with.
  bool open(const std::string& output, const Launch& launch, std::string& problem);
  // With the sizes that were not measured on such a launch.
  TunePart rest_of(const TunePart& part) const;
  // `result`: the JSON of the benchmark. Writes both files; false after a sentence on standard error.
  bool add(const TunePart& part, const std::string& result);
  // A line for each rule, and what was left out.
  const std::vector<std::string>& choices() const { return choices_; }
  bool make_rules(std::string& problem);

 private:
  struct Measured {
    std::string part;  // JSON
    std::string name;
    std::string result;
  };

  std::string output_;
  Launch launch_;
  std::vector<Measured> all_;
  std::vector<std::string> choices_;
};

}  // namespace papaya
