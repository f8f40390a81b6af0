// What results of weakly consistent collectives have beside those of the others.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "tools/bench/result.hpp"

namespace papaya::bench {

// How the ranks come to calls in --mode free.
std::string free_text(const Result& result);
// The table's head, by the rows of the first size, and a row; at most 120 columns.
std::string weak_table_head(const std::vector<Row>& rows);
std::string weak_table_row(const Row& row);
// Adds the fields of such a row to it.
void add_weak_fields(const WeakFigures& figures, nlohmann::ordered_json& row);
// More columns, each with a comma before it.
std::string weak_csv_columns();
std::string weak_csv(const WeakFigures& figures);

// "threshold_bcast 25 %"
std::string series_name(const Row& row);
bool has_slack(const Result& result);
// Slack against time, waiting and calls per second, a row of pictures for each size: Iakymchuk et al. 2021, Figures 6
// and 7; Faustino 2020, Figures 3 and 4.
std::string slack_svg(const Result& result);

}  // namespace papaya::bench
