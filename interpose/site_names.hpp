// Which places, as users write them, a call site is: by the record's table of call sites, and by the names of functions
// and lines in the files of the program, as far as libdw.so.1 is there to read them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <utility>

#include "profiler/record/format.hpp"
#include "tuning/named_site.hpp"

namespace papaya {

class SiteNames {
 public:
  // A bit for each place that the site is.
  using Places = std::function<std::uint64_t(const tuning::NamedSite& site)>;
  explicit SiteNames(Places places) : places_(std::move(places)) {}

  // By the site's number in the record; 0: none. May be called by any thread. Each site is looked up once.
  std::uint64_t at(std::uint64_t number, const trace::Header& record);

 private:
  Places places_;
  std::mutex mutex_;                              // guards what follows
  std::map<std::uint64_t, std::uint64_t> known_;  // by the site's number
};

}  // namespace papaya
