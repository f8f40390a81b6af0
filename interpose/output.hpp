// The output folder: its name, making it, the files that are there from the start.
#pragma once

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
// string: there is none to be had.
// The folder is open as `descriptor`, whatever another job makes of its name; -1 without.
std::string make_folder(std::string wanted, std::string_view otherwise, int& descriptor,
                        std::string& sentence);

// README and papaya.cfg.
void write_start_files(const std::string& folder, const Settings& settings, std::string_view program,
                       int ranks, std::string_view mpi);

std::string rank_file(const std::string& folder, int rank);
std::string spill_file(const std::string& folder, int rank);  // of PAPAYA_PROFILE=trace

}  // namespace papaya::output
