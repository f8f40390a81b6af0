// The sections of report.txt: a file for each group of tables; empty where there is nothing to show.
#pragma once

#include <string>

#include "profiler/analysis/analysis.hpp"

namespace papaya::report {

// header.cpp
std::string header_text(const Analysis& analysis);
std::string pending_text(const Analysis& analysis);

// rank_times.cpp
std::string rank_times_text(const Analysis& analysis);
std::string efficiencies_text(const Analysis& analysis);
std::string functions_text(const Analysis& analysis);

// collectives.cpp
std::string collectives_text(const Analysis& analysis);
std::string sizes_text(const Analysis& analysis);
std::string imbalance_text(const Analysis& analysis);
std::string inside_text(const Analysis& analysis);
std::string algorithms_text(const Analysis& analysis);
std::string communicators_text(const Analysis& analysis);

// trials.cpp
std::string trials_text(const Analysis& analysis);

// waits.cpp
std::string waits_text(const Analysis& analysis);

// late_ranks.cpp
std::string late_ranks_text(const Analysis& analysis);
std::string usage_text(const Analysis& analysis);
std::string costly_calls_text(const Analysis& analysis);
std::string whole_run_text(const Analysis& analysis);

// what_if.cpp
std::string what_if_text(const Analysis& analysis);
std::string savings_text(const Analysis& analysis);

// call_sites.cpp
std::string horovod_text(const Analysis& analysis);
std::string call_sites_text(const Analysis& analysis);
std::string phases_text(const Analysis& analysis);

// weak.cpp
std::string weak_text(const Analysis& analysis);
std::string weak_sites_text(const Analysis& analysis);
std::string weak_phases_text(const Analysis& analysis);

}  // namespace papaya::report
