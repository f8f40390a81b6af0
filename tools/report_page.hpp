// The page of `papaya report --html`: the files in tools/report and the chart library, joined when papaya is built, and
// the run's data.
#pragma once

#include <string>

#include "profiler/report/pictures.hpp"
#include "profiler/report/report.hpp"

namespace papaya {

// Whether papaya was built with the chart library.
bool has_report_page();

// Empty without the library or memory. `analysis` was made with the pictures as observer.
std::string to_report_page(const report::Report& analysis, const report::Pictures& pictures);

}  // namespace papaya
