// The call stacks that `papaya top` shows.
#pragma once

#include "profiler/analysis/live_view.hpp"
#include "profiler/read/read.hpp"
#include "profiler/report/stacks.hpp"

namespace papaya {

// As they are now: all ranks are asked. Takes up to 2 s, or 10 s across nodes, where ranks do not answer.
report::StackGroups asked_stacks(const report::Run& run);

// Those that ranks have been asked for, by whomever, since others wait for some of them; nobody is asked.
report::StackGroups left_stacks(const report::Run& run, const report::LiveView& view);

}  // namespace papaya
