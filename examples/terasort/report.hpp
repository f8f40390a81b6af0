// What the program says in the end: for people, and as JSON.
#pragma once

#include <cstdint>
#include <string>

#include "job.hpp"
#include "options.hpp"
#include "times.hpp"
#include "validator.hpp"

namespace terasort {

struct Outcome {
  std::uint64_t records = 0;  // of all ranks
  std::uint64_t largest = 0;  // partition
  std::uint64_t runs_in_files = 0;
  std::string place;  // what carried the data
  double seconds = 0;
  std::string checksum_of_input;
  Verdict verdict;
};

// Collective; rank 0 prints and writes. Throws Problem.
void report(const Outcome& outcome, const Times& times, const Options& options, const Job& job);

// As valsort says it, on rank 0. True if all is right.
bool tell(const Verdict& verdict, const std::string& checksum, std::uint64_t records, const Job& job);

}  // namespace terasort
