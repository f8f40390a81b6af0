// The output folder: its name, making it, the files that are there from the start.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/settings.hpp"

namespace papaya::output {

// papaya.APP.NRANKS.ID; the ID is the batch system's job number, else date and process number.
std::string default_folder(std::string_view program, int ranks);

// The path of this process's program and its command line.
std::string program_path();
std::string command_line();
std::string_view base_name(std::string_view path) noexcept;

// Makes the folder on rank 0. One that exists is renamed to FOLDER.1, FOLDER.2, ... Where it cannot be made,
// one of the name `otherwise` among the temporary files is used instead, and a sentence says so. An empty
// string: there is none to be had. None is made where fewer than `least_bytes` are free, as far as the file system
// tells. The folder is open as `descriptor`, whatever another job makes of its name; -1 without.
std::string make_folder(std::string wanted, std::string_view otherwise, std::uint64_t least_bytes, int& descriptor,
                        std::string& sentence);

// What only this job's ranks know; README holds it, so that a node can tell rank 0's folder from any other of the same
// name.
std::string new_run();

// README and papaya.cfg.
void write_start_files(const std::string& folder, const Settings& settings, std::string_view program, int ranks,
                       std::string_view mpi, std::string_view run);

// On another node than rank 0's, whose folder has the name `wanted`. If this node sees it: that one. If nothing has the
// name here, a folder that is made. If the name is taken by something else: one named after the node beside it, and a
// sentence says so. Opened as `descriptor`; -1 if there is none to be had.
std::string find_folder(const std::string& wanted, int node, std::string_view run, int& descriptor,
                        std::string& sentence);

std::string rank_file(const std::string& folder, int rank);
std::string spill_file(const std::string& folder, int rank);   // of PAPAYA_PROFILE=trace
std::string weak_file(const std::string& folder, int rank);    // of weakly consistent collectives
std::string approx_file(const std::string& folder, int rank);  // of PAPAYA_APPROX

}  // namespace papaya::output
