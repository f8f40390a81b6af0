// Which MPI a program is linked to, and whether papaya and the launcher are for it.
#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <sstream>

#include "base/mpi_library.hpp"
#include "tools/doctor/checks.hpp"

namespace papaya::doctor {

namespace {

std::string first_line(const std::string& version) {
  std::string line = version.substr(0, version.find_first_of("\n,"));
  std::replace(line.begin(), line.end(), '\t', ' ');
  return line;
}

// The flavour of the same name is for the MPI's own ABI, and the launcher is the same for both.
std::string launcher_of(const Mpi& mpi) {
  const char* const own = flavour_of(0, mpi.version.c_str());
  return own == nullptr ? "" : own;
}

// By what ABI papaya serves it, where that is not the MPI's own alone.
std::string by_which_abi(const Mpi& mpi) {
  if (mpi.standard_abi > 0)
    return " It has the standard ABI of MPI 5.0, for which there is libpapaya-abi.so; calls from Fortran are not "
           "covered.";
  if (launcher_of(mpi) == "mpich" && !starts_with(mpi.version.c_str(), "MPICH Version:"))
    return " papaya's library for MPICH serves it by the ABI that they share (libmpi.so.12): for C, and for Fortran as "
           "far "
           "as its binding is called libmpifort and calls the functions of C, as MPICH's does.";
  return "";
}

}  // namespace

Mpi ask(const std::string& library) {
  std::string answer;
  in_child(
      [&](int out) {
        void* const handle = dlopen(library.c_str(), RTLD_LAZY | RTLD_LOCAL);
        if (handle == nullptr) _exit(1);
        const auto get_version = reinterpret_cast<int (*)(char*, int*)>(dlsym(handle, "PMPI_Get_library_version"));
        if (get_version == nullptr) _exit(1);
        static char text[1 + 8192];
        text[0] = static_cast<char>(
            '0' + standard_abi_of(reinterpret_cast<AbiGetVersion>(dlsym(handle, "PMPI_Abi_get_version"))));
        int length = 0;
        get_version(text + 1, &length);
        [[maybe_unused]] const ssize_t written = write(out, text, strnlen(text, sizeof text));
        _exit(0);
      },
      answer);
  return answer.size() < 2 ? Mpi{} : Mpi{answer.substr(1), answer[0] - '0'};
}

std::string mpirun_in_path(std::string& says) {
  if (find_program("mpirun").empty() || !capture({"mpirun", "--version"}, says)) return "";
  std::istringstream lines(says);
  for (std::string line; std::getline(lines, line);) {
    if (line.find("Open MPI") != line.npos || line.find("Open RTE") != line.npos) {
      says = line;
      return "openmpi";
    }
    if (line.find("Intel") != line.npos) break;
    if (const std::size_t version = line.find("Version:"); line.find("HYDRA") == line.npos && version != line.npos) {
      says = "MPICH's Hydra " + line.substr(line.find_first_not_of(' ', version + 8));
      return "mpich";
    }
  }
  says = says.substr(0, says.find('\n'));
  return "";
}

void check_mpi(const std::map<std::string, Mpi>& mpis, const std::vector<std::string>& libraries, const Job& job,
               Checks& checks) {
  const bool has_standard =
      std::any_of(mpis.begin(), mpis.end(), [](const auto& one) { return one.second.standard_abi > 0; });
  for (const std::string& library : libraries) {
    const Translator* const translator = translator_of(library.c_str());
    if (translator == nullptr || has_standard) continue;
    if (translator->flavour == nullptr)
      checks.push_back(
          {"MPI", Level::warning,
           fmt::format("{} passes the program's calls on to another MPI by an ABI of its own, for which "
                       "papaya has no library: nothing is recorded. Build the program with that MPI itself.",
                       translator->name)});
    else
      checks.push_back(
          {"MPI", Level::ok,
           fmt::format("{} passes the program's calls on to another MPI: libpapaya-{}.so serves them as those "
                       "of the MPI that the program was built with.",
                       translator->name, translator->flavour)});
    return;
  }
  if (mpis.empty()) {
    checks.push_back({"MPI", Level::warning,
                      "The program is linked to no MPI. If it opens one itself, as Python's mpi4py does, "
                      "papaya finds it at the first "
                      "call; else there is nothing to record."});
    return;
  }
  // What has the standard ABI is what the program calls; if another MPI is there, too, it is beneath.
  const auto standard =
      std::find_if(mpis.begin(), mpis.end(), [](const auto& one) { return one.second.standard_abi > 0; });
  if (standard != mpis.end() && mpis.size() > 1) return check_mpi({*standard}, libraries, job, checks);
  std::set<std::string> versions;
  for (const auto& [path, mpi] : mpis) versions.insert(first_line(mpi.version));
  if (versions.size() > 1) {
    checks.push_back({"MPI", Level::problem,
                      fmt::format("The program is linked to several MPIs ({}): every call goes past papaya. Relink it "
                                  "and its libraries with one.",
                                  fmt::join(versions, "; "))});
    return;
  }
  const std::string line = *versions.begin();
  const Mpi& mpi = mpis.begin()->second;
  const char* const flavour = flavour_of(mpi.standard_abi, mpi.version.c_str());
  if (flavour == nullptr) {
    checks.push_back(
        {"MPI", Level::warning,
         fmt::format("The program's MPI is {}, which papaya does not know: its calls go straight to it and "
                     "nothing is recorded.",
                     line)});
    return;
  }
  const std::vector<std::string> built = built_flavours();
  if (std::find(built.begin(), built.end(), flavour) == built.end()) {
    checks.push_back(
        {"MPI", Level::problem,
         fmt::format("The program's MPI is {}, and there is no libpapaya-{}.so here: build papaya with that "
                     "MPI's development files installed.",
                     line, flavour)});
    return;
  }
  std::string says;
  const bool in_job = job.launcher == "openmpi" || job.launcher == "mpich";
  const std::string launcher = in_job ? job.launcher : mpirun_in_path(says);
  const std::string of_mpi = launcher_of(mpi);
  if (!launcher.empty() && !of_mpi.empty() && launcher != of_mpi) {
    checks.push_back(
        // Outside a job nobody has used the wrong one yet.
        {"MPI", in_job ? Level::problem : Level::warning,
         fmt::format("The program's MPI is {}, and the {} is {}'s: every rank would be a job of its own. "
                     "Start it with mpirun.{} or that MPI's own mpirun.{}",
                     line, in_job ? "launcher of this job" : "mpirun in PATH", launcher, of_mpi, by_which_abi(mpi))});
    return;
  }
  checks.push_back(
      {"MPI", Level::ok, fmt::format("The program's MPI is {} ({}).{}", line, mpis.begin()->first, by_which_abi(mpi))});
}

}  // namespace papaya::doctor
