// The command line of `papaya tune`, read by the command and, where it measures, again by the measuring program. No
// MPI.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace papaya {

struct TuneOptions {
  // As given
  std::vector<std::string> files;        // measured before; empty: it measures
  std::string output;                    // of what it measures: papaya-tuning.json
  std::vector<std::string> collectives;  // empty: all that papaya has algorithms for
  std::string sizes;                     // empty: 8:1M:8
  std::vector<std::string> patterns;     // empty: none, random, straggler
  double skew_us = -1;                   // below 0: not given
  bool natives = false;                  // MPI's own algorithms as well
  std::string budget_word;               // empty: 5m
  std::string from;                      // folder of a recorded run; empty: none
  std::string mpi;                       // empty: of the launcher

  // Made of it by finish()
  double budget_s = 300;
};

void add_options(CLI::App& app, TuneOptions& options);

// Checks what was given and completes it. False with one sentence in `problem` if it cannot be used.
bool finish(TuneOptions& options, std::string& problem);

// add_options, parse and finish for words after the program's name.
bool parse(std::vector<std::string> words, TuneOptions& options, std::string& problem);

// "90", "90s", "5m", "1.5h" -> seconds; false if it is no time above 0.
bool parse_seconds(const std::string& text, double& seconds);

}  // namespace papaya
