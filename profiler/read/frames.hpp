// A line of the program, as far as it has a name.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "profiler/read/read.hpp"

namespace papaya::report {

// A frame, and what `symbolise` has found out about it.
struct NamedFrame : Frame {
  std::string function;  // empty: not known
  std::string file;      // of the source; empty: not known
  int line = 0;
};

// With what is known of it already.
NamedFrame named(const Frame& frame);

// The frames of a call site by its number in that record, innermost first; none of number 0.
std::vector<NamedFrame> frames_of(const RankFile& file, std::uint32_t call_site);

// "energy() (md.c:120)", "libfoo.so+0x12ab", as well as it is known.
std::string frame_text(const NamedFrame& frame);
// "energy() (md.c:120) < main (md.c:30)"
std::string call_site_text(const std::vector<NamedFrame>& frames);

}  // namespace papaya::report
