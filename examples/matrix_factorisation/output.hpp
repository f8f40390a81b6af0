// What the program says.
#pragma once

#include <string>

#include "options.hpp"
#include "training.hpp"

struct Run {
  int ranks;
  int users;
  int items;
  std::string mpi;
};

// A few lines for people.
std::string summary(const Options& options, const Part& part, const Run& run, const History& history);

// All that was measured. Both throw std::runtime_error with a sentence if the file cannot be written.
void check_writable(const std::string& file);
void write_json(const Options& options, const Part& part, const Run& run, const History& history);
