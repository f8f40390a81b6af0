// Calls of one place in the program (tuning/site_period.hpp) are a part of their class: where rules of the tuning file
// are for it, and, once a trial of all calls of the class has ended, where several places take turns.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "interpose/combine.hpp"
#include "interpose/trial_classes.hpp"

namespace papaya::trials::sites {

// This rank's calls of some of these classes come from elsewhere than all ranks know.
bool have_news(Communicator& state, std::span<Class* const> classes, const CallFacts& facts);

// Collective over the communicator.
void exchange(Communicator& state, std::span<Class* const> classes, const Combine& combined, const CallFacts& facts);

// What all ranks know decides which parts there are; those that are new are returned.
std::vector<One*> follow(Communicator& state, Class& of, const CallFacts& facts);

// The call, which belongs to the class, is made from this site, a number of this rank's record. True if that is what
// all ranks expected.
bool note(Class& of, std::uint64_t call_site) noexcept;

// It has been counted: whose the next one is.
void move_on(Communicator& state, Class& of) noexcept;

}  // namespace papaya::trials::sites
