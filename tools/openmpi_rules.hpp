// Rules of a tuning file as Open MPI's coll/tuned reads them (coll_tuned_dynamic_rules_filename), so that what was
// found out about its algorithms helps where papaya is not preloaded. Pure.
#pragma once

#include <string>

#include "tools/export_rules.hpp"
#include "tuning/tuning_file.hpp"

namespace papaya {

enum class OpenMpiFormat { text, json };  // of any version; of version 6

// Calls for which no rule names an algorithm of Open MPI's are left to it, those that papaya would replace among them.
// Empty if that is all of them.
std::string openmpi_rules(const tuning::TuningFile& file, const ExportFacts& facts, OpenMpiFormat format);

}  // namespace papaya
