// Which rules of PAPAYA_APPROX name the call site of a call: by the record's tables of call sites, and by the names of
// functions and lines in the files of the program, as far as libdw.so.1 is there to read them.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

#include "profiler/record/call_sites.hpp"
#include "profiler/record/format.hpp"
#include "tuning/approx_rules.hpp"

namespace papaya::approx {

class SiteNames {
 public:
  // A bit for each rule. May be called by any thread, from where `return_address` is on the stack. Each site is looked
  // up once.
  std::uint64_t rules_at(const void* return_address, CallSites& call_sites, const trace::Header& record,
                         const std::vector<tuning::ApproxRule>& rules);

 private:
  std::mutex mutex_;                              // guards what follows
  std::map<std::uint64_t, std::uint64_t> known_;  // by the site's number
};

}  // namespace papaya::approx
