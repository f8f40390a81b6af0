// Rules of a tuning file as UCC reads them: UCC_TL_UCP_TUNE and UCC_CL_HIER_TUNE, a line for each, for the shell or for
// ucc.conf. Pure.
#pragma once

#include <string>

#include "tools/export_rules.hpp"
#include "tuning/tuning_file.hpp"

namespace papaya {

// Empty if no rule names an algorithm of UCC for such calls.
std::string ucc_rules(const tuning::TuningFile& file, const ExportFacts& facts);

}  // namespace papaya
