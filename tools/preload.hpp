// Puts libpapaya.so in front of a program and becomes it: what `papaya run` and `papaya bench` have in
// common.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace papaya {

// A file that belongs to the command: beside it (a build folder), or where an installation under the same
// prefix puts it. `installed_folder` is relative to the prefix. Empty if there is none.
std::string find_beside(const std::filesystem::path& name, const std::filesystem::path& installed_folder);

// libpapaya.so; if there is none, says so on standard error and returns an empty string.
std::string find_library();

// Sets LD_PRELOAD for this process alone, through exec as well, and becomes `words[0]`, which is looked up in
// PATH. Returns only on failure, with the exit code a shell would give.
int exec_preloaded(const std::string& library, const std::vector<std::string>& words);

}  // namespace papaya
