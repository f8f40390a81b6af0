// Whether the records of a rank fit into its memory, and if not, how many it handles at once.
#pragma once

#include "collector.hpp"
#include "job.hpp"
#include "options.hpp"
#include "shuffle.hpp"
#include "source.hpp"

namespace terasort {

// Collective: all ranks do alike. Throws Problem where the memory is too little even so.
Plan make_plan(const Source& source, const Options& options, const Job& job);

Collector::Shape shape_of(const Plan& plan, const Options& options) noexcept;

}  // namespace terasort
