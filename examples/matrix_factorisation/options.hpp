// The command line.
#pragma once

#include <cstdint>
#include <string>

#include "ratings.hpp"

enum class Allreduce { ssp, consistent, native };
enum class Exchange { updates, models };
enum class Straggling { none, fixed, rotating, random };

struct Options {
  std::string file;  // empty: generated
  Generated generated{.users = 4000, .items = 2000, .ratings = 200000, .rank = 8, .noise = 0.3, .seed = 1};
  double held_out = 0.1;
  int factors = 16;
  double learning_rate = 0.02;
  double regularisation = 0.02;
  int batch = 20000;  // ratings that all ranks together take in an iteration
  int iterations = 300;
  double target = 0;  // 0: none
  Allreduce allreduce = Allreduce::ssp;
  std::string algorithm;  // empty: papaya's choice
  int slack = 0;
  Exchange exchange = Exchange::updates;
  Straggling straggling = Straggling::none;
  double delay_ms = 5;
  std::string json;  // empty: none
};

// Names as on the command line.
std::string name_of(Allreduce allreduce);
std::string name_of(Exchange exchange);
std::string name_of(Straggling straggling);

// What came of the command line: go on, or end with this exit code and, if it is not empty, this text.
struct Parsed {
  bool goes_on;
  int exit_code;
  std::string text;
};
Parsed parse(int argc, char** argv, Options& options);
