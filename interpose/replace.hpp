// A call unlike the last one of its collective on its communicator: decides, sets up what is needed, and runs it.
#pragma once

#include "interpose/call.hpp"

namespace papaya {

// True if an algorithm has run it; false, with the reason, if it is to go native, which every rank decides alike.
bool decide_and_replace(Communicator& state, const Arguments& arguments, const CallFacts& facts,
                        Outcome& outcome) noexcept;

}  // namespace papaya
