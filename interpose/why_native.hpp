// Who names an algorithm learns why a call does not get it: the first time, from the first rank of the job.
#pragma once

#include <cstddef>

#include "base/reason.hpp"
#include "interpose/communicator.hpp"

namespace papaya::why_native {

void report(const Job& job, const Communicator& state, const Descriptor* algorithm, std::size_t bytes,
            Reason reason) noexcept;

// The communicator is freed: of the algorithms that no call could set up.
void report_what_was_not_set_up(const Job& job, const Communicator& state) noexcept;

}  // namespace papaya::why_native
