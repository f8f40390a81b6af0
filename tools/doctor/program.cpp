// What papaya will meet in a program: its MPI, its Fortran, how it is linked, other tools.
#include <elf.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string_view>

#include "base/mpi_library.hpp"
#include "tools/doctor/checks.hpp"
#include "tools/doctor/elf.hpp"
#include "tools/preload.hpp"

namespace papaya::doctor {
namespace {

namespace fs = std::filesystem;

// The libraries that the dynamic loader would load, by its own answer; those it does not find in `missing`, what else
// it has against the program in `problem`.
std::vector<std::string> libraries_of(const std::string& program, const std::string& interpreter,
                                      std::vector<std::string>& missing, std::string& problem) {
  std::string output;
  if (!capture({interpreter, "--list", program}, output))
    problem = output.empty() ? "the file is damaged" : output.substr(0, output.find('\n'));
  std::vector<std::string> paths;
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t arrow = line.find(" => ");
    if (arrow == line.npos) continue;
    if (line.find("not found", arrow) != line.npos) {
      missing.push_back(line.substr(line.find_first_not_of(" \t"), arrow - line.find_first_not_of(" \t")));
      continue;
    }
    const std::size_t begin = arrow + 4;
    paths.push_back(line.substr(begin, line.find(" (", begin) - begin));
  }
  return paths;
}

bool is_fortran(std::string_view symbol) {
  if (symbol.starts_with("p")) symbol.remove_prefix(1);
  return symbol.starts_with("mpi_") && symbol.ends_with("_");
}

bool is_c(std::string_view symbol) {
  return symbol.size() > 5 && symbol.starts_with("MPI_") && symbol[4] >= 'A' && symbol[4] <= 'Z' && symbol[5] >= 'a' &&
         symbol[5] <= 'z';
}

struct Languages {
  bool c = false;
  bool fortran = false;
  bool f08 = false;
};

void note_languages(const ElfFile& file, Languages& languages) {
  for (const std::string& symbol : file.undefined) {
    languages.c = languages.c || is_c(symbol);
    if (!is_fortran(symbol)) continue;
    (symbol.find("_f08") == symbol.npos ? languages.fortran : languages.f08) = true;
  }
}

// True if there is nothing else to look at.
bool check_linking(const std::string& path, const ElfFile& file, Checks& checks) {
  const ElfFile self = read_elf("/proc/self/exe");
  if (!file.is_64_bit || file.machine != self.machine) {
    checks.push_back({"program", Level::problem,
                      fmt::format("{} is for another kind of processor than papaya, which cannot be loaded "
                                  "into it. Build both for the same.",
                                  path)});
    return true;
  }
  if (file.interpreter.empty()) {
    checks.push_back({"program", Level::problem,
                      fmt::format("{} is statically linked, so that nothing can be preloaded into it. Link it "
                                  "dynamically (without -static).",
                                  path)});
    return true;
  }
  if (std::find(file.defined.begin(), file.defined.end(), "PMPI_Init") != file.defined.end()) {
    checks.push_back({"program", Level::problem,
                      fmt::format("{} contains its MPI (libmpi.a), so papaya cannot intercept its calls. Link "
                                  "it with the MPI's shared library.",
                                  path)});
    return true;
  }
  struct stat status {};
  if (stat(path.c_str(), &status) == 0 &&
      ((status.st_mode & (S_ISUID | S_ISGID)) != 0 || getxattr(path.c_str(), "security.capability", nullptr, 0) > 0)) {
    checks.push_back({"program", Level::problem,
                      fmt::format("{} runs with rights of its own (setuid, setgid or file capabilities), for "
                                  "which the system ignores LD_PRELOAD. Take a copy without them.",
                                  path)});
    return true;
  }
  return false;
}

void check_fortran(const Languages& languages, const std::vector<std::string>& libraries, Checks& checks) {
  if (!languages.fortran && !languages.f08) {
    checks.push_back(
        {"Fortran", Level::ok,
         languages.c ? "No call through a Fortran binding; C's are covered." : "No call through a Fortran binding."});
    return;
  }
  const std::string which = languages.f08 && languages.fortran ? "mpif.h or mpi, and mpi_f08"
                            : languages.f08                    ? "mpi_f08"
                                                               : "mpif.h or mpi";
  const auto binding = std::find_if(libraries.begin(), libraries.end(),
                                    [](const std::string& path) { return is_fortran_binding(path.c_str()); });
  if (binding == libraries.end())
    checks.push_back(
        {"Fortran", Level::warning,
         fmt::format("The program calls MPI from Fortran ({}), and none of its libraries is a binding that "
                     "papaya knows: those calls may go unseen.",
                     which)});
  else
    checks.push_back({"Fortran", Level::ok,
                      fmt::format("The program calls MPI from Fortran ({}), through {}: each call is seen once.", which,
                                  base_name(*binding))});
}

}  // namespace

std::string base_name(const std::string& path) {
  return path.substr(path.find_last_of('/') + 1);
}

void check_program(const std::string& program, const Job& job, Checks& checks) {
  const std::string path = find_program(program);
  std::error_code error;
  if (path.empty() || !fs::exists(path, error)) {
    checks.push_back({"program", Level::problem, fmt::format("There is no program {}.", program)});
    return;
  }
  std::ifstream script(path);
  if (std::string line; std::getline(script, line) && line.starts_with("#!")) {
    checks.push_back({"program", Level::warning,
                      fmt::format("{} is a script ({}): papaya run preloads into one process only, so that "
                                  "the script must exec the program as "
                                  "its last step, or call papaya run itself. Check the program it starts.",
                                  path, line.substr(0, 80))});
    return;
  }
  const ElfFile file = read_elf(path);
  if (!file.problem.empty()) {
    checks.push_back({"program", Level::problem, fmt::format("{}: {}.", path, file.problem)});
    return;
  }
  if (check_linking(path, file, checks)) return;
  std::vector<std::string> missing;
  std::string refusal;
  const std::vector<std::string> libraries = libraries_of(path, file.interpreter, missing, refusal);
  if (!missing.empty()) {
    checks.push_back(
        {"program", Level::problem,
         fmt::format("{} needs libraries that are missing: {}. Install them, or name their folder in LD_LIBRARY_PATH.",
                     path, fmt::join(missing, ", "))});
    return;
  }
  if (!refusal.empty()) {
    checks.push_back(
        {"program", Level::problem, fmt::format("The dynamic loader does not take {}: {}.", path, refusal)});
    return;
  }
  checks.push_back(
      {"program", Level::ok, fmt::format("{} is dynamically linked and runs with its user's rights.", path)});

  // The program's own libraries may be those that call MPI.
  std::map<std::string, Mpi> mpis;
  Languages languages;
  note_languages(file, languages);
  for (const std::string& library : libraries) {
    if (base_name(library).find("mpi") == std::string::npos) {
      note_languages(read_elf(library), languages);
      continue;
    }
    const ElfFile own = read_elf(library);
    if (std::find(own.defined.begin(), own.defined.end(), "PMPI_Get_library_version") == own.defined.end()) continue;
    if (Mpi mpi = ask(library); !mpi.version.empty()) mpis.emplace(library, std::move(mpi));
  }
  check_mpi(mpis, libraries, job, checks);
  if (!mpis.empty()) check_fortran(languages, libraries, checks);
  check_linked_tools(file, libraries, checks);
}

}  // namespace papaya::doctor
