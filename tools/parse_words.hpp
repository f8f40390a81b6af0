// The words of a command line, read again by the program that a command becomes.
#pragma once

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace papaya {

// Into options that add_options(app, options) declares. False, with CLI11's sentence, if they cannot be read.
template <class Options>
bool parse_words(std::vector<std::string> words, Options& options, std::string& problem) {
  CLI::App app;
  add_options(app, options);
  std::reverse(words.begin(), words.end());  // the way CLI11 takes a vector
  try {
    app.parse(std::move(words));
  } catch (const CLI::ParseError& error) {
    problem = error.what();
    return false;
  }
  return true;
}

}  // namespace papaya
