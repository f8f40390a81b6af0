// The command line of `papaya bench`, read by the command (help, errors) and again by the measuring program.
// No MPI.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "algorithms/weak/weak.hpp"
#include "tools/bench/operation.hpp"
#include "tools/bench/patterns.hpp"

namespace papaya::bench {

enum class Mode : std::uint8_t {
  tight,       // calls back to back, timed in blocks
  deadline,    // every rank arrives at its own deadline on the common clock
  balanced,    // a barrier, then the call: Mohammadalizadehbakhtevari 2021, Listing 4.1
  imbalanced,  // a barrier, a computation of random length, then the call: Listing 4.2
  free,        // weakly consistent ones: a computation, then the call, and nothing else keeps the ranks together
};
std::string_view name_of(Mode mode) noexcept;

struct Options {
  // As given
  std::string collective_word;
  std::string sizes_word = "8:1M:8";
  std::string pattern_word = "none";
  std::string mode_word;
  std::vector<std::string> algorithms;  // empty: native, every one there is, auto
  std::string mpi;                      // empty: of the launcher
  std::string json;
  std::string csv;
  std::string plot;
  std::vector<std::string> combine;  // JSON files of launches, instead of measuring
  int iterations = 0;                // timed calls per row; 0: as many as fit in `seconds`
  int warmup = -1;       // calls before the first timed one; below 0: 12, and more while they take less than 0.05 s
  int rounds = 0;        // turns of a row at most; 0: 20, or 10 with `iterations`
  double seconds = 0.2;  // per row at most
  double precision = 2;  // percent of the median: a row whose interval's half width is no more is done
  double margin = 5;     // percent of the ratio to native that counts as the same
  int samples = 1000;    // of a row in the JSON at most
  int root = 0;
  double skew_us = -1;  // below 0: not given
  double mif = -1;
  std::uint64_t seed = 1;
  int tests = 0;  // MPI_Test during the computation beside a nonblocking collective
  // Of weakly consistent collectives
  double compute_us = -1;  // of every rank before each call; below 0: not given
  std::vector<int> slacks;
  std::vector<double> thresholds;
  std::string of_word;
  std::vector<double> shares;

  // Made of them by finish()
  std::vector<Operation> operations;
  std::optional<WeakCollective> weak;  // instead of these
  bool of_ranks = false;
  bool kernels = false;
  // Not options of the benchmark.
  bool measures_auto = true;      // beside all algorithms there are
  bool measures_natives = false;  // and MPI's own
  std::vector<std::size_t> sizes;
  Pattern pattern = Pattern::none;
  std::string replay_file;
  Mode mode = Mode::tight;
};

// "'X' is no KIND", with the nearest name if there is one.
std::string unknown(std::string_view word, std::string_view kind, std::span<const std::string_view> names);

// Declares the options; `options` must outlive the parse.
void add_options(CLI::App& app, Options& options);

// Checks what was given and completes it. False with one sentence in `problem` if it cannot be used.
bool finish(Options& options, std::string& problem);

// add_options, parse and finish for words after the program's name.
bool parse(std::vector<std::string> words, Options& options, std::string& problem);

}  // namespace papaya::bench
