// Other tools that take MPI's functions, and which programs papaya is not for.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <sstream>
#include <string_view>

#include "base/program_filter.hpp"
#include "tools/doctor/checks.hpp"
#include "tools/preload.hpp"

namespace papaya::doctor {
namespace {

struct Tool {
  std::string_view prefix;  // of its library's name
  std::string_view name;
  bool takes_collectives;
  std::string_view note;  // what else to know
};
constexpr Tool known_tools[] = {
    {"libscorep", "Score-P", true, ""},
    {"libmpiP", "mpiP", true, ""},
    {"libdarshan", "Darshan", false, ""},
    {"libdlb", "DLB", true,
     " DLB lends a core while a rank waits in MPI: behind papaya it does not for calls that papaya serves."},
    {"libipm", "IPM", true, ""},
    {"libtau", "TAU", true, " tau_exec preloads it by itself: start the program with LD_PRELOAD in its place."},
    {"libTAU", "TAU", true, " tau_exec preloads it by itself: start the program with LD_PRELOAD in its place."},
    {"libVT", "VampirTrace", true, ""},
    {"libmpitrace", "Extrae", true, ""},
    {"libextrae", "Extrae", true, ""},
    {"libcaliper", "Caliper", true, ""},
    {"libmust", "MUST", true, " MUST starts programs by mustrun, with ranks of its own: run it without papaya."},
    {"libhpcrun", "HPCToolkit", false, ""}};

constexpr Tool unknown_tool = {"", "An MPI tool that papaya does not know", true, ""};

// By its name, else by the functions of MPI that it defines.
const Tool* tool_of(const std::string& path) {
  const auto* const found = std::find_if(std::begin(known_tools), std::end(known_tools),
                                         [&](const Tool& tool) { return base_name(path).starts_with(tool.prefix); });
  if (found != std::end(known_tools)) return found;
  const std::vector<std::string> defined = read_elf(path).defined;
  const auto defines = [&](const char* name) {
    return std::find(defined.begin(), defined.end(), name) != defined.end();
  };
  const bool is_mpi = defines("PMPI_Init") || defines("PMPI_Get_library_version");
  return !is_mpi && (defines("MPI_Init") || defines("MPI_Init_thread") || defines("MPI_Allreduce")) ? &unknown_tool
                                                                                                    : nullptr;
}

// A tool behind papaya: what each of the two sees, and what to type for all.
Check behind(const char* check, const Tool& tool, const std::string& library) {
  if (!tool.takes_collectives)
    return {check, Level::ok,
            fmt::format("{} ({}) takes none of the calls that papaya replaces: both see all of theirs.", tool.name,
                        library)};
  const std::string own = find_library();
  return {check, Level::warning,
          fmt::format("{} ({}) comes behind papaya: papaya sees each call, the other those that papaya leaves to MPI. "
                      "For both to see all, start the program with LD_PRELOAD={}:{} in place of papaya run.{}",
                      tool.name, library, library, own.empty() ? "libpapaya.so" : own, tool.note)};
}

Check in_front(const char* check, std::string_view name, const std::string& where) {
  return {
      check, Level::ok,
      fmt::format("{} ({}) comes before papaya: both see each call. It counts papaya's time as MPI's.", name, where)};
}

}  // namespace

void check_linked_tools(const ElfFile& program, const std::vector<std::string>& libraries, Checks& checks) {
  if (std::find(program.defined.begin(), program.defined.end(), "MPI_Init") != program.defined.end())
    checks.push_back(in_front("other tools", "A tool", "linked into the program, which has an MPI_Init of its own"));
  std::string_view last;
  for (const std::string& path : libraries)
    if (const Tool* const tool = tool_of(path); tool != nullptr && tool->name != last) {
      checks.push_back(behind("other tools", *tool, path));
      last = tool->name;
    }
}

void check_other_tools(Checks& checks) {
  const char* const preloaded = std::getenv("LD_PRELOAD");
  std::string text = preloaded == nullptr ? "" : preloaded;
  std::replace(text.begin(), text.end(), ':', ' ');
  std::istringstream words(text);
  const bool has_papaya = text.find("libpapaya.so") != text.npos;  // else papaya run puts it first
  bool is_before = has_papaya;
  std::vector<std::string> others;
  const std::size_t before = checks.size();
  for (std::string word; words >> word;) {
    if (base_name(word) == "libpapaya.so")
      is_before = false;
    else if (const Tool* const tool = tool_of(word); tool == nullptr)
      others.push_back(word);
    else
      checks.push_back(is_before ? in_front("preloads", tool->name, word) : behind("preloads", *tool, word));
  }
  if (!others.empty())
    checks.push_back(
        {"preloads", Level::ok,
         fmt::format("LD_PRELOAD also has {}, which is no MPI tool that papaya knows.", fmt::join(others, ", "))});
  else if (checks.size() == before)
    checks.push_back({"preloads", Level::ok, "No other library is preloaded."});
}

void check_filter(const std::vector<std::string>& words, Checks& checks) {
  std::error_code error;
  const std::filesystem::path path = std::filesystem::canonical(find_program(words.front()), error);
  if (error) return;
  // As the library sees it: the file, links followed, then the arguments.
  std::string command = path.string();
  for (std::size_t i = 1; i < words.size(); ++i) command += " " + words[i];
  const char* const variable =
      program_filter::left_out_by(std::getenv("PAPAYA_INCLUDE"), std::getenv("PAPAYA_EXCLUDE"), command.c_str());
  if (variable != nullptr)
    checks.push_back({"filter", Level::warning,
                      fmt::format("Where LD_PRELOAD brings papaya into it, {} leaves out \"{}\"{}; papaya run records "
                                  "it all the same.",
                                  variable, command, words.size() > 1 ? "" : ", unless arguments make a difference")});
}

}  // namespace papaya::doctor
