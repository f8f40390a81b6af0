// The names of call sites: functions, files and lines, from the symbols and the debug information of the program's
// files as far as they are there and still those that ran.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "profiler/report/report.hpp"

namespace papaya {

// Names one frame after the other. The files stay open as long as this lives.
class Symbols {
 public:
  Symbols();
  ~Symbols();
  Symbols(const Symbols&) = delete;
  Symbols& operator=(const Symbols&) = delete;

  // Fills in what it can and leaves the rest as it is.
  void name(report::NamedFrame& frame);
  // A sentence for each file that is no longer the one that ran.
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  class File;
  std::map<std::pair<std::string, std::string>, std::unique_ptr<File>> files_;  // by path and build-id
  std::vector<std::string> notes_;
};

using CallSites = std::vector<std::vector<report::NamedFrame>*>;

// The same for all frames of these, with the sentences.
std::vector<std::string> symbolise(const CallSites& sites);
// The same for all of a report's, with the sentences as its notes.
void symbolise(report::Report& analysis);

}  // namespace papaya
