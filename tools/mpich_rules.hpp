// Rules of a tuning file as the trees by which MPICH chooses. A tree replaces MPICH's own as a whole, so what the rules
// do not speak of is as in the one inside its library. Pure.
#pragma once

#include <string>
#include <string_view>

#include "tools/export_rules.hpp"
#include "tuning/tuning_file.hpp"

namespace papaya {

enum class MpichTree {
  algorithms,  // MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE
  device,      // MPIR_CVAR_CH4_COLL_SELECTION_TUNING_JSON_FILE: which calls ch4 leaves to those
};

// MPICH's own, out of the bytes of its library; empty: there is none.
std::string_view tree_inside(std::string_view library, MpichTree which);

// Empty, with a sentence in `problem`, if nothing can be written. `library`: its bytes.
std::string mpich_rules(const tuning::TuningFile& file, const ExportFacts& facts, MpichTree which,
                        std::string_view library, std::string& problem);

}  // namespace papaya
