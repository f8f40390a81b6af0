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

// Of a rank's partition, of so many records; at most 1: none.
std::uint64_t bins_of(const Plan& plan, const Options& options, std::uint64_t records) noexcept;

Collector::Shape shape_of(const Plan& plan, const Options& options) noexcept;

}  // namespace terasort
